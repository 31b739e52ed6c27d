/*
 * tally.h - how often each event that was recorded happened, and what its values add up to.
 */
#pragma once

#include <stdint.h>

#include "base/vec.h"

struct err;
struct profile;
struct select_options;

struct tally_event {
	uint64_t count; /* how often; a sample may represent many */
	uint64_t value; /* in the event's unit */
	uint64_t waits; /* of count: futex calls that go to wait, by the note below their stack */
};

struct tally {
	VEC(struct tally_event) events; /* by the profile's event */
};

/* Counts the selected threads, processes and time; functions are ignored. */
int tally_make(struct tally *t, const struct profile *p, const struct select_options *o, struct err *err);
void tally_done(struct tally *t);
