/*
 * taskrings.h - reads the rings of a target's threads: one order of all events, in ticks (blob/task.h).
 *
 * All that is in the rings was written by the target, and may be anything: values are limited, an event that cannot be is
 * left out and counted. What must not be done twice is done on a copy.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct task_shared;
struct taskrings;

struct taskrings_event {
	uint64_t over, ticks; /* when it was over; of a poll how long it took */
	uint64_t header, task, waker;
	uint64_t awaited, interval; /* of a wake with a ticket, in ticks */
	uint32_t ring, identity;    /* number of the thread, as that sees it; 0: not known */
	uint32_t number;            /* of the vtable */
	uint32_t waker_number;      /* where there is a waker: of its vtable */
	uint32_t what;              /* enum task_kind: poll, wake or dealloc */
	uint32_t ticket;
};

struct taskrings *taskrings_new(struct task_shared *s); /* s is the caller's */
void taskrings_free(struct taskrings *r);
/* Forgets all that is there; a recording begins now. */
void taskrings_begin(struct taskrings *r, uint64_t now);

/*
 * Up to which moment no thread can still write an event. A thread that is about to write one holds that up, but not for
 * longer than patience. margin: until what one processor has written is seen by all others. all: no hook is at work.
 */
uint64_t taskrings_look(struct taskrings *r, uint64_t now, uint64_t margin, uint64_t patience, bool all);
uint64_t taskrings_until(const struct taskrings *r); /* what it said last */
/* Events up to there, in the order in which they were over. */
size_t taskrings_read(struct taskrings *r, struct taskrings_event *ret, size_t room);
/* Polls that are under way. */
size_t taskrings_polls(const struct taskrings *r, uint64_t now, struct taskrings_event *ret, size_t room);
/* Events since begin that found no room, or cannot be. */
uint64_t taskrings_lost(const struct taskrings *r);

/* How many rings are somebody's. Gives those back of whose thread the caller says that it has ended. */
size_t taskrings_owned(const struct taskrings *r);
void taskrings_tidy(struct taskrings *r, bool (*ended)(void *context, uint32_t identity), void *context);
