/*
 * heapcells.h - allocations and frees, one after the other, as a heap over time by stack: what is alive, what was alive at the
 * peak, and sums of what was allocated, freed and freed at once.
 *
 *	struct heapcells c;
 *	heapcells_init(&c, &sink);
 *	uint32_t cell = heapcells_new(&c, stack);
 *	heapcells_alloc(&c, cell, 4096, err);
 *	heapcells_free(&c, cell, 4096, false);
 *	heapcells_time(&c, 10000000, err);       // it is so late now
 *	heapcells_end(&c, err);
 *
 * Millions of events become samples for slots of time: of 10 ms, or of 1/256 of the time so far where that is more, so that a day
 * has some thousands of them. Changes up to the last peak are kept apart from later ones: the sum of samples up to that
 * moment is the peak to the byte, and the event "peak" has it by stack.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct err;
struct heapsink;

enum heapcells_what { HEAPCELLS_ALLOC, HEAPCELLS_FREED, HEAPCELLS_TEMPORARY, HEAPCELLS_WHATS };

struct heapcells_pair {
	uint64_t bytes, count;
};

struct heapcell {
	uint32_t stack;
	bool used;            /* something happened in this slot */
	uint64_t peaks;       /* how many there had been when something happened last */
	struct heapcells_pair live, peak;
	struct heapcells_pair before[HEAPCELLS_WHATS], after[HEAPCELLS_WHATS]; /* the last peak, in this slot */
};

struct heapcells {
	struct heapsink *sink;
	uint64_t live_bytes, peak_bytes, allocations, allocated_bytes;
	uint64_t now_ns, peak_ns;
	/* The rest is private. */
	VEC(struct heapcell) list;
	VEC(uint32_t) used;
	uint64_t peaks, slot_ns, slot_bytes;
	uint32_t events[HEAPCELLS_WHATS], heap, peak, live_series, rate_series;
};

/* Makes the events. */
void heapcells_init(struct heapcells *c, struct heapsink *sink);
void heapcells_done(struct heapcells *c);
uint32_t heapcells_new(struct heapcells *c, uint32_t stack);
int heapcells_alloc(struct heapcells *c, uint32_t cell, uint64_t bytes, struct err *err);
/* False: the stack has no such object alive, and nothing happened. */
bool heapcells_free(struct heapcells *c, uint32_t cell, uint64_t bytes, bool temporary);
/* Times must not go back. */
int heapcells_time(struct heapcells *c, uint64_t now_ns, struct err *err);
/* Forgets all that happened so far. */
void heapcells_reset(struct heapcells *c);
/* Makes the last samples, a millisecond after the last time. */
int heapcells_end(struct heapcells *c, struct err *err);
