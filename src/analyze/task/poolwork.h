/*
 * poolwork.h - what the threads of pools ran: the time of each unit of work (tasktype.h) on the CPU, in the run queue, and
 * waiting, by cause.
 *
 * Time on the CPU is sampled, so a unit of which few samples were taken is not known well. Where waits were recorded, each
 * wait is there. A wait of a runtime for work is idle.
 *
 *	struct poolwork w;
 *	if (poolwork_make(&w, p, &options))
 *		for (size_t i = 0; i < w.rows.n; i++)
 *			puts(w.types.list.v[w.rows.v[i].type].name);
 *	poolwork_done(&w);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/task/tasktype.h"
#include "analyze/wait/cause.h"
#include "base/vec.h"

struct profile;
struct select_options;

struct poolwork_row {
	uint32_t type;    /* index into types.list */
	uint32_t threads; /* that ran it */
	uint64_t samples; /* on the CPU */
	uint64_t waits;
	uint64_t ns[CAUSE_COUNT];
};

struct poolwork_pool {
	const char *name;
	uint32_t first, count;    /* rows */
	uint32_t threads;
	char *thread;             /* the name that most of them have, with "*" for numbers in which they differ */
	struct poolwork_row total; /* without a type */
};

struct poolwork {
	struct tasktypes types;
	VEC(struct poolwork_pool) pools; /* of most CPU time first */
	VEC(struct poolwork_row) rows;   /* by pool; of most time on the CPU first, the pool's own work last */
	uint64_t cpu_ns, named_ns;       /* of all pools: on the CPU, and in units that have a name */
	bool cpu, waits;                 /* were they recorded? */
};

/* False: no thread is known to be of a pool; w is empty, but poolwork_done() is due. Of o the threads, processes, causes
 * (NULL: waits have no causes) and the range count. Threads of no known pool count if others of their process have the same
 * name, but for numbers. Units that only waited for work are left out. */
bool poolwork_make(struct poolwork *w, const struct profile *p, const struct select_options *o);
void poolwork_done(struct poolwork *w);

/* The columns of a report. Idle time is in none of them. */
struct poolwork_columns {
	uint64_t cpu_ns, queue_ns, lock_ns, disk_ns, other_ns;
};
struct poolwork_columns poolwork_columns(const struct poolwork_row *r);
