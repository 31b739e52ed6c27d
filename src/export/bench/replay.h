/*
 * replay.h - writes the results of a replay of blocks, or of a load: for people, for spreadsheets and for
 * programs. Pure functions into a buffer.
 *
 * The CSV files have the columns that reth-bench had, times in microseconds; `compare` reads them, and the JSON.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct buf;

#define REPLAY_UNKNOWN UINT64_MAX

struct replay_row {
	uint64_t number, gas_limit, gas_used, transactions;
	uint64_t attributes_ns, get_ns; /* of a block that was built: forkchoiceUpdated with attributes, getPayload */
	uint64_t payload_ns, choice_ns; /* newPayload, forkchoiceUpdated: from asking to the whole answer */
	uint64_t total_ns;              /* from the first question to the last answer; built: the sum of the four */
	/* What the node says itself: its time for the payload, and what it waited for before. */
	uint64_t server_ns, persistence_ns, cache_ns, trie_ns;
	uint64_t start_wall_ns;
	uint64_t end_ns;                /* since the beginning of the replay */
};
/* Times that a row does not have are REPLAY_UNKNOWN. */
extern const struct replay_row replay_row_empty;

struct replay_result {
	const char *engine;              /* as it was typed */
	const char *api;                 /* "engine" or "reth" */
	VEC(struct replay_row) rows;
	uint64_t wall_ns;                /* from the first question to the last answer */
	uint64_t source_ns, persist_ns;  /* of it waited for blocks, and until blocks were seen to be kept */
	uint64_t interval_ns;            /* and to send blocks no faster than was asked for */
	const char *watched;             /* by what, in words */
	uint64_t syncing, accepted;      /* such answers */
	uint64_t retried, source_retried;
	bool built;                      /* the node built the blocks */
	uint64_t same, refused;          /* built: as many have the hash of the source's block; transactions that its pool refused */
	const char *stopped;             /* why it ended early, in a word or two; NULL: it did not */
};

/* list: a line for each block too. */
void replaytext_put(const struct replay_result *r, bool list, struct buf *out);
void replayjson_put(const struct replay_result *r, struct buf *out);
void replaylatency_put(const struct replay_result *r, struct buf *out); /* combined_latency.csv */
void replaygas_put(const struct replay_result *r, struct buf *out);     /* total_gas.csv */
void replaybuilt_put(const struct replay_result *r, struct buf *out);   /* built_latency.csv, instead of the two */

struct load_kind {
	const char *name;
	VEC(uint64_t) latencies_ns; /* of requests that the node accepted */
	uint64_t errors;
	char error[160];            /* the last one, in the node's words */
};

struct load_result {
	const char *url;
	struct load_kind *kinds;
	size_t kind_count;
	uint64_t wall_ns, connections;
	double rate_wanted;         /* a second, 0 = as fast as it goes */
	bool mined_known;
	uint64_t blocks, gas, transactions; /* mined meanwhile, from any sender */
	uint64_t pending;           /* sent and not mined at the end */
	const char *stopped;
};

void loadtext_put(const struct load_result *r, struct buf *out);
void loadjson_put(const struct load_result *r, struct buf *out);
