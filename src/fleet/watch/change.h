/*
 * change.h - what changed between two sides, each of which was measured many times: the statistics of `diff` (analyze/diff) for figures of
 * a fleet. Pure arithmetic.
 *
 * A measurement, or unit, is a target in a slot of time. A row is a figure that has a value and a whole in each unit: the time in a
 * function and of all functions, the time of blocks and their number. Its rate is the ratio of their sums, and its noise is how
 * units differ from the rate of their own target. Targets that are on both sides are compared with themselves: a node that is
 * slower than others is no change. Only where no target is on both are sides compared as a whole.
 *
 * Shares add up to 1: where one takes more, all others have less. Rows with .share are compared at equal work: what changed is
 * taken out of their wholes until what is left did not change, as `diff` does it.
 *
 *	struct change_set s = { .side = { { targets_a, n_a }, { targets_b, n_b } } };
 *	vec_push(&s.rows, (struct change_row){ .value = { a, b }, .whole = { wa, wb }, .share = true, .noise = CHANGE_NOISE_CPU });
 *	change_compare(&s);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* How much a figure differs from one time to another beyond what units show, relative: as in diff.c. */
#define CHANGE_NOISE_CPU 0.01
#define CHANGE_NOISE_OTHER 0.1
/* Among what is found, the share that is not there (Benjamini and Hochberg). */
#define CHANGE_FALSE 0.01

enum { CHANGE_UNITS_MIN = 4, /* of each side: below that nothing is tested */ CHANGE_SAMPLES_MIN = 20 };

struct change_row {
	const double *value[2], *whole[2]; /* by unit; borrowed */
	uint64_t samples[2];   /* of value, for the noise of sampling; 0 = it is no sample */
	bool share;            /* a part of a whole that all rows with .share have in common */
	double noise;
	/* Set by change_compare(). */
	double a, b;           /* rates, as they are */
	double delta;          /* b at equal work - a */
	double low, high;      /* 95 % interval of it */
	double p, q;
	bool tested, significant;
};

struct change_side {
	const uint32_t *target; /* by unit, ascending; within one by time. Borrowed */
	size_t n;
};

struct change_set {
	struct change_side side[2];
	VEC(struct change_row) rows; /* the caller's; vec_done() */
	/* Set by change_compare(). */
	double scale;           /* of b, for equal work */
	bool paired;            /* targets are compared with themselves */
	size_t tested, significant;
};

/* q is among the rows of this set; change_adjust() does it again for the rows of several. */
void change_compare(struct change_set *s);
void change_adjust(struct change_set *const *sets, size_t n);
/* The change in percent of a; INFINITY where that is 0. */
double change_percent(const struct change_row *r, double of);
