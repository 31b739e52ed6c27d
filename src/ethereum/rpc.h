/*
 * rpc.h - asks a node for its blocks over JSON-RPC, by HTTP or by a WebSocket, over which the node also
 * announces new ones. Each request takes at most a few seconds.
 *
 * One thread at a time, but rpc_stop() may come from any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ethereum/rpcblock.h"

struct err;
struct rpc;

/* http, https or ws. -EOPNOTSUPP: http in a build without libcurl. */
int rpc_open(const char *url, struct rpc **ret, struct err *err);
/* by: "latest", "0x12", or a hash of 66 characters. Errors of rpcblock_parse(), or -EIO; why says it. */
int rpc_block(struct rpc *r, const char *by, struct rpcblock *ret, struct err *why);
/* Returns whether the node announces new blocks. */
bool rpc_tells(const struct rpc *r);
/* Before the first rpc_head(): instead of new blocks it announces those that it has on disk (reth). They have a number and
 * a hash, and no gas. */
void rpc_tell_persisted(struct rpc *r);
/* Waits, at most so long, until it does: 1, the block but for its transactions, and when it was heard of; 0: none
 * came. Errors as above, once more after each call: it connects again by itself. */
int rpc_head(struct rpc *r, int timeout_ms, struct rpcblock *ret, uint64_t *ret_mono_ns, struct err *why);
/* Makes the current request, and later ones, fail soon. */
void rpc_stop(struct rpc *r);
void rpc_close(struct rpc *r); /* NULL is fine */

/* --- the ways to ask, one a file --- */

struct rpc_way {
	const char *schemes[3];
	bool tells;
	int (*open)(struct rpc *r, const char *url, struct err *err); /* may leave r->data half made */
	/* Sends a request and waits for the answer, which is valid until the next. */
	int (*ask)(struct rpc *r, const char *body, uint64_t id, const char **ret, size_t *ret_n, struct err *why);
	int (*head)(struct rpc *r, int timeout_ms, struct rpcblock *ret, uint64_t *ret_mono_ns, struct err *why);
	void (*stop)(struct rpc *r); /* ends the current request, from any thread; NULL: r->stop is polled */
	void (*close)(struct rpc *r);
};
extern const struct rpc_way rpc_way_http, rpc_way_websocket;
