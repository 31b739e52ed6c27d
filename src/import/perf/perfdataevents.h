/*
 * perfdataevents.h - the events of the profile that those of perf.data become, and their samples.
 *
 * cpu-clock and task-clock are CPU time in ns: the first of them is "cpu", as in a capture. The scheduler's tracepoints also
 * make "wait" and "queue". Events without samples of their own (dummy) are none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct perfdatafacts;
struct profile;
struct profile_sample;
struct schedwaits;

struct perfdataevents {
	struct profile *p; /* set by the caller */
	/* Private. */
	size_t known;          /* events of the file that are events of the profile */
	VEC(uint64_t) totals;  /* of samples, by event of the profile */
};

void perfdataevents_done(struct perfdataevents *e);
/* Makes events of those that the file has by now. */
void perfdataevents_prepare(struct perfdataevents *e, struct perfdatafacts *facts, struct schedwaits *waits);
/* False: the samples of the event add up to more than can be counted. */
bool perfdataevents_add(struct perfdataevents *e, const struct profile_sample *s);
