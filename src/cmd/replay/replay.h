/*
 * replay.h - shared by the files of `replay`: one drives a node over the Engine API, one puts load on a dev
 * node.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ethereum/engine/blocksource.h"

struct err;
struct replay_result;
struct load_result;


enum replay_wait { REPLAY_WAIT_NONE, REPLAY_WAIT_HEAD, REPLAY_WAIT_QUIET, REPLAY_WAIT_PERSISTED };
enum replay_api { REPLAY_API_AUTO, REPLAY_API_ENGINE, REPLAY_API_RETH };

struct replay_options {
	const char *engine, *secret;  /* an address, a file */
	struct blocksource_options source;
	bool from_given, to_given;
	const char *save;             /* a file for the blocks, NULL = none */
	enum replay_api api;
	enum replay_wait wait;
	bool wait_given;              /* else it depends on the node */
	uint64_t wait_every;          /* blocks, 0 = after the last one; where the node itself waits: before each */
	const char *news;             /* a WebSocket, for REPLAY_WAIT_PERSISTED; NULL = none */
	uint64_t lag;                 /* blocks that the node may keep in memory */
	uint64_t interval_ns;         /* between the beginnings of two blocks, at least */
	bool build;                   /* the node builds the blocks */
	uint64_t build_ns;            /* and has so long for it */
	const char *pool;             /* an address, for the transactions of what it builds */
	const pid_t *pids;            /* of the node, for REPLAY_WAIT_QUIET */
	size_t pid_count;
	uint64_t timeout_ms;          /* of one question to the node */
	int marks;                    /* a file in memory for the spans of blocks; -1 = none */
};

/* A block in the file of the marks, on the wall clock. */
struct replay_mark {
	uint64_t start_ns, end_ns, number, gas, transactions;
};

/* Fills ret as far as possible; ret->rows is the caller's, also on error. */
int replay_run(const struct replay_options *o, struct replay_result *ret, struct err *err);

struct load_options {
	const char *url;
	const char *kind;             /* one of load_kinds */
	uint64_t count, duration_ns;
	double rate;                  /* a second, 0 = as fast as it goes */
	uint64_t connections;
	bool allow_remote;
};

extern const char *const load_kinds[]; /* NULL-terminated */

/* The same. */
int load_run(const struct load_options *o, struct load_result *ret, struct err *err);
void load_done(struct load_result *r);
