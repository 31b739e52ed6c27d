/*
 * heapsteps.h - a heap as allocations and frees in their order, for formats that have a line for each.
 *
 * Made of what a recording has of a heap over time (heapseries.h), where allocations and frees of some milliseconds are one sum;
 * else of its totals: allocated, at the peak, at the end. Allocations that were freed at once ("temporary") are
 * found again among them, each at the time of its allocation. Of those that were alive at the peak only one can be: in a
 * list of what happened one after the other, others would be alive between its allocation and its free.
 *
 *	struct heapsteps h;
 *	r = heapsteps_make(&h, job, &err);
 *	for (size_t i = 0; i < h.list.n; i++)
 *		use(&h.list.v[i]);
 *	heapsteps_done(&h);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct err;
struct export_job;

struct heapsteps_sum {
	uint64_t bytes, count;
};

/* What happened to one stack of one thread at one time. */
struct heapstep {
	uint64_t time_ns;
	uint32_t stack, thread;
	bool down;                    /* freed */
	struct heapsteps_sum sum;     /* without the temporary ones */
	struct heapsteps_sum temporary; /* allocated and freed at once */
	struct heapsteps_sum topmost; /* the same for one object that made the peak: all others of this time come before it */
	/* Private. */
	uint32_t before;              /* step of the same stack and thread */
};

struct heapsteps {
	VEC(struct heapstep) list;    /* by time; what was allocated before what was freed */
	uint64_t calls;               /* allocations in it */
	uint64_t peak_ns, end_ns;
	bool topped;                  /* some step has a topmost one */
	uint64_t lost;                /* temporary ones that are not told apart from others */
};

/* -ENODATA: there is no heap in it. heapsteps_done() in any case. */
int heapsteps_make(struct heapsteps *h, const struct export_job *job, struct err *err);
void heapsteps_done(struct heapsteps *h);
