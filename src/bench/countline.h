/*
 * countline.h - counters as they were read again and again: what was counted between any two moments.
 *
 * What lies between two readings is shared out evenly. Counters that took turns are scaled by how they did within
 * the moments asked for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/vec.h"

struct countline_reading {
	uint64_t time_ns;
	bool known[COUNTERS];
	struct counter_raw raw[COUNTERS];
};

struct countline {
	VEC(struct countline_reading) list; /* by time */
};

/* One that is not later than the last is left out. */
void countline_add(struct countline *c, const struct countline_reading *reading);
/* From one moment to another; what was not read in all of the readings around them is not known. */
void countline_between(const struct countline *c, uint64_t from_ns, uint64_t to_ns,
		       struct counter_value ret[COUNTERS]);
void countline_done(struct countline *c);
