/*
 * stacklist.h - stacks as in folded text: names, a prefix tree of them, and a line a stack.
 *
 * Readers of folded text fill one; drawing, comparing and importing read one. Nodes hold names instead
 * of frames. Counts may have decimals: all of a list are kept in the same decimal unit, 10^-decimals,
 * so that sums are exact.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "profile/nodes.h"

enum { STACKLIST_DECIMALS = 6 }; /* finer counts are rounded */

#define STACKLIST_NONE UINT64_MAX

struct stacklist_line {
	uint64_t value;  /* the only count, or the second of two */
	uint64_t before; /* the first of two; STACKLIST_NONE = there was one */
	uint32_t first;  /* name: the outermost frame, where it was asked to be kept apart; else 0 */
	uint32_t stack;  /* node */
};

struct stacklist {
	struct strtab names;        /* 0 = "" */
	struct profile_nodes nodes; /* frame: a name */
	VEC(struct stacklist_line) lines;
	unsigned decimals;
	bool differential;     /* some line has two counts */
	uint64_t ignored;      /* lines that were no stacks */
	uint64_t ignored_line; /* the first of them, from 1 */
};

void stacklist_init(struct stacklist *l);
void stacklist_done(struct stacklist *l);

static inline const char *stacklist_name(const struct stacklist *l, uint32_t node)
{
	return node ? strtab_get(&l->names, l->nodes.v[node].frame) : "";
}

/* Returns 10^decimals, the value of a count of 1. */
uint64_t stacklist_unit(const struct stacklist *l);
/* Makes all counts finer. -ERANGE: some count would not fit, and nothing is changed. */
int stacklist_set_decimals(struct stacklist *l, unsigned decimals);
/* The sum of all values. -ERANGE: it is too large. */
int stacklist_total(const struct stacklist *l, uint64_t *ret);

/* Replaces addresses in names by "0x...", and merges the stacks that are one then. */
void stacklist_strip_hex(struct stacklist *l);

/*
 * The lines in the order of their text, as sort(1) has it in the C locale: this
 * is the order in which flame graphs are drawn. Caller frees.
 */
uint32_t *stacklist_sort(const struct stacklist *l);
/*
 * Returns the sort key of that order: for each name, 2 * name is the place of
 * lines that end with it, 2 * name + 1 that of lines that go on, among all that
 * have the same frames before it. Caller frees.
 */
uint32_t *stacklist_rank(const struct stacklist *l);
