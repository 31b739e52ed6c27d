/*
 * rpcint.h - struct rpc, for rpc.c and the ways to ask.
 */
#pragma once

#include <stdatomic.h>

#include "ethereum/rpc.h"

struct rpc {
	const struct rpc_way *way;
	void *data; /* the way's */
	bool persisted; /* what rpc_head() is to hear of: rpc_tell_persisted() */
	atomic_bool stop;
};
