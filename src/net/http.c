#include "net/http.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file/library.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/version.h"

enum { CONNECT_SECONDS = 5, TOTAL_SECONDS = 120, SLOW_SECONDS = 20, SLOW_BYTES_PER_SECOND = 1000, ASK_CONNECT_MS = 3000 };

/* --- libcurl, which is loaded when it is first used (base/file/library.h) --- */

#define FUNCTIONS(f) \
	f(curl, easy_cleanup) f(curl, easy_getinfo) f(curl, easy_init) f(curl, easy_perform) f(curl, easy_setopt) \
	f(curl, easy_strerror) f(curl, free) f(curl, slist_append) f(curl, slist_free_all) f(curl, url) f(curl, url_cleanup) \
	f(curl, url_get) f(curl, url_set)
static struct {
	FUNCTIONS(LIBRARY_POINTER)
} lib;
static const struct library_function functions[] = { FUNCTIONS(LIBRARY_FUNCTION) };

static struct err no_library; /* why it cannot be used */

static void load_library(void)
{
	library_load("libcurl.so.4", functions, ARRAY_LEN(functions), &no_library);
}

static bool has_library(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_library);
	if (no_library.code && err)
		*err = no_library;
	return !no_library.code;
}

/* The state of an answer, for libcurl's callback. */
struct transfer {
	http_sink *sink;
	void *context;
	uint64_t bytes, limit;
	bool too_large;
};

static size_t take(char *data, size_t size, size_t count, void *context)
{
	struct transfer *t = context;

	t->bytes += size * count;
	t->too_large = t->limit && t->bytes > t->limit;
	return t->too_large || t->sink(t->context, data, size * count) ? 0 : size * count;
}

static int append(void *context, const void *data, size_t n)
{
	buf_add(context, data, n);
	return 0;
}

#ifdef GASFLAME_STATIC
/* Where distributions keep the certificates that they trust; libcurl was built for one of them. */
static void trust(CURL *curl)
{
	static const char *const bundles[] = {
		"/etc/ssl/certs/ca-certificates.crt",                /* Debian, Arch, Alpine */
		"/etc/pki/tls/certs/ca-bundle.crt",                  /* Fedora, Amazon Linux */
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* the same, newer */
		"/etc/ssl/ca-bundle.pem",                            /* SUSE */
		"/etc/ssl/cert.pem",
	};
	const char *own = getenv("SSL_CERT_FILE");

	for (size_t i = 0; !own && i < ARRAY_LEN(bundles); i++)
		if (!access(bundles[i], R_OK))
			own = bundles[i];
	if (own)
		lib.easy_setopt(curl, CURLOPT_CAINFO, own);
}
#else
static void trust(CURL *curl)
{
}
#endif

/* why: CURL_ERROR_SIZE bytes. NULL: it does not start, err says why. */
static CURL *start(const char *url, struct transfer *t, char *why, struct err *err)
{
	char agent[80];
	CURL *curl;

	if (!has_library(err))
		return NULL;
	curl = lib.easy_init();
	if (!curl) {
		err_set(err, ENOMEM, "libcurl does not start");
		return NULL;
	}
	lib.easy_setopt(curl, CURLOPT_URL, url);
	lib.easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	lib.easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	trust(curl);
	snprintf(agent, sizeof(agent), "gasflame/%s", gasflame_version);
	lib.easy_setopt(curl, CURLOPT_USERAGENT, agent); /* which it copies */
	lib.easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
	lib.easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
	lib.easy_setopt(curl, CURLOPT_WRITEDATA, t);
	return curl;
}

/* --- one document --- */

static void set_limits(CURL *curl, const struct http_limits *limits)
{
	lib.easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	lib.easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
	lib.easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
	lib.easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
	lib.easy_setopt(curl, CURLOPT_CONNECTTIMEOUT,
			 (long)(limits->connect_seconds ? limits->connect_seconds : CONNECT_SECONDS));
	lib.easy_setopt(curl, CURLOPT_TIMEOUT,
			 (long)(limits->total_seconds ? limits->total_seconds : TOTAL_SECONDS));
	if (limits->total_ms) {
		lib.easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)limits->total_ms);
		lib.easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)limits->total_ms);
	}
	if (limits->socket) {
		lib.easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, limits->socket);
		lib.easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
		lib.easy_setopt(curl, CURLOPT_NOPROXY, "*");
	}
	lib.easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SLOW_SECONDS);
	lib.easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES_PER_SECOND);
}

int http_get(const char *url, const struct http_limits *limits, http_sink *sink, void *context,
	     struct err *err)
{
	struct transfer t = { .sink = sink, .context = context, .limit = limits->bytes };
	char why[CURL_ERROR_SIZE] = "";
	CURL *curl = start(url, &t, why, err);
	long status = 0;
	CURLcode r;

	if (!curl)
		return has_library(NULL) ? -ENOMEM : -ELIBACC;
	set_limits(curl, limits);
	r = lib.easy_perform(curl);
	lib.easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	lib.easy_cleanup(curl);
	if (limits->ret_status)
		*limits->ret_status = status;
	if (t.too_large)
		return err_set(err, EFBIG, "%.100s: more than %llu bytes", url,
			       (unsigned long long)limits->bytes);
	if ((r == CURLE_OK && !t.bytes) || status == 404)
		return err_set(err, ENOENT, "%.100s: %s", url,
			       status == 404 ? "the server has no such page (404)" : "the answer is empty");
	if (r != CURLE_OK)
		return err_set(err, EIO, "%.100s: %.100s", url, why[0] ? why : lib.easy_strerror(r));
	return 0;
}

int http_get_text(const char *url, const struct http_limits *limits, char **ret, size_t *ret_n,
		  struct err *err)
{
	struct buf text = { 0 };
	int r = http_get(url, limits, append, &text, err);

	if (r) {
		buf_done(&text);
		return r;
	}
	*ret = text.data;
	if (ret_n)
		*ret_n = text.n;
	return 0;
}

/* --- a connection that stays open --- */

struct http {
	CURL *curl;
	struct curl_slist *headers;
	char *url, *bearer;
	char why[CURL_ERROR_SIZE];
	struct buf answer, lines; /* the body, and of http_send() the headers */
	struct transfer transfer; /* into answer */
	atomic_bool stop;
	const volatile sig_atomic_t *flag; /* the same, for signals; may be NULL */
};

static bool is_stopped(const struct http *h)
{
	return h->stop || (h->flag && *h->flag);
}

static int look(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	return is_stopped(context);
}

static void set_options(struct http *h)
{
	if (http_is_local(h->url))
		lib.easy_setopt(h->curl, CURLOPT_NOPROXY, "*");
	lib.easy_setopt(h->curl, CURLOPT_TCP_NODELAY, 1L);
	lib.easy_setopt(h->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)ASK_CONNECT_MS);
	lib.easy_setopt(h->curl, CURLOPT_NOPROGRESS, 0L);
	lib.easy_setopt(h->curl, CURLOPT_XFERINFOFUNCTION, look);
	lib.easy_setopt(h->curl, CURLOPT_XFERINFODATA, h);
}

/* "Expect:" would have libcurl wait for a server's leave before it sends a long body. */
static int set_headers(struct http *h, const char *bearer, struct err *err)
{
	_cleanup_free_ char *line = bearer ? mem_printf("Authorization: Bearer %s", bearer) : NULL;
	const char *const lines[] = { "Content-Type: application/json", "Expect:", line };

	lib.slist_free_all(h->headers);
	free(h->bearer);
	h->bearer = bearer ? mem_strdup(bearer) : NULL;
	h->headers = NULL;
	for (size_t i = 0; i < ARRAY_LEN(lines) && lines[i]; i++) {
		struct curl_slist *longer = lib.slist_append(h->headers, lines[i]);

		if (!longer)
			return err_set(err, ENOMEM, "libcurl has no memory");
		h->headers = longer;
	}
	lib.easy_setopt(h->curl, CURLOPT_HTTPHEADER, h->headers);
	return 0;
}

int http_open(const char *url, const char *option, struct http **ret, struct err *err)
{
	struct http *h;
	int e;

	if (!str_starts(url, "http://") && !str_starts(url, "https://"))
		return err_set(err, EINVAL, "'%s' is no address of a node: %s http://127.0.0.1:8545", url, option);
	h = mem_alloc(sizeof(*h));
	h->url = mem_strdup(url);
	h->transfer = (struct transfer){ .sink = append, .context = &h->answer };
	h->curl = start(h->url, &h->transfer, h->why, err);
	e = h->curl ? set_headers(h, NULL, err) : -ENOMEM;
	if (e) {
		http_close(h);
		return e;
	}
	set_options(h);
	*ret = h;
	return 0;
}

static int meaning_of(CURLcode code)
{
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		return ETIMEDOUT;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
		return EACCES;
	default:
		return EIO;
	}
}

static int failure(struct http *h, CURLcode code, struct err *err)
{
	if (is_stopped(h))
		return err_set(err, ECANCELED, "it was not asked any more");
	if (h->transfer.too_large)
		return err_set(err, EFBIG, "its answer is too long");
	return err_set(err, meaning_of(code), "%s", *h->why ? h->why : lib.easy_strerror(code));
}

int http_ask(struct http *h, const struct http_question *q, struct http_answer *ret, struct err *err)
{
	bool same = q->bearer == h->bearer || (q->bearer && h->bearer && !strcmp(q->bearer, h->bearer));
	uint64_t begin;
	long status = 0;
	CURLcode code;
	int e = same ? 0 : set_headers(h, q->bearer, err);

	if (!e && is_stopped(h))
		e = err_set(err, ECANCELED, "it was not asked any more");
	if (e)
		return e;
	h->answer.n = 0;
	h->transfer.bytes = 0;
	h->transfer.limit = q->limit ? q->limit : HTTP_ANSWER_BYTES;
	*h->why = 0;
	lib.easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, (long)q->timeout_ms);
	lib.easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->n);
	lib.easy_setopt(h->curl, CURLOPT_POSTFIELDS, q->body);
	begin = clock_mono_ns();
	code = lib.easy_perform(h->curl);
	ret->ns = clock_mono_ns() - begin;
	lib.easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK)
		return failure(h, code, err);
	if (status == 401 || status == 403)
		return err_set(err, EACCES, "it refuses us (HTTP %ld)", status);
	if (status != 200 && (!h->answer.n || *h->answer.data != '{'))
		return err_set(err, EIO, "it answers with HTTP %ld", status);
	ret->text = h->answer.n ? h->answer.data : "";
	ret->n = h->answer.n;
	return 0;
}

static size_t take_line(char *data, size_t size, size_t count, void *context)
{
	struct buf *lines = context;

	/* A server may send no more of them than libcurl allows, 300 KB. */
	buf_add(lines, data, size * count);
	return size * count;
}

/* Those of the request, and none of the last one. libcurl signs each of them, also one that takes a header away: then "Expect" stays. */
static int replace_headers(struct http *h, const struct http_request *q, struct err *err)
{
	lib.slist_free_all(h->headers);
	h->headers = NULL;
	for (size_t i = q->sign ? 1 : 0; !i || (q->headers && q->headers[i - 1]); i++) {
		struct curl_slist *longer = lib.slist_append(h->headers, i ? q->headers[i - 1] : "Expect:");

		if (!longer)
			return err_set(err, ENOMEM, "libcurl has no memory");
		h->headers = longer;
	}
	lib.easy_setopt(h->curl, CURLOPT_HTTPHEADER, h->headers);
	return 0;
}

/* What a request may have and the next one may not: NULL takes it back. */
static void set_request(struct http *h, const struct http_request *q)
{
	lib.easy_setopt(h->curl, CURLOPT_URL, q->url);
	lib.easy_setopt(h->curl, CURLOPT_FRESH_CONNECT, (long)q->once);
	lib.easy_setopt(h->curl, CURLOPT_HEADERFUNCTION, take_line);
	lib.easy_setopt(h->curl, CURLOPT_HEADERDATA, &h->lines);
	lib.easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, (long)q->timeout_ms);
	lib.easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->n);
	lib.easy_setopt(h->curl, CURLOPT_POSTFIELDS, q->body);
	lib.easy_setopt(h->curl, CURLOPT_CUSTOMREQUEST, q->put ? "PUT" : NULL);
	/* libcurl's own default is lost once another is set: a handle has one for its life. */
	if (q->ca_file)
		lib.easy_setopt(h->curl, CURLOPT_CAINFO, q->ca_file);
	lib.easy_setopt(h->curl, CURLOPT_AWS_SIGV4, q->sign);
	lib.easy_setopt(h->curl, CURLOPT_USERNAME, q->user);
	lib.easy_setopt(h->curl, CURLOPT_PASSWORD, q->password);
}

int http_send(struct http *h, const struct http_request *q, struct http_reply *ret, struct err *err)
{
	long status = 0;
	CURLcode code;
	int e = replace_headers(h, q, err);

	if (!e && is_stopped(h))
		e = err_set(err, ECANCELED, "it was not asked any more");
	if (e)
		return e;
	h->answer.n = h->lines.n = 0;
	h->transfer.bytes = 0;
	h->transfer.limit = q->limit ? q->limit : HTTP_ANSWER_BYTES;
	h->transfer.too_large = false;
	*h->why = 0;
	set_request(h, q);
	code = lib.easy_perform(h->curl);
	lib.easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK)
		return failure(h, code, err);
	*ret = (struct http_reply){ .status = status, .text = h->answer.n ? h->answer.data : "", .n = h->answer.n,
				    .headers = h->lines.n ? h->lines.data : "" };
	return 0;
}

bool http_header(const struct http_reply *reply, const char *name, char *out, size_t size)
{
	size_t n = strlen(name);

	for (const char *line = reply->headers; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *value = line + n;

		if (strncasecmp(line, name, n) || *value != ':')
			continue;
		value += 1 + strspn(value + 1, " \t");
		snprintf(out, size, "%.*s", (int)strcspn(value, "\r\n"), value);
		return true;
	}
	return false;
}

const char *http_url(const struct http *h)
{
	return h->url;
}

void http_stop(struct http *h)
{
	h->stop = true;
}

void http_stop_on(struct http *h, const volatile sig_atomic_t *flag)
{
	h->flag = flag;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	if (h->curl) {
		lib.easy_cleanup(h->curl);
		lib.slist_free_all(h->headers);
	}
	buf_done(&h->answer);
	buf_done(&h->lines);
	free(h->bearer);
	free(h->url);
	free(h);
}

bool http_is_local(const char *url)
{
	CURLU *u = has_library(NULL) ? lib.url() : NULL;
	char *host = NULL;
	struct in_addr four;
	bool local = false;

	if (!u)
		return false;
	if (!lib.url_set(u, CURLUPART_URL, url, 0) && !lib.url_get(u, CURLUPART_HOST, &host, 0))
		local = !strcasecmp(host, "localhost") || !strcmp(host, "[::1]") ||
			(inet_pton(AF_INET, host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127);
	lib.free(host);
	lib.url_cleanup(u);
	return local;
}
