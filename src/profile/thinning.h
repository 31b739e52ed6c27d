/*
 * thinning.h - how a recording that was thinned to keep its budget says so, in words.
 *
 * The collector's name and a number are in the capture: KEY_THIN_OF, a point where it changed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf;

struct thinning_cost {
	const char *collector;
	double percent;
};

/* "1 in 8 of the usual stacks of short waits" */
void thinning_words(struct buf *b, const char *collector, uint64_t one_in);
/* Points by which 95 % of the shares by stack of that many independent samples are wrong at most; 100 for none. */
double thinning_error_points(uint64_t sampled);
/* What keeps a limit that no thinning keeps: "To keep 3 %, record without wait (the rest costs 1.2 %), or allow more
 * (--max-overhead 13%)". The fewest collectors, the dearest first; total has more than the costs in it: what is nobody's. */
void thinning_advice(struct buf *b, const struct thinning_cost *costs, size_t n, double total, double limit);
