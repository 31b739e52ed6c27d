#include "ethereum/rpc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "ethereum/rpccall.h"
#include "ethereum/rpcint.h"

static const struct rpc_way *const ways[] = { &rpc_way_http, &rpc_way_websocket };

static const struct rpc_way *find_way(const char *url)
{
	for (size_t i = 0; i < ARRAY_LEN(ways); i++)
		for (size_t k = 0; k < ARRAY_LEN(ways[i]->schemes) && ways[i]->schemes[k]; k++)
			if (str_starts(url, ways[i]->schemes[k]))
				return ways[i];
	return NULL;
}

int rpc_open(const char *url, struct rpc **ret, struct err *err)
{
	struct rpc *r;
	int e;

	if (str_starts(url, "wss://"))
		return err_set(err, EINVAL, "'%.200s': WebSockets are without encryption here; a node on this machine has ws://, "
			       "another one https://", url);
	if (!find_way(url))
		return err_set(err, EINVAL, "'%.200s' is no address of a node: --rpc http://127.0.0.1:8545 or ws://127.0.0.1:8545",
			       url);
	r = mem_alloc(sizeof(*r));
	r->way = find_way(url);
	e = r->way->open(r, url, err);
	if (e < 0) {
		rpc_close(r);
		return e;
	}
	*ret = r;
	return 0;
}

int rpc_block(struct rpc *r, const char *by, struct rpcblock *ret, struct err *why)
{
	_cleanup_(rpccall_done) struct rpccall c = { 0 };
	const char *answer;
	size_t n;
	int e;

	rpccall_begin(&c, strlen(by) == 66 ? "eth_getBlockByHash" : "eth_getBlockByNumber");
	json_put_string(&c.params, NULL, by);
	json_put_bool(&c.params, NULL, false);
	rpccall_end(&c);
	if (r->stop)
		return err_set(why, EIO, "it was not asked any more");
	e = r->way->ask(r, c.body.data, c.id, &answer, &n, why);
	if (e < 0)
		return e;
	e = rpcblock_parse(answer, n, c.id, ret, why);
	return e == -ENOENT ? err_set(why, ENOENT, "it does not know block %s", by) : e;
}

bool rpc_tells(const struct rpc *r)
{
	return r->way->tells;
}

void rpc_tell_persisted(struct rpc *r)
{
	r->persisted = true;
}

int rpc_head(struct rpc *r, int timeout_ms, struct rpcblock *ret, uint64_t *ret_mono_ns, struct err *why)
{
	if (!r->way->head)
		return err_set(why, ENOTSUP, "it does not announce new blocks");
	return r->way->head(r, timeout_ms, ret, ret_mono_ns, why);
}

void rpc_stop(struct rpc *r)
{
	r->stop = true;
	if (r->way->stop)
		r->way->stop(r);
}

void rpc_close(struct rpc *r)
{
	if (!r)
		return;
	r->way->close(r);
	free(r);
}
