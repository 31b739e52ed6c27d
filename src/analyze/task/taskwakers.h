/* taskwakers.h - the second half of tasks.c: who woke tasks, behind whom they were queued, where they were spawned. Only
 * tasks.c calls it. */
#pragma once

#include <stdint.h>

#include "analyze/task/tasks.h"
#include "analyze/task/tasktype.h"
#include "base/map.h"

struct profile_sample;
struct profile_taskwake;

struct taskwakers {
	struct tasks *t;
	const struct profile *p;
	uint32_t *of_frame; /* 0 = not looked at, 1 = no type, else 2 + the type */
	uint8_t *polled;    /* by thread */
	enum role *roles;   /* by event */
	uint32_t type;      /* of the sample at hand */
	struct tasktypes units; /* of stacks */
	uint32_t *of_unit;  /* by unit: its type, TASKS_NONE = none */
	struct map wakers, behind, places; /* by type and what they are by; to index in the type's list */
	struct map threads; /* waker and thread to its time */
	struct map stacks;  /* to the waker in the list of the type that the stack begins with */
	struct strtab functions; /* names as keys */
};

/* The type that a frame stands for, TASKS_NONE = none. In tasks.c. */
uint32_t taskwakers_type(struct taskwakers *m, uint32_t frame);
/* The type of the task that is polled on a stack; TASKS_NONE = none, or of no type that was recorded. */
uint32_t taskwakers_type_of_stack(const struct taskwakers *m, uint32_t stack);
/* The outermost frame of a stack that is not empty. */
uint32_t taskwakers_root(const struct profile *p, uint32_t stack);

void taskwakers_begin(struct taskwakers *m);
void taskwakers_add_await(struct taskwakers *m, const struct profile_sample *s, uint64_t ns, uint64_t count);
void taskwakers_add_queue(struct taskwakers *m, const struct profile_sample *s, uint64_t ns, uint64_t count);
void taskwakers_add_spawn(struct taskwakers *m, const struct profile_sample *s, uint64_t count);
/* An await that was kept: it may be the longest of its kind. */
void taskwakers_add_row(struct taskwakers *m, const struct profile_taskwake *w, uint32_t type);
/* Sorts the lists of all types. */
void taskwakers_end(struct taskwakers *m);
/* Gives the types that a type's lists name their new numbers. */
void taskwakers_renumber(struct tasks_type *y, const uint32_t *now);
