/*
 * sumrows.h - sums rows of samples by slot of time, event, thread and stack.
 *
 * A row stays as it is in time that is in no slot, in a slot that stays as it is, or where it lasts beyond the end
 * of its slot: a thread has at most one such wait at a border. Whatever is summed, values and counts of an event, thread and
 * stack are the same before and after, and so are those within each slot.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/profile.h"

struct sumslots;

struct sumrow {
	struct profile_sample s;
	uint32_t of;       /* rows that it is the sum of */
	uint32_t partner;  /* of time in the queue: the row that has the wait before it; PROFILE_NONE: there was none */
	uint64_t begin_ns; /* when that time in the queue began */
	uint64_t slot_ns;  /* when its slot begins */
};

struct sumrows {
	VEC(struct sumrow) rows; /* in the order of the first row of each */
	size_t full;             /* rows that stayed because their slot does */
};

/* in: in the order of the file, in which the time that a thread was in the queue follows the wait before it. lasts has for each of the
 * profile's events whether its values are durations, which begin at the time of the row. */
void sumrows_make(struct sumrows *r, const struct profile_sample *in, size_t n, const struct sumslots *slots, const bool *lasts);
void sumrows_done(struct sumrows *r);
