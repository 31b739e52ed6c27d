/*
 * boxes.h - which boxes the flame graph of folded stacks has, and where they are.
 *
 * They are those of flamegraph.pl: lines are sorted as text (or left in their order, for a flame chart), and
 * neighbours share the frames with which they begin. So a function is drawn twice where other lines
 * lie between those that end at it and those that go on below it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct stacklist;

struct box {
	uint32_t node; /* 0: the root */
	uint32_t depth;
	uint64_t start, end; /* in the list's unit */
	int64_t change;      /* of the lines that end here */
	bool differs;        /* these have two counts, or those below it */
	bool waker;          /* somewhere below it, towards the root, is a "--" */
};

struct boxes {
	VEC(struct box) list; /* parents first; only boxes that are wide enough */
	uint32_t depth;       /* of the deepest */
	uint64_t most_change; /* the largest change, up or down; at least 1 */
};

/* narrowest: in whole counts; narrower boxes are left out. */
void boxes_make(struct boxes *b, const struct stacklist *l, bool in_order, double narrowest);
void boxes_done(struct boxes *b);
