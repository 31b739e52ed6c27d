/*
 * taskchains.h - tasks that waited for tasks: A awaited a message of B, which awaited the end of C, which read from disk.
 *
 * Each long await that was kept (the profile's taskwakes) is followed to the task that ended it, to what that one awaited
 * meanwhile, and so on. The last one of a chain was not awaiting: it was polled, and what its thread did then is the end of
 * the chain; or its await was ended by a timer, by I/O or by a thread outside of the runtime.
 *
 *	struct taskchains c;
 *	taskchains_make(&c, p, &options, &tasks);
 *	...
 *	taskchains_done(&c);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "analyze/task/tasks.h"
#include "analyze/task/wakekind.h"
#include "analyze/wait/cause.h"
#include "base/vec.h"

struct profile;
struct select_options;

enum { TASKCHAINS_LINKS = 8 };

/* A task that awaited, and what. */
struct taskchains_link {
	uint32_t type;
	enum wakekind kind;
	const char *function; /* of the waker, "" = none */
};

struct taskchain {
	struct taskchains_link links[TASKCHAINS_LINKS];
	uint32_t link_count;
	/* The last waker: a task in a poll (end_type), another thread (end_thread), or neither: the kind of the last link says
	 * what ended it. */
	uint32_t end_type;        /* TASKS_NONE = none */
	uint32_t end_thread;      /* PROFILE_NONE = none */
	enum cause end_cause;     /* of most of that thread's time, while it was awaited; CAUSE_UNKNOWN: no waits were recorded */
	const char *end_function; /* with most of it, "" = not known */
	uint64_t ns, count;       /* of the awaits at the beginning of the chain */
	uint64_t longest_ns;
};

struct taskchains {
	VEC(struct taskchain) list; /* those with most time first; each has two tasks or more, or a thread at its end */
	struct idents idents;       /* private */
};

/* Of o the threads, processes, the range and causes count; t is of the same selection. */
void taskchains_make(struct taskchains *c, const struct profile *p, const struct select_options *o, const struct tasks *t);
void taskchains_done(struct taskchains *c);
