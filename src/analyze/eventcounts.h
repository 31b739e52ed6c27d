/*
 * eventcounts.h - how often each event that was recorded happened, and what its values add up to.
 */
#pragma once

#include <stdint.h>

#include "base/vec.h"

struct err;
struct profile;
struct select_options;

struct eventcounts_event {
	uint64_t count; /* how often; a sample may represent many */
	uint64_t value; /* in the event's unit */
	uint64_t waits; /* of count: futex calls that go to wait, by the note below their stack */
};

struct eventcounts {
	VEC(struct eventcounts_event) events; /* by the profile's event */
};

/* Counts the selected threads, processes and time; functions are ignored. */
int eventcounts_make(struct eventcounts *t, const struct profile *p, const struct select_options *o, struct err *err);
void eventcounts_done(struct eventcounts *t);
