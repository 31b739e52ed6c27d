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
	uint64_t recorded;  /* of the events; the others only passed our programs */
	uint64_t others_ns; /* of ns: for these; percent is without them */
	double others_percent; /* of all CPUs */
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

/* What was added for each run of a BPF program that is reached in this way. */
struct cost_way {
	char *name;
	uint64_t ns;
	bool assumed; /* else it was measured at the start */
};

/* What the percentages are a part of. */
enum cost_base { COST_OF_TARGET, COST_OF_CPU /* of a tenth of one: it used less */, COST_OF_EITHER /* by the second */ };

struct cost {
	VEC(struct cost_row) rows;   /* the dearest first */
	VEC(struct cost_span) spans; /* by collector and time */
	VEC(struct cost_way) ways;
	enum cost_base base;
	double cpus; /* that the target used; negative: an older capture, which does not say */
	uint64_t base_ns, threads_ns, machine_ns, start_ns; /* base: the recorder's */
	double percent, others_percent; /* of base; of all CPUs, that other processes lose */
	double limit, floor; /* 0 = none; what is larger, percent or others_percent, is held against them */
	bool estimated;
};

void cost_build(struct cost *c, const struct profile *p);
void cost_done(struct cost *c);
/* Points by which 95 % of a thinned collector's shares by stack are wrong at most. */
double cost_error_points(const struct cost_row *row);
