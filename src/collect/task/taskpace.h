/*
 * taskpace.h - how often the stack of a wake is taken: about as many a second as the pace allows, whatever the program does.
 *
 * The hooks draw wakes by the time that was awaited, with a mean distance (interval). A stack costs the target some
 * microseconds. What it stands for follows from the interval that it was drawn by, so figures stay unbiased when
 * that changes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TASKPACE_LEAST_NS 100000ULL        /* interval */
#define TASKPACE_MOST_NS  1000000000000ULL
enum { TASKPACE_STACKS = 1000 /* a second, where nothing is thinned */ };

struct taskpace {
	uint64_t interval_ns;
	/* The rest is private. */
	uint64_t time_ns, stacks; /* at the last look */
	unsigned step;
};

void taskpace_init(struct taskpace *p);
/* Each step halves the stacks a second. */
void taskpace_thin(struct taskpace *p, unsigned step);
/* Often. stacks: taken so far. True: the interval has changed. */
bool taskpace_look(struct taskpace *p, uint64_t now_ns, uint64_t stacks);
