/*
 * cost.h - what a recording cost, by collector, and what was thinned when to keep the limit.
 *
 * Read from the counters and series that the recorder wrote (budget.h); a capture without them has no rows.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct profile;

/* A collector, or "own": what is no collector's. */
struct cost_row {
	char *name;
	uint64_t events, ns, bpf_ns;
	double percent;
	uint64_t sampled;  /* events that it looked at while it was thinned, 0 = it never was */
	uint64_t least_ns; /* of an event, as far as thinning can go; 0 = not known */
};

/* From one time to another a collector did 1 in so many. */
struct cost_span {
	char *collector;
	uint64_t one_in;
	uint64_t from_ns, to_ns;
};

struct cost {
	VEC(struct cost_row) rows;   /* the dearest first */
	VEC(struct cost_span) spans; /* by collector and time */
	uint64_t base_ns, start_ns;
	double percent, limit, floor; /* limit, floor: 0 = none */
	bool estimated;
};

void cost_build(struct cost *c, const struct profile *p);
void cost_done(struct cost *c);
/* Points by which 95 % of a thinned collector's shares by stack are wrong at most. */
double cost_error_points(const struct cost_row *row);
