/*
 * blockmarksint.h - struct blockmarks, for blockmarks.c and blocknode.c.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/vec.h"
#include "collect/blocks/blockmarks.h"
#include "collect/blocks/blockmatch.h"
#include "ethereum/log/blocklog.h"

enum { BLOCKMARKS_WAITING = 4096 }; /* blocks that wait for an answer; beyond that they go without */

/* A block on its way into the profile. */
struct blockmarks_entry {
	struct blocklog_block said;
	bool logged;       /* by the log: later lines may tell more */
	bool asking;       /* the node has not said what it is yet */
	bool answered;     /* the node has */
	bool spanned;      /* its span is that of its function, or there is none */
	uint32_t thread;   /* that made it, PROFILE_NONE = not known */
	uint64_t looked_ns; /* by looks at the node only: when it was looked at before */
	uint64_t since_ns;
};

struct blockmarks {
	struct blockmarks_options options;
	struct journal *journal;
	struct logs *logs;
	struct blocklog *parser;
	struct xlayertrace *xlayer; /* once there was a line of such a log to look at */
	struct rpc *rpc;
	pthread_t log_thread, rpc_thread;
	bool log_runs, rpc_runs;
	atomic_bool log_stop, rpc_stop;
	_Atomic uint64_t row;     /* questions that failed, one after the other */
	_Atomic uint64_t skipped; /* blocks that nobody asked about */
	bool logs_told, rpc_told;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t asked; /* the rpc thread has something to do, or shall end */
	VEC(struct blockmarks_entry) entries;
	uint64_t removed;     /* entries that are in the profile: their number is removed + index */
	struct err log_err, rpc_err;
	uint64_t answered, unanswered, differs, failures;
	uint64_t before, after; /* blocks that began before the recording, or were done after it */

	/* The session's alone. */
	struct blockmatch match;
	bool expects_spans, late_spans;
	bool numbered;        /* the program says which block is which: the node's word for that is not needed */
	uint64_t spanned, spanless, unnamed;
	VEC(struct blockmarks_entry) held; /* that enter the profile at the end (options.late) */
};

/* A line of X Layer's trace.log. False: it is of another log. */
bool blockxlayer_line(struct blockmarks *m, const char *line, size_t n);
/* The thread that asks the node; its context is the struct mark. */
void *blocknode_run(void *mark);
