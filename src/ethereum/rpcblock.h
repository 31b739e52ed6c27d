/*
 * rpcblock.h - parses a node's blocks: the answers of eth_getBlockByNumber and eth_getBlockByHash, and the
 * notifications of subscriptions. A pure parser of untrusted text.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/block.h"

struct err;

struct rpcblock {
	struct block block;
	char hash[67]; /* "0x…" */
};

/* 0; -ENOENT: there is no such block; -EREMOTEIO: the answer is an error; -EBADMSG: it is no such answer. The first reads
 * the result of an answer, the second the answer to the request of that id. */
int rpcblock_read(const json_t *result, struct rpcblock *ret);
int rpcblock_parse(const char *text, size_t n, uint64_t id, struct rpcblock *ret, struct err *why);
/* Classifies a message of a connection that carries both. RPCBLOCK_ANSWER: *ret_id (0 = it has none, or is
 * no number); RPCBLOCK_HEAD: *ret, without transactions. */
enum rpcblock_message { RPCBLOCK_ODD, RPCBLOCK_ANSWER, RPCBLOCK_HEAD };
enum rpcblock_message rpcblock_message(const char *text, size_t n, uint64_t *ret_id, struct rpcblock *ret);
