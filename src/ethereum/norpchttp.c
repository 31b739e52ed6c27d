/* norpchttp.c - JSON-RPC over HTTP in a build without libcurl. */
#include <errno.h>

#include "base/err.h"
#include "ethereum/rpcint.h"

static int open_http(struct rpc *r, const char *url, struct err *err)
{
	return err_set(err, ENOSYS, "this gasflame was built without libcurl, which --rpc http:// needs; ws:// goes without");
}

static void close_http(struct rpc *r)
{
}

const struct rpc_way rpc_way_http = { .schemes = { "http://", "https://" }, .open = open_http, .close = close_http };
