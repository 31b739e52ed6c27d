/*
 * engineapi.h - turns blocks of JSON-RPC into payloads of the Engine API, and reads a node's answers: pure
 * functions of JSON.
 *
 * The fields of a block tell its version: withdrawals (2, Shanghai), a parent beacon block root (3, Cancun),
 * a hash of requests (4, Prague and Osaka), a slot (5, Amsterdam). A chain of the OP stack is known by its
 * first transaction, a deposit; its payloads have the withdrawalsRoot from version 4 (Isthmus) on.
 *
 * All return 0, -EPROTO for a malformed answer, and -EBADMSG or -ENOTSUP for an unusable block. The JSON is
 * untrusted: its parser limits its size and depth, all else is checked here.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct err;
struct json;

enum { ENGINE_HASH = 67 }; /* "0x…" and its NUL */

struct engine_block {
	uint64_t number, gas_limit, gas_used, timestamp;
	uint64_t transactions;
	unsigned version;         /* of newPayload: 1 to 5 */
	bool op;                  /* a block of the OP stack */
	bool requests_by_hash;    /* its requests are not known, only their hash: what reth takes with an option */
	char hash[ENGINE_HASH], parent[ENGINE_HASH], beacon_root[ENGINE_HASH]; /* beacon_root: "" before version 3 */
	struct buf params;        /* of newPayload: a JSON array */
	struct buf reth;          /* the first parameter of reth_newPayload; empty if not asked for */
	struct buf attributes;    /* to have a node build such a block: a JSON object; empty if not asked for */
	struct buf raw;           /* with attributes: its transactions, a JSON array of "0x…" */
	struct buf line;          /* the block itself as one line of JSON, as engine_block_read() takes it */
};

/* What JSON-RPC leaves out of a block. Found once, it is a member of the block, and so is saved with it. */
enum engine_extra {
	ENGINE_TRANSACTION, /* the raw bytes of one whose fields do not make it: "0x…"; its member "raw" */
	ENGINE_ACCESS_LIST, /* "0x…", of Amsterdam; "blockAccessList" */
	ENGINE_RLP,         /* of the block whose fields do not make it: "0x…"; "rlp" */
	ENGINE_REQUESTS,    /* an array of "0x…"; "executionRequests" */
};
/* of: the transaction, or the block. *ret: a reference of the caller's; NULL: it cannot be had. Negative: an error that
 * ends the reading of the block. */
typedef int engine_extra_fn(void *context, enum engine_extra what, const json_t *of, json_t **ret, struct err *err);

struct engine_reading {
	engine_extra_fn *extra; /* may be NULL */
	void *context;
	bool reth, build;       /* fill in the members of these names, too: reth; attributes and raw */
};

/* Reads a block as eth_getBlockByNumber answers it with full transactions. Call engine_block_done() in any case. */
int engine_block_read(json_t *block, const struct engine_reading *how, struct engine_block *ret, struct err *err);
void engine_block_done(struct engine_block *b);

/* Puts the state of forkchoiceUpdated: an empty hash is the zero hash. */
void engine_state_put(struct json *j, const char *head, const char *safe, const char *final);
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

#define ENGINE_UNKNOWN UINT64_MAX

struct engine_status {
	enum engine_word word;
	char latest_valid[ENGINE_HASH]; /* "" = not said */
	char error[256];                /* the node's reason; "" = none. Control characters are gone. */
	char payload_id[19];            /* of forkchoiceUpdated with attributes; "" = none */
	/* Of reth_newPayload, or ENGINE_UNKNOWN: the server's own time, and what it waited for before. */
	uint64_t server_us, persistence_us, cache_us, trie_us;
};
/* The result of newPayload or forkchoiceUpdated. */
int engine_status_read(const json_t *result, struct engine_status *ret, struct err *err);

/* The result of getPayload, as the block to import. */
struct engine_built {
	uint64_t number, gas_limit, gas_used, transactions;
	char hash[ENGINE_HASH];
	struct buf params; /* of newPayload */
};
/* b: the block whose attributes were sent. Call engine_built_done() in any case. */
int engine_built_read(const json_t *result, const struct engine_block *b, struct engine_built *ret, struct err *err);
void engine_built_done(struct engine_built *b);
