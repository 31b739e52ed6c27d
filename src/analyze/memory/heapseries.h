/*
 * heapseries.h - a heap over time: the live bytes at any moment of a recording, by stack.
 *
 * Made from allocations and frees (-e heap), or from the changes between dumps
 * (import/jemalloc/heapdumps.h).
 *
 *	struct heapseries h;
 *	r = heapseries_make(&h, p, &options, &err);
 *	struct selection s;
 *	heapseries_at(&h, h.peak_ns, &s);
 *	...calltree_build(&tree, p, &s, ...)...
 *	selection_done(&s);
 *	heapseries_done(&h);
 *
 * Moments must be asked for in ascending order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/select.h"
#include "base/map.h"
#include "base/vec.h"

struct err;
struct profile;

struct heapseries_step {
	uint64_t time_ns;
	uint64_t bytes, count;
	uint32_t thread, stack;
	bool down;
};

struct heapseries {
	const struct profile *p;
	struct select_options options;
	VEC(struct heapseries_step) steps; /* by time */
	uint64_t peak_bytes, peak_ns, end_ns;
	/* The rest is private. */
	size_t at;
	VEC(struct select_entry) cells;
	struct map index;
};

/* Of o the filters of threads, processes and functions count. -ENODATA: this is no recording of a heap. */
int heapseries_make(struct heapseries *h, const struct profile *p, const struct select_options *o,
		    struct err *err);
void heapseries_done(struct heapseries *h);
/* Selects the live bytes after all changes up to time_ns. selection_done(ret) in the end. */
void heapseries_at(struct heapseries *h, uint64_t time_ns, struct selection *ret);
/* Up to most moments that tell the story: each change if there are few, else evenly spaced, with the peak and
 * the end. */
size_t heapseries_moments(const struct heapseries *h, uint64_t *ret, size_t most);
