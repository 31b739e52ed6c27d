/*
 * vec.h - a growable array of any type.
 *
 *	VEC(struct foo) foos = {0};
 *	vec_push(&foos, (struct foo){ .x = 1 });
 *	for (size_t i = 0; i < foos.n; i++)
 *		use(&foos.v[i]);
 *	vec_done(&foos);
 *
 * Elements move when the array grows: keep indexes, not pointers.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"

#define VEC(type)                   \
	struct {                    \
		type *v;            \
		size_t n, capacity; \
	}

#define vec_reserve(a, extra)                                                                  \
	do {                                                                                   \
		size_t need_ = (a)->n + (extra);                                               \
		if (need_ > (a)->capacity) {                                                   \
			size_t cap_ = (a)->capacity ? (a)->capacity * 2 : 16;                  \
			(a)->capacity = cap_ < need_ ? need_ : cap_;                           \
			(a)->v = mem_resize((a)->v, (a)->capacity, sizeof(*(a)->v));           \
		}                                                                              \
	} while (0)

#define vec_push(a, ...)                          \
	do {                                      \
		vec_reserve(a, 1);                \
		(a)->v[(a)->n++] = (__VA_ARGS__); \
	} while (0)

#define vec_clear(a) ((void)((a)->n = 0))

#define vec_done(a)                            \
	do {                                   \
		free((a)->v);                  \
		(a)->v = NULL;                 \
		(a)->n = (a)->capacity = 0;    \
	} while (0)

/* Ends each element, to which e points, and then the array: vec_done_each(&foos, e, free(e->name); free(e->path)); */
#define vec_done_each(a, e, ...)                             \
	do {                                                 \
		for (size_t i_ = 0; i_ < (a)->n; i_++) {     \
			typeof((a)->v) e = &(a)->v[i_];      \
			__VA_ARGS__;                         \
		}                                            \
		vec_done(a);                                 \
	} while (0)

#define vec_sort(a, compare)                                              \
	do {                                                              \
		if ((a)->n > 1)                                           \
			qsort((a)->v, (a)->n, sizeof(*(a)->v), (compare)); \
	} while (0)

/*
 * The first index of [from, to) for which the condition does not hold, or to: a binary search. The condition is about
 * the element i, and must hold for all before the first for which it does not.
 *
 *	size_t at = vec_search(i, 0, foos.n, foos.v[i].x < 7);
 */
#define vec_search(i, from, to, condition)                       \
	({                                                       \
		size_t low_ = (from), high_ = (to);              \
		while (low_ < high_) {                           \
			size_t i = low_ + (high_ - low_) / 2;    \
			if (condition)                           \
				low_ = i + 1;                    \
			else                                     \
				high_ = i;                       \
		}                                                \
		low_;                                            \
	})
