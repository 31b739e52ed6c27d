#include "net/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"

enum { CONNECT_SECONDS = 5, TOTAL_SECONDS = 120, SLOW_SECONDS = 20, SLOW_BYTES_PER_SECOND = 1000 };

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

static void set_options(CURL *curl, const char *url, const struct http_limits *limits, struct transfer *t,
			char *text)
{
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
	curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT,
			 (long)(limits->connect_seconds ? limits->connect_seconds : CONNECT_SECONDS));
	curl_easy_setopt(curl, CURLOPT_TIMEOUT,
			 (long)(limits->total_seconds ? limits->total_seconds : TOTAL_SECONDS));
	if (limits->total_ms) {
		curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)limits->total_ms);
		curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)limits->total_ms);
	}
	if (limits->socket) {
		curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, limits->socket);
		curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
		curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
	}
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SLOW_SECONDS);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES_PER_SECOND);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "gasflame/" GASFLAME_VERSION);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, text);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
}

int http_get(const char *url, const struct http_limits *limits, http_sink *sink, void *context,
	     struct err *err)
{
	struct transfer t = { .sink = sink, .context = context, .limit = limits->bytes };
	char text[CURL_ERROR_SIZE] = "";
	CURL *curl = curl_easy_init();
	long status = 0;
	CURLcode r;

	if (!curl)
		return err_set(err, ENOMEM, "libcurl does not start");
	set_options(curl, url, limits, &t, text);
	r = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(curl);
	if (t.too_large)
		return err_set(err, EFBIG, "%.100s: more than %llu bytes", url,
			       (unsigned long long)limits->bytes);
	if ((r == CURLE_OK && !t.bytes) || status == 404)
		return err_set(err, ENOENT, "%.100s: %s", url,
			       status == 404 ? "the server has no such page (404)" : "the answer is empty");
	if (r != CURLE_OK)
		return err_set(err, EIO, "%.100s: %.100s", url, text[0] ? text : curl_easy_strerror(r));
	return 0;
}

static int append(void *context, const void *data, size_t n)
{
	buf_add(context, data, n);
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
