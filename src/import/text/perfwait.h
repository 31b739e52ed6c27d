/*
 * perfwait.h - switches between threads, in the order of their times, as waits of these threads.
 *
 * A thread that leaves its processor while it can go on (state R) is in the queue until it is back. One that sleeps is blocked
 * until it is woken, and in the queue from then on; where the text has no wakeups it is blocked until it is back. What is still
 * asleep at the end was blocked until then; what ended (state X or Z) waits for nothing. Waits from 1 ms on remember who ended them.
 *
 * Times are as the text has them: the caller moves all samples and wakes of the profile to the beginning.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "folded/collapse/perfline.h"

struct profile;

struct perfwait {
	struct profile *p;
	uint32_t wait_event, queue_event; /* PROFILE_NONE until there is one */
	bool overflow; /* the waits add up to more than can be counted */
	/* The rest is private. */
	uint64_t total_ns;
	struct map tids; /* tid to an index */
	VEC(struct perfwait_thread) threads;
};

void perfwait_init(struct perfwait *w, struct profile *p);
void perfwait_done(struct perfwait *w);
/* A record of the scheduler with the thread in whose name it is, and its stack. False: it is no such event, or does not say what
 * is needed. */
bool perfwait_take(struct perfwait *w, const struct perfline_record *r, uint32_t thread, uint32_t stack);
/* Adds to the sum of all waits what came in another way. */
void perfwait_count(struct perfwait *w, uint64_t ns);
/* Ends what is not over. */
void perfwait_end(struct perfwait *w, uint64_t last_ns);
