/*
 * sumslots.h - slots of time within which rows are summed, and spans of time whose rows stay as they are.
 *
 * Slots follow one another without a gap. They end where a mark begins or ends, so that what was summed within a mark
 * is all of the mark: up to SUMSLOTS_CUTS such borders in the time that is cut at once, those of the longest marks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct profile;

enum { SUMSLOTS_CUTS = 64 };

struct sumslot {
	uint64_t start_ns, end_ns;
	bool full; /* rows of this time stay as they are */
};

/* By time. */
struct sumslots {
	struct sumslot *v;
	size_t n, capacity;
};

/* A mark whose rows stay as they are. */
struct sumspan {
	uint64_t start_ns, end_ns;
};

struct sumspans {
	struct sumspan *v;
	size_t n, capacity;
};

/* Makes the slots of a list from from_ns on and before to_ns anew: those that were there go. */
void sumslots_cut(struct sumslots *s, const struct profile *p, const struct sumspans *full, uint64_t from_ns, uint64_t to_ns);
/* The slot that holds a moment, or NULL. */
const struct sumslot *sumslots_at(const struct sumslots *s, uint64_t time_ns);

/* Adds the marks that begin from from_ns on and before to_ns and are slow for their kind: half as long again as the
 * median of the marks of that kind that came last. */
void sumspans_add_slow(struct sumspans *full, const struct profile *p, uint64_t from_ns, uint64_t to_ns);
/* Takes the shortest out. False: there is none. */
bool sumspans_drop_shortest(struct sumspans *full, struct sumspan *ret);
