/*
 * timeline.h - spans of time by thread, in order: which waits, or samples, of a thread touch a given time. For blocks.c.
 *
 * Life: (clear -> add... -> sort -> seek...)..., done. One that is all zeros is ready.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct span {
	uint64_t begin, end;
	uint64_t last; /* where the latest of this one and those before it, of its thread, ends */
	uint32_t sample, thread;
};

struct timeline {
	VEC(struct span) added, list; /* list: by thread, then by time */
	size_t *first;                /* by thread, into list; one more ends the last */
	VEC(uint32_t) threads;        /* that have any */
	struct span *spare;           /* room to sort */
	uint8_t *runs;
	size_t room;
};

void timeline_clear(struct timeline *t);
void timeline_add(struct timeline *t, const struct span *s);
/* threads: how many there are. */
void timeline_sort(struct timeline *t, size_t threads);
/* The first of a thread that may reach to from or beyond. */
static inline size_t timeline_seek(const struct timeline *t, uint32_t thread, uint64_t from)
{
	return vec_search(i, t->first[thread], t->first[thread + 1], t->list.v[i].last < from);
}
/* By time, then by sample. */
static inline bool timeline_is_before(const struct span *a, const struct span *b)
{
	return a->begin != b->begin ? a->begin < b->begin : a->sample < b->sample;
}
void timeline_done(struct timeline *t);
