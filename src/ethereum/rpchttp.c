/*
 * rpchttp.c - JSON-RPC over HTTP.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "ethereum/rpcint.h"
#include "net/http.h"

enum { TOTAL_MS = 2000, ANSWER_BYTES = 16 << 20 };

static int open_http(struct rpc *r, const char *url, struct err *err)
{
	struct http *h = NULL;
	int e = http_open(url, "--rpc http://", &h, err);

	r->data = h;
	if (e == -EOPNOTSUPP)
		return err_set(err, EOPNOTSUPP, "this gasflame was built without HTTP (-Dhttp=disabled): give --rpc ws://");
	return e;
}

static int ask_http(struct rpc *r, const char *body, uint64_t id, const char **ret, size_t *ret_n, struct err *why)
{
	const struct http_question q = { .body = body, .n = strlen(body), .timeout_ms = TOTAL_MS, .limit = ANSWER_BYTES };
	struct http_answer a = { 0 };
	int e = http_ask(r->data, &q, &a, why);

	*ret = a.text;
	*ret_n = a.n;
	return e;
}

static void stop_http(struct rpc *r)
{
	http_stop(r->data);
}

static void close_http(struct rpc *r)
{
	http_close(r->data);
}

const struct rpc_way rpc_way_http = { .schemes = { "http://", "https://" }, .open = open_http, .ask = ask_http,
				      .stop = stop_http, .close = close_http };
