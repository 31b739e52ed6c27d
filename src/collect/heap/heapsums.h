/*
 * heapsums.h - allocations and frees of a thread and a stack, summed for 10 ms: millions of them would be too
 * many samples.
 *
 * Changes up to the moment of the last peak are kept apart from later ones, so that the sum of the samples up
 * to that moment is the peak to the byte.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct liveheap;
struct profile;

enum heapsums_what { HEAPSUMS_ALLOC, HEAPSUMS_FREED, HEAPSUMS_TEMPORARY, HEAPSUMS_COUNT };

struct heapsums_pair {
	uint64_t bytes, count;
};

struct heapsums_sum {
	struct heapsums_pair before[HEAPSUMS_COUNT], after[HEAPSUMS_COUNT]; /* the last peak */
	uint64_t peaks; /* how many there had been when something was added last */
	bool used;
};

struct heapsums {
	uint32_t events[HEAPSUMS_COUNT]; /* the profile's */
	/* The rest is private. */
	VEC(struct heapsums_sum) sums;   /* by index of liveheap's parts */
	VEC(uint32_t) used;
	uint64_t until_ns;
	uint64_t lifetimes[64];
};

void heapsums_done(struct heapsums *h);
/* Of a part of live. peaks: live->peaks before this happened. ns: how long it was alive. */
void heapsums_alloc(struct heapsums *h, uint32_t part, uint64_t bytes, uint64_t peaks);
void heapsums_free(struct heapsums *h, uint32_t part, uint64_t bytes, uint64_t peaks, uint64_t ns, bool at_once);
/* An allocation and its free at once, ns later. */
void heapsums_pair(struct heapsums *h, uint32_t part, uint64_t bytes, uint64_t peaks, uint64_t ns);
/* Samples for the profile. */
void heapsums_flush_now(struct heapsums *h, const struct liveheap *live, struct profile *p, uint64_t time_ns);
/* The same when 10 ms are over: asked before each event. */
static inline void heapsums_flush(struct heapsums *h, const struct liveheap *live, struct profile *p, uint64_t time_ns)
{
	if (time_ns >= h->until_ns)
		heapsums_flush_now(h, live, p, time_ns);
}
