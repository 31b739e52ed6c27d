#include "target/rpc.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum { CONNECT_MS = 1000, TOTAL_MS = 2000, LIMIT_BYTES = 16 << 20 };

struct rpc {
	CURL *curl;
	struct curl_slist *headers;
	char *url;
	struct buf answer;
	atomic_bool stop;
};

static size_t store(char *data, size_t size, size_t count, void *context)
{
	struct rpc *r = context;

	if (size * count > LIMIT_BYTES - r->answer.n)
		return 0;
	buf_add(&r->answer, data, size * count);
	return size * count;
}

static int look(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	struct rpc *r = context;

	return r->stop;
}

int rpc_open(const char *url, struct rpc **ret, struct err *err)
{
	struct rpc *r;

	if (!str_starts(url, "http://") && !str_starts(url, "https://"))
		return err_set(err, EINVAL, "'%s' is no address of a node: --rpc http://127.0.0.1:8545", url);
	r = mem_alloc(sizeof(*r));
	r->url = mem_strdup(url);
	r->curl = curl_easy_init();
	r->headers = curl_slist_append(NULL, "Content-Type: application/json");
	if (!r->curl || !r->headers) {
		rpc_close(r);
		return err_set(err, ENOMEM, "libcurl has no memory");
	}
	curl_easy_setopt(r->curl, CURLOPT_URL, r->url);
	curl_easy_setopt(r->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(r->curl, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(r->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(r->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(r->curl, CURLOPT_TIMEOUT_MS, (long)TOTAL_MS);
	curl_easy_setopt(r->curl, CURLOPT_USERAGENT, "gasflame/" GASFLAME_VERSION);
	curl_easy_setopt(r->curl, CURLOPT_HTTPHEADER, r->headers);
	curl_easy_setopt(r->curl, CURLOPT_WRITEFUNCTION, store);
	curl_easy_setopt(r->curl, CURLOPT_WRITEDATA, r);
	curl_easy_setopt(r->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(r->curl, CURLOPT_XFERINFOFUNCTION, look);
	curl_easy_setopt(r->curl, CURLOPT_XFERINFODATA, r);
	*ret = r;
	return 0;
}

int rpc_block(struct rpc *r, const char *by, struct rpcblock *ret, struct err *why)
{
	char body[256];
	CURLcode code;
	int e;

	if (r->stop)
		return err_set(why, EIO, "it was not asked any more");
	snprintf(body, sizeof(body), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":[\"%.70s\",false]}",
		 strlen(by) == 66 ? "eth_getBlockByHash" : "eth_getBlockByNumber", by);
	r->answer.n = 0;
	curl_easy_setopt(r->curl, CURLOPT_COPYPOSTFIELDS, body);
	code = curl_easy_perform(r->curl);
	if (code != CURLE_OK)
		return err_set(why, EIO, "%s", code == CURLE_WRITE_ERROR ? "its answer is too long" :
								      curl_easy_strerror(code));
	e = rpcblock_parse(r->answer.n ? r->answer.data : "", r->answer.n, ret);
	if (e == -ENOENT)
		return err_set(why, ENOENT, "it does not know block %s", by);
	if (e)
		return err_set(why, -e, e == -EREMOTEIO ? "it answers with an error" : "what it answers is no block");
	return 0;
}

void rpc_stop(struct rpc *r)
{
	r->stop = true;
}

void rpc_close(struct rpc *r)
{
	if (!r)
		return;
	if (r->curl)
		curl_easy_cleanup(r->curl);
	curl_slist_free_all(r->headers);
	buf_done(&r->answer);
	free(r->url);
	free(r);
}
