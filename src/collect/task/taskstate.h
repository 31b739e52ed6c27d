/*
 * taskstate.h - the life of each task, from polls, wakes and spawns: what it awaited, how long it was in a queue and in polls.
 *
 * A pure function of what it is told; rows of the profile are its result (taskrows.h), and counters by type. A task's time
 * is closed: from its spawn to the end of its last poll each moment is one of these three.
 *
 *	spawn ──queue──► poll ──await──► wake ──queue──► poll ─┬─ (finished)
 *	                   ▲                                   │
 *	                   └──────────────queue────────────────┘ woken while it was polled: no wake is seen
 *
 * Events come in the order in which they were over, polls by their ends. tokio lets go of a task before poll() returns, and may
 * then wake a thread for it, which takes its time: the next wake, and even the next poll, may come before the poll that they
 * follow. The task's time in that one ends where the next one begins.
 *
 * What tells a finished task from one that awaits is not in the events: taskstate_ask() names tasks that have been silent for
 * a while, and the caller says what became of them. A task that was there before the recording is known from its first
 * event on; if that is a wake, it has awaited since the start.
 *
 * Which spawn a first poll belongs to is not known: the last spawn of that type before it is taken. The sums of a type are right
 * whichever it was. Times are since the start of the recording. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;
struct taskstate;

enum { TASKSTATE_TASKS = 1 << 18 /* that are alive at a time */ };

struct taskstate *taskstate_new(struct profile *p, uint64_t long_poll_ns);
void taskstate_free(struct taskstate *t); /* NULL is fine */

/* A process, whose tasks are told apart from those of others. begin_ns: from here on its tasks are seen. */
uint32_t taskstate_process(struct taskstate *t, uint64_t begin_ns);
/* The type of that name; two of one name are one. counted: each spawn of it is told. */
uint32_t taskstate_type(struct taskstate *t, const char *name, bool blocking, bool counted);

enum taskstate_what { TASKSTATE_POLL = 1, TASKSTATE_WAKE, TASKSTATE_GONE };

struct taskstate_event {
	uint32_t what;         /* enum taskstate_what */
	uint32_t process, type;
	uint32_t thread;       /* the profile's: the one that polled or woke it */
	uint64_t task, header; /* its number in the process, and its address */
	uint32_t vtable;       /* for the caller: comes back with taskstate_ask() */
	uint64_t time_ns;      /* of a poll its begin */
	uint64_t duration_ns;  /* of a poll */
	/* Of a wake: */
	uint64_t waker;        /* the task that the thread polled meanwhile, 0: none */
	uint32_t stack;        /* the profile's, 0: not taken */
	double scale;          /* with a stack: awaits that it stands for */
};

void taskstate_event(struct taskstate *t, const struct taskstate_event *e);
/* Before the events that follow it. stack: 0 = not known. */
void taskstate_spawn(struct taskstate *t, uint32_t process, uint32_t type, uint32_t thread, uint64_t time_ns, uint32_t stack);
/* Spawns are not told, or not all of them: types count a task whose first event is a poll as spawned from now on. */
void taskstate_stop_counting(struct taskstate *t);
/* All that was over by then was told. */
void taskstate_until(struct taskstate *t, uint64_t time_ns);
/* A task that is a waker is polled, perhaps for the first time: no event of it may have come. */
void taskstate_meet(struct taskstate *t, uint32_t process, uint64_t task, uint32_t type);
/* A poll is under way: about once a second, for series. */
void taskstate_under_way(struct taskstate *t, const struct taskstate_event *poll, uint64_t now_ns);

/* A task that may be over. */
struct taskstate_silent {
	uint64_t task, header;
	uint32_t vtable;
	uint32_t index; /* private */
	bool finished;  /* the answer */
};
/* Tasks of a process whose last event is a second ago or more, and that were not asked about for as long as they were silent.
 * all: any that neither are polled nor in a queue, at the end. Returns how many; the caller frees *ret. */
size_t taskstate_ask(struct taskstate *t, uint32_t process, uint64_t now_ns, bool all, struct taskstate_silent **ret);
void taskstate_answer(struct taskstate *t, const struct taskstate_silent *list, size_t n);

/* The process has ended or executed another program: its tasks are over. Whether one finished or awaited cannot be known then; its
 * time ends with its last poll. */
void taskstate_end_process(struct taskstate *t, uint32_t process, uint64_t time_ns);
/* The recording ends; polls under way were told as events that end now. Counters are final. */
void taskstate_finish(struct taskstate *t, uint64_t end_ns);
/* Brings the counters of the profile up to date. */
void taskstate_count(struct taskstate *t);

struct taskstate_totals {
	uint64_t types, tasks, polls, wakes; /* types: of which anything was seen */
};
struct taskstate_totals taskstate_totals(const struct taskstate *t);
