/*
 * rpc.h - asks a node for its blocks over JSON-RPC. Each question takes at most a few seconds.
 *
 * One thread at a time, but rpc_stop() may come from any.
 */
#pragma once

#include "target/rpcblock.h"

struct err;
struct rpc;

/* http or https. -ENOSYS: built without libcurl. */
int rpc_open(const char *url, struct rpc **ret, struct err *err);
/* by: "latest", "0x12", or a hash of 66 characters. Errors of rpcblock_parse(), or -EIO; why says it. */
int rpc_block(struct rpc *r, const char *by, struct rpcblock *ret, struct err *why);
/* What is asked now, or later, fails soon. */
void rpc_stop(struct rpc *r);
void rpc_close(struct rpc *r); /* NULL is fine */
