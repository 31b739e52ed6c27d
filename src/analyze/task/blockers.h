/*
 * blockers.h - long polls: what kept a worker of an async runtime from its other tasks, and which tasks lay in its queue
 * meanwhile.
 *
 * A long poll is a mark of the collector. What its thread did within it is known by the samples of the thread: waits and
 * the run queue as recorded, the rest is CPU time (by its samples where waits were not recorded, and the rest unknown).
 * Polls are grouped by their type, the function of the program's own crates with most of the time, and what that time was. A poll that is long only
 * because its thread had no CPU has no place of its own: those of a type are one row, whose cause is the run queue.
 *
 *	struct blockers b;
 *	blockers_make(&b, p, &options, &tasks);
 *	...
 *	blockers_done(&b);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/tree/crate.h"
#include "analyze/tree/ident.h"
#include "analyze/wait/cause.h"
#include "base/vec.h"

struct profile;
struct select_options;
struct tasks;

struct blockers_poll {
	uint32_t type;            /* of tasks, TASKS_NONE = not known */
	uint32_t thread;
	uint64_t start_ns, end_ns;
	uint64_t ns[CAUSE_COUNT]; /* sum to its length */
	const char *function;     /* with most of it: the nearest of the program's own crates, else of any that is no known
				     library; "" = no sample, or no CPU */
	const char *leaf;         /* the nearest that is no known library below that, NULL = the same */
	enum cause cause;         /* of most of it, but for the run queue: CAUSE_QUEUE where it is hardly anything else */
	uint32_t stack;           /* with most of it, 0 = none */
	uint32_t row;
	uint64_t queued, queued_ns; /* tasks that lay in the queue of its worker for 1 ms or more */
};

/* Tasks of a type that lay in the queue meanwhile. */
struct blockers_victim {
	uint32_t type;
	uint64_t ns, count;
};

struct blockers_row {
	uint32_t type;
	const char *function;
	const char *leaf;         /* of most of the polls' time, NULL = none */
	const char *module;       /* of the function: its path, "" = none */
	const char *operation;    /* "fdatasync", NULL = none */
	enum cause cause;
	const struct pattern *pattern; /* of its stack, NULL = none */
	uint64_t count, ns, longest_ns;
	uint64_t by_cause[CAUSE_COUNT];
	uint32_t stack;           /* an example: that of the longest poll */
	uint32_t longest;         /* into polls */
	uint64_t queued, queued_ns;
	VEC(struct blockers_victim) victims; /* those first that lost most */
	uint64_t leaf_ns;         /* private */
};

struct blockers {
	VEC(struct blockers_row) rows;   /* most time first */
	VEC(struct blockers_poll) polls; /* longest first */
	uint64_t ns, queued, queued_ns;
	uint64_t least_ns;               /* the threshold of the recording; else the shortest of them */
	bool waits;                      /* were recorded, so that CPU time is the rest */
	struct idents idents;            /* private, as are names */
	struct crates names;
};

/* Of o the threads, processes, the range and causes count; t is of the same selection. */
void blockers_make(struct blockers *b, const struct profile *p, const struct select_options *o, const struct tasks *t);
void blockers_done(struct blockers *b);
