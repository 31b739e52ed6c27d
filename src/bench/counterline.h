/*
 * counterline.h - counters that were read repeatedly: the counts between any two moments.
 *
 * Counts between two readings are spread evenly. Multiplexed counters are scaled by their share within the
 * interval.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/vec.h"

struct counterline_reading {
	uint64_t time_ns;
	bool known[COUNTERS];
	struct counter_raw raw[COUNTERS];
};

struct counterline {
	VEC(struct counterline_reading) list; /* by time */
};

/* A reading that is not later than the last is ignored. */
void counterline_add(struct counterline *c, const struct counterline_reading *reading);
/* Computes the counts between two moments; a counter that is missing in one of the readings around them is
 * unknown. */
void counterline_between(const struct counterline *c, uint64_t from_ns, uint64_t to_ns,
			 struct counter_value ret[COUNTERS]);
void counterline_done(struct counterline *c);
