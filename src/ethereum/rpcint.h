/*
 * rpcint.h - struct rpc, for rpc.c and the ways to ask.
 */
#pragma once

#include <stdatomic.h>

#include "ethereum/rpc.h"

struct rpc {
	const struct rpc_way *way;
	void *data; /* the way's */
	uint64_t id; /* of the last question */
	atomic_bool stop;
};
