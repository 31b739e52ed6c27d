/*
 * underway.h - whether a thread has work under way while it waits: a block, or another span.
 *
 * Work is known by the functions that the table of patterns calls so (work = REGEX), which are then on the thread's
 * stack, and by marks of the thread itself: calls of marked functions, spans that the program speaks of. Of a thread
 * without either nothing is known.
 *
 *	struct underway w;
 *	underway_init(&w, p, &patterns);
 *	if (underway_on_stack(&w, stack) || underway_in_span(&w, thread, begin, end))
 *		...
 *	underway_done(&w);
 *
 * The profile may grow; stacks that were named since are not looked at again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct patterns;
struct profile;

struct underway_span {
	uint32_t thread;
	uint64_t start_ns, end_ns;
};

struct underway {
	const struct profile *p;
	struct patterns *patterns;
	/* The rest is private. */
	uint8_t *functions, *stacks, *threads; /* functions, stacks: 0 = not looked at; threads: a bit for each source */
	size_t function_count, stack_count, thread_count;
	size_t samples, marks;       /* that were looked at */
	VEC(struct underway_span) spans; /* by thread and start; those of a thread do not overlap */
};

void underway_init(struct underway *w, const struct profile *p, struct patterns *patterns);
void underway_done(struct underway *w);

/* Returns whether a function on the stack is work. */
bool underway_on_stack(struct underway *w, uint32_t stack);
/* Returns whether the whole time is within spans of the thread. */
bool underway_in_span(struct underway *w, uint32_t thread, uint64_t begin_ns, uint64_t end_ns);

/* How the work of a thread is known: a sum of both, 0 = not at all. */
enum { UNDERWAY_BY_STACKS = 1, UNDERWAY_BY_SPANS = 2 };
unsigned underway_known(struct underway *w, uint32_t thread);
