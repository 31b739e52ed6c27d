/*
 * engineapi.h - turns blocks of JSON-RPC into payloads of the Engine API, and parses a node's answers: pure
 * functions of text.
 *
 * The fields of a block tell its version: withdrawals (2, Shanghai), a parent beacon block root (3, Cancun),
 * a hash of requests (4, Prague).
 *
 * All return 0, -EREMOTEIO for an error of JSON-RPC (its text is in err), -EPROTO for a malformed answer, and
 * -EBADMSG or -ENOTSUP for an unusable block. Both texts are untrusted: the caller limits their sizes, all
 * else is checked here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct err;

enum { ENGINE_HASH = 67 }; /* "0x…" and its NUL */

struct engine_block {
	uint64_t number, gas_limit, gas_used, timestamp;
	uint64_t transactions;
	unsigned version;         /* of newPayload: 1 to 4 */
	bool requests_by_hash;    /* its requests are not known, only their hash: what reth takes with an option */
	char hash[ENGINE_HASH], parent[ENGINE_HASH];
	struct buf params;        /* of newPayload: a JSON array */
	struct buf line;          /* the block itself as one line of JSON, as engine_block_read() takes it */
};

/* For a transaction whose fields do not make it: its raw bytes as "0x…" into ret. Negative: they cannot be had. */
typedef int engine_raw_fn(void *context, const char *hash, struct buf *ret);

/* Reads an answer of eth_getBlockByNumber with full transactions, or the bare block. raw may be NULL. -ENOENT: the
 * answer is that there is no such block. Call engine_block_done() in any case. */
int engine_block_read(const char *text, size_t n, engine_raw_fn *raw, void *context, struct engine_block *ret,
		      struct err *err);
void engine_block_done(struct engine_block *b);

/* Appends the params of forkchoiceUpdated: an empty hash is the zero hash. */
void engine_choice_put(struct buf *out, const char *head, const char *safe, const char *final);
/* Of the version of newPayload that of forkchoiceUpdated. */
unsigned engine_choice_version(unsigned payload_version);

enum engine_word {
	ENGINE_VALID,
	ENGINE_INVALID,
	ENGINE_INVALID_HASH, /* "INVALID_BLOCK_HASH", of older nodes */
	ENGINE_SYNCING,
	ENGINE_ACCEPTED,
};
const char *engine_word_name(enum engine_word w);

struct engine_status {
	enum engine_word word;
	char latest_valid[ENGINE_HASH]; /* "" = not said */
	char error[256];                /* the node's reason; "" = none. Control characters are gone. */
};
/* The answer of newPayload or forkchoiceUpdated. */
int engine_status_read(const char *text, size_t n, struct engine_status *ret, struct err *err);

/* The string that is the result of a call: a quantity, a hash. Caller frees. */
int engine_result_read(const char *text, size_t n, char **ret, struct err *err);
