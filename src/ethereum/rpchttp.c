/*
 * rpchttp.c - JSON-RPC over HTTP, by libcurl.
 */
#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "ethereum/rpcint.h"

enum { CONNECT_MS = 1000, TOTAL_MS = 2000, LIMIT_BYTES = 16 << 20 };

struct http {
	CURL *curl;
	struct curl_slist *headers;
	char *url;
	struct buf answer;
};

static size_t store(char *data, size_t size, size_t count, void *context)
{
	struct http *h = context;

	if (size * count > LIMIT_BYTES - h->answer.n)
		return 0;
	buf_add(&h->answer, data, size * count);
	return size * count;
}

static int look(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	struct rpc *r = context;

	return r->stop;
}

static int open_http(struct rpc *r, const char *url, struct err *err)
{
	struct http *h = r->data = mem_alloc(sizeof(*h));

	h->url = mem_strdup(url);
	h->curl = curl_easy_init();
	h->headers = curl_slist_append(NULL, "Content-Type: application/json");
	if (!h->curl || !h->headers)
		return err_set(err, ENOMEM, "libcurl has no memory");
	curl_easy_setopt(h->curl, CURLOPT_URL, h->url);
	curl_easy_setopt(h->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(h->curl, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, (long)TOTAL_MS);
	curl_easy_setopt(h->curl, CURLOPT_USERAGENT, "gasflame/" GASFLAME_VERSION);
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, h->headers);
	curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, store);
	curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, h);
	curl_easy_setopt(h->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(h->curl, CURLOPT_XFERINFOFUNCTION, look);
	curl_easy_setopt(h->curl, CURLOPT_XFERINFODATA, r);
	return 0;
}

static int ask_http(struct rpc *r, const char *body, uint64_t id, const char **ret, size_t *ret_n, struct err *why)
{
	struct http *h = r->data;
	CURLcode code;

	h->answer.n = 0;
	curl_easy_setopt(h->curl, CURLOPT_COPYPOSTFIELDS, body);
	code = curl_easy_perform(h->curl);
	if (code != CURLE_OK)
		return err_set(why, EIO, "%s", code == CURLE_WRITE_ERROR ? "its answer is too long" :
								      curl_easy_strerror(code));
	*ret = h->answer.n ? h->answer.data : "";
	*ret_n = h->answer.n;
	return 0;
}

static void close_http(struct rpc *r)
{
	struct http *h = r->data;

	if (!h)
		return;
	if (h->curl)
		curl_easy_cleanup(h->curl);
	curl_slist_free_all(h->headers);
	buf_done(&h->answer);
	free(h->url);
	free(h);
}

const struct rpc_way rpc_way_http = { .schemes = { "http://", "https://" }, .open = open_http, .ask = ask_http,
				      .close = close_http };
