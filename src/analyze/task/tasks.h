/*
 * tasks.h - the types of async tasks (record -e task): how long their tasks were polled, lay in the runtime's queue and
 * awaited, and who woke them.
 *
 * The wall time of a task is polling + queue + awaiting, and so is the sum over a type. Over a whole recording the sums
 * are the collector's own, which counted each poll and each wake-up. Within a range of time, of some threads, and in a
 * window of a recording (TASKS_WINDOW) they come from the samples: polls and the queue are exact to 10 ms, awaits are
 * weighted, as only some wake-ups have a stack.
 *
 *	struct tasks t;
 *	if (tasks_make(&t, p, &options, 0))
 *		for (size_t i = 0; i < t.types.n; i++)
 *			printf("%s %llu\n", t.types.v[i].name, (unsigned long long)t.types.v[i].polls);
 *	tasks_done(&t);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/task/wakekind.h"
#include "analyze/tree/ident.h"
#include "analyze/wait/cause.h"
#include "base/map.h"
#include "base/vec.h"

struct profile;
struct select_options;

#define TASKS_NONE UINT32_MAX
/* The names of frames that stand for a type begin with this. */
#define TASKS_PREFIX "task "

/* A place from which awaits of a type were ended. */
struct tasks_waker {
	enum wakekind kind;
	const char *function;  /* the nearest of the program's own on the waker's stack, else the most telling; "" = none */
	uint32_t type;         /* of the task that the waker polled just then; TASKS_NONE = none, or not known */
	uint32_t thread;       /* that woke most of this time */
	uint64_t ns, count;    /* of the awaits that it ended, weighted */
	uint64_t longest_ns;   /* of the awaits that were kept one by one */
	uint32_t stack;        /* with most of the time: the type's frame, then the waker's stack */
	uint64_t stack_ns;     /* that time */
};

/* What ran on a worker while tasks of a type were in its queue. */
struct tasks_behind {
	uint32_t type; /* TASKS_NONE: the worker was idle */
	uint64_t ns, count;
};

/* A place where tasks of a type were spawned. */
struct tasks_place {
	const char *function;
	uint64_t count;
	uint32_t stack; /* an example: the type's frame is its leaf */
};

struct tasks_type {
	const char *name;             /* without TASKS_PREFIX; lives as long as the tasks */
	uint64_t blocking;            /* not 0: jobs of the pool for blocking calls, each of one poll */
	uint64_t spawned, finished, alive; /* finished, alive: of the whole recording always */
	uint64_t seen;                /* tasks: those that were there before and those that were spawned */
	uint64_t polls, poll_ns;
	uint64_t longest_ns;          /* poll */
	uint64_t long_polls;          /* marks: polls above the threshold of the recording */
	uint64_t by_cause[CAUSE_COUNT]; /* what threads did in stacks of this type, by samples of CPU time and waits; 0: not known */
	uint64_t queued, queue_ns;    /* times in the queue */
	uint64_t longest_queue_ns;    /* of the awaits that were kept one by one */
	uint64_t awaits, await_ns;
	uint64_t not_ended_ns;        /* part of it: still awaiting at the end */
	uint64_t woken_ns;            /* part of the time whose wakers have a stack, weighted */
	VEC(struct tasks_waker) wakers; /* these first that ended most of the time */
	VEC(struct tasks_behind) behind;
	VEC(struct tasks_place) places; /* most first */
};

struct tasks {
	VEC(struct tasks_type) types; /* those first that polled and were queued most, then by awaiting; some may have nothing */
	uint64_t seen, spawned, alive, polls, poll_ns, queue_ns, await_ns; /* of all types */
	uint64_t workers;             /* threads that polled tasks */
	uint64_t duration_ns;         /* of the selection */
	uint64_t lost, vtables, version; /* as the keys say */
	uint64_t long_polls_left_out, wakes_left_out; /* the same: not kept one by one */
	bool counted;                 /* sums are the collector's */
	/* The rest is private. */
	struct idents idents;
	struct strtab names;
	struct map by_name;           /* hash of a name to its type */
};

enum { TASKS_WINDOW = 1 }; /* counters are of a longer time than samples and marks */

/* Were tasks recorded, whether or not there were any? */
bool tasks_recorded(const struct profile *p);
/* Of o the threads, processes and the range count. False: tasks were not recorded, and t is empty. */
bool tasks_make(struct tasks *t, const struct profile *p, const struct select_options *o, unsigned flags);
void tasks_done(struct tasks *t);

/* All time of a type's tasks. */
static inline uint64_t tasks_wall_ns(const struct tasks_type *y)
{
	return y->poll_ns + y->queue_ns + y->await_ns;
}
/* TASKS_NONE: there is no type of that name. */
uint32_t tasks_find(const struct tasks *t, const char *name);
/* The name of the type that a frame stands for, without TASKS_PREFIX; NULL: it is another frame. */
const char *tasks_frame_type(const struct profile *p, uint32_t frame);
