/*
 * joining.h - keeps the samples of a profile below a number while they are read.
 *
 * Reports and pages show sums by thread and stack, and a picture of time that is some thousand points wide. When there
 * are more samples than the limit, samples of one event, thread and stack become one as long as its value stays below a
 * quantum, which doubles until enough are joined. So:
 * - Sums of values and counts by event, thread and stack are exact.
 * - What is heavy keeps many times, what is rare few; a value above half of the quantum, such as a long wait, keeps its own.
 * - The time of a joined sample is that of one of its samples, drawn in proportion to their values: sums over a span
 *   of time are estimates without bias, of quantum grain. The same file gives the same draw.
 * Samples of a heap stay as they are, for their order matters. So do those within spans that the caller names: they do not
 * count for the limit.
 *
 *	struct joining j;
 *	joining_init(&j, p, 3000000);
 *	for (...) joining_add(&j, &sample);
 *	joining_finish(&j);   // now they are all in p
 *	joining_done(&j);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/profile.h"

enum { JOINING_BATCH = 32 };

struct joining_slot {
	uint32_t tag;   /* of the hash */
	uint32_t index; /* 1 + index of the sample that the next one like it may join; 0 = none */
};

struct joining_span {
	uint64_t start_ns, end_ns; /* both are within it */
};

struct joining {
	struct profile *p;
	size_t most;       /* 0: all are kept */
	VEC(struct joining_span) spans; /* in which samples stay as they are: by time, none touches the next */
	size_t span;       /* of the last sample that was looked up: the next one is mostly there, too */
	size_t kept;       /* samples of p within them */
	struct joining_slot *slots;
	size_t slot_count;
	VEC(uint64_t) quanta; /* by event; 0 = nothing is joined yet, UINT64_MAX = never */
	uint64_t seed;
	uint64_t joined;   /* samples that became a part of another */
	/* Samples are put in batches, whose look-ups wait for memory together, not one after the other. */
	struct profile_sample batch[JOINING_BATCH];
	size_t waiting;
};

/* The events of p are there already. */
void joining_init(struct joining *j, struct profile *p, size_t most);
/* Samples that are in one of these spans, or reach into it, stay as they are. Before the first is added; the list is copied. */
void joining_keep(struct joining *j, const struct joining_span *spans, size_t n);
void joining_add(struct joining *j, const struct profile_sample *s);
void joining_finish(struct joining *j);
/* Begins again: the samples of p are gone. */
void joining_restart(struct joining *j);
void joining_done(struct joining *j);
