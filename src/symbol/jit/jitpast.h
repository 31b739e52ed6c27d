/*
 * jitpast.h - code that took the place of other code while it was recorded.
 *
 * A frame is an address, and so has one name. Where a jitdump says that there was other code before, each name
 * gets a frame of its own, and the samples of its time stacks with that frame.
 *
 *	jitpast_add(&x, p, frame, calls, count);     for each such frame, once it has its last name
 *	jitpast_apply(&x, p);
 *	jitpast_done(&x);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct profile;
struct symbols_call;

/* From then on the address of a frame was that of another. */
struct jitpast_change {
	uint32_t frame, with;
	uint64_t from_ns;
};

struct jitpast {
	VEC(struct jitpast_change) changes; /* those of a frame together, in order of time */
	struct map first;                   /* frame to the first of its changes */
};

/* The names of a frame over time; line is since when, in ms of the recording. */
void jitpast_add(struct jitpast *x, struct profile *p, uint32_t frame, const struct symbols_call *calls, size_t count);
/* Changes the stacks of samples and wakes. Returns false if there are too many for all of them. */
bool jitpast_apply(const struct jitpast *x, struct profile *p);
void jitpast_done(struct jitpast *x);
