#include "net/post.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"

enum { CONNECT_MS = 3000 };

struct post {
	CURL *curl;
	struct curl_slist *headers;
	char *url, *bearer;
	char why[CURL_ERROR_SIZE];
	struct buf answer;
	uint64_t limit;
	atomic_bool stop;
	const volatile sig_atomic_t *flag; /* the same, for signals; may be NULL */
};

static size_t store(char *data, size_t size, size_t count, void *context)
{
	struct post *p = context;

	if (size * count > p->limit - p->answer.n)
		return 0;
	buf_add(&p->answer, data, size * count);
	return size * count;
}

static bool is_stopped(const struct post *p)
{
	return p->stop || (p->flag && *p->flag);
}

static int look(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	return is_stopped(context);
}

static void set_options(struct post *p)
{
	curl_easy_setopt(p->curl, CURLOPT_URL, p->url);
	curl_easy_setopt(p->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	if (post_is_local(p->url))
		curl_easy_setopt(p->curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(p->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(p->curl, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(p->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(p->curl, CURLOPT_USERAGENT, "gasflame/" GASFLAME_VERSION);
	curl_easy_setopt(p->curl, CURLOPT_ERRORBUFFER, p->why);
	curl_easy_setopt(p->curl, CURLOPT_WRITEFUNCTION, store);
	curl_easy_setopt(p->curl, CURLOPT_WRITEDATA, p);
	curl_easy_setopt(p->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(p->curl, CURLOPT_XFERINFOFUNCTION, look);
	curl_easy_setopt(p->curl, CURLOPT_XFERINFODATA, p);
}

/* "Expect:" would have libcurl wait for a server's leave before it sends a long body. */
static int set_headers(struct post *p, const char *bearer, struct err *err)
{
	_cleanup_free_ char *line = bearer ? mem_printf("Authorization: Bearer %s", bearer) : NULL;
	const char *const lines[] = { "Content-Type: application/json", "Expect:", line };

	curl_slist_free_all(p->headers);
	free(p->bearer);
	p->bearer = bearer ? mem_strdup(bearer) : NULL;
	p->headers = NULL;
	for (size_t i = 0; i < ARRAY_LEN(lines) && lines[i]; i++) {
		struct curl_slist *longer = curl_slist_append(p->headers, lines[i]);

		if (!longer)
			return err_set(err, ENOMEM, "libcurl has no memory");
		p->headers = longer;
	}
	curl_easy_setopt(p->curl, CURLOPT_HTTPHEADER, p->headers);
	return 0;
}

int post_open(const char *url, const char *option, struct post **ret, struct err *err)
{
	struct post *p;
	int e;

	if (!str_starts(url, "http://") && !str_starts(url, "https://"))
		return err_set(err, EINVAL, "'%s' is no address of a node: %s http://127.0.0.1:8545", url, option);
	p = mem_alloc(sizeof(*p));
	p->url = mem_strdup(url);
	p->curl = curl_easy_init();
	e = p->curl ? set_headers(p, NULL, err) : err_set(err, ENOMEM, "libcurl has no memory");
	if (e) {
		post_close(p);
		return e;
	}
	set_options(p);
	*ret = p;
	return 0;
}

static int failure(struct post *p, CURLcode code, struct err *err)
{
	if (is_stopped(p))
		return err_set(err, ECANCELED, "it was not asked any more");
	if (code == CURLE_WRITE_ERROR)
		return err_set(err, EFBIG, "%s: its answer is too long", p->url);
	return err_set(err, code == CURLE_OPERATION_TIMEDOUT ? ETIMEDOUT : EIO, "%s: %s", p->url,
		       *p->why ? p->why : curl_easy_strerror(code));
}

int post_ask(struct post *p, const struct post_question *q, struct post_answer *ret, struct err *err)
{
	bool same = q->bearer == p->bearer || (q->bearer && p->bearer && !strcmp(q->bearer, p->bearer));
	uint64_t start;
	long status = 0;
	CURLcode code;
	int e = same ? 0 : set_headers(p, q->bearer, err);

	if (!e && is_stopped(p))
		e = err_set(err, ECANCELED, "it was not asked any more");
	if (e)
		return e;
	p->answer.n = 0;
	p->limit = q->limit ? q->limit : POST_LIMIT_BYTES;
	*p->why = 0;
	curl_easy_setopt(p->curl, CURLOPT_TIMEOUT_MS, (long)q->timeout_ms);
	curl_easy_setopt(p->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->n);
	curl_easy_setopt(p->curl, CURLOPT_POSTFIELDS, q->body);
	start = clock_mono_ns();
	code = curl_easy_perform(p->curl);
	ret->ns = clock_mono_ns() - start;
	curl_easy_getinfo(p->curl, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK)
		return failure(p, code, err);
	if (status == 401 || status == 403)
		return err_set(err, EACCES, "%s refuses us (HTTP %ld)", p->url, status);
	if (status != 200 && (!p->answer.n || *p->answer.data != '{'))
		return err_set(err, EIO, "%s answers with HTTP %ld", p->url, status);
	ret->text = p->answer.n ? p->answer.data : "";
	ret->n = p->answer.n;
	return 0;
}

void post_stop(struct post *p)
{
	p->stop = true;
}

void post_stop_on(struct post *p, const volatile sig_atomic_t *flag)
{
	p->flag = flag;
}

void post_close(struct post *p)
{
	if (!p)
		return;
	if (p->curl)
		curl_easy_cleanup(p->curl);
	curl_slist_free_all(p->headers);
	buf_done(&p->answer);
	free(p->bearer);
	free(p->url);
	free(p);
}

bool post_is_local(const char *url)
{
	CURLU *u = curl_url();
	char *host = NULL;
	struct in_addr four;
	bool local = false;

	if (u && !curl_url_set(u, CURLUPART_URL, url, 0) && !curl_url_get(u, CURLUPART_HOST, &host, 0))
		local = !strcasecmp(host, "localhost") || !strcmp(host, "[::1]") ||
			(inet_pton(AF_INET, host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127);
	curl_free(host);
	curl_url_cleanup(u);
	return local;
}
