/*
 * rpcblock.h - the answer of eth_getBlockByNumber and eth_getBlockByHash: a pure parser of what a stranger sent.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct rpcblock {
	uint64_t number, gas, transactions;
	char hash[67]; /* "0x…" */
};

/* 0; -ENOENT: there is no such block; -EREMOTEIO: the answer is an error; -EBADMSG: it is no such answer. */
int rpcblock_parse(const char *text, size_t n, struct rpcblock *ret);
