/*
 * perfdataqueue.h - records in the order of their time.
 *
 * perf writes the ring of each CPU as it finds it, and after each round over all of them a record that says so: nothing that
 * comes after is older than the newest record of the round before. What waits here is what came since then. A file that does
 * not say when a round is over may make it wait long: then the oldest half goes first, and a record that is late is counted.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "import/perf/perfdatareader.h"

struct perfdataqueue_entry {
	uint64_t time, number;
	struct perfdatarecord record;
};

/* Returns a negative errno to end it. */
typedef int perfdataqueue_fn(void *context, const struct perfdatarecord *record, uint64_t time);

struct perfdataqueue {
	perfdataqueue_fn *got;
	void *context;
	/* Private. */
	VEC(struct perfdataqueue_entry) list;
	uint64_t number, newest, round, passed;
	size_t bytes;
	uint64_t late; /* out: records that came after younger ones had gone */
};

void perfdataqueue_done(struct perfdataqueue *q);
/* time 0: it goes at once. */
int perfdataqueue_add(struct perfdataqueue *q, const struct perfdatarecord *record, uint64_t time);
/* A round is over. */
int perfdataqueue_round(struct perfdataqueue *q);
/* No more come. */
int perfdataqueue_end(struct perfdataqueue *q);
