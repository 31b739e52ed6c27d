/*
 * taskseries.h - what tasks and the threads that poll them did over time: series of a profile.
 *
 * A poll is known when it is over, and so is the time that a task was in a queue: slots of 10 ms are kept open for about a
 * second. Points are 10 ms apart at first; the distance doubles each time that the recording is twice as long. A quiet
 * time has a point with zeros at its beginning and one at its end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct profile;

enum { TASKSERIES_OPEN = 128 };
#define TASKSERIES_SLOT_NS 10000000ULL

struct taskseries_slot {
	uint64_t queue_ns, busy_ns, polls, longest_ns;
};

/* A poll of a thread that is counted, or several that were next to each other. */
struct taskseries_span {
	uint64_t begin_ns, busy_ns;
};

enum { TASKSERIES_SPANS = 16 };

struct taskseries_thread {
	struct taskseries_span spans[TASKSERIES_SPANS]; /* by begin */
	unsigned n;
	uint64_t seen_ns; /* a poll that is under way is counted up to here */
};

struct taskseries {
	struct profile *p;
	uint32_t queue, polls, longest, busy; /* series */
	uint64_t first; /* slot, the oldest that is open */
	struct taskseries_slot open[TASKSERIES_OPEN];
	VEC(struct taskseries_thread) threads;
	struct taskseries_slot sum; /* of slots that become one point */
	uint64_t begin;             /* the first of them */
	uint64_t written_ns;        /* time of the last points */
	bool quiet;                 /* the last points were zeros */
};

void taskseries_init(struct taskseries *s, struct profile *p);
void taskseries_done(struct taskseries *s);
/* A task was in a queue. */
void taskseries_queue(struct taskseries *s, uint64_t begin_ns, uint64_t end_ns);
/* A poll is over. A poll within a poll of the same thread comes first, and is no time of its own. aside: of the pool for
 * blocking calls, which is counted and keeps no worker busy. */
void taskseries_poll(struct taskseries *s, uint32_t thread, uint64_t begin_ns, uint64_t end_ns, bool aside);
/* A poll is under way. */
void taskseries_under_way(struct taskseries *s, uint32_t thread, uint64_t begin_ns, uint64_t now_ns, bool aside);
void taskseries_until(struct taskseries *s, uint64_t time_ns);
void taskseries_finish(struct taskseries *s, uint64_t end_ns);
