/*
 * taskclock.h - from ticks of the processor's time-stamp counter to CLOCK_MONOTONIC.
 *
 * Pairs of both clocks are taken at each look; between two pairs time is linear. Pure but for taskclock_take(): the same
 * pairs give the same times, and a later tick is never an earlier ns.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct err;

struct taskclock_pair {
	uint64_t ticks, ns;
};

enum { TASKCLOCK_PAIRS = 1024 };

struct taskclock {
	struct taskclock_pair pairs[TASKCLOCK_PAIRS]; /* both rise */
	size_t n;
};

/* Can the counter be used on this machine? -ENOTSUP: err says why not. */
int taskclock_check(struct err *err);
uint64_t taskclock_ticks(void);

/* Takes a pair now and adds it. */
void taskclock_take(struct taskclock *c);
/* One that does not rise is left out. Every second of the older half is forgotten when there are too many. */
void taskclock_add(struct taskclock *c, struct taskclock_pair p);
/* Needs two pairs; ticks before the first and after the last are reckoned by the rate next to them. */
uint64_t taskclock_ns(const struct taskclock *c, uint64_t ticks);
/* Ticks in so many ns, by all pairs. */
uint64_t taskclock_span(const struct taskclock *c, uint64_t ns);
