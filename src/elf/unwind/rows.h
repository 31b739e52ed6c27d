/*
 * rows.h - lists of rows on the way to an unwind table, and the dictionary of their rules.
 *
 * A row gives the rule from its offset (from the first executable page) up to
 * the next row. Before the first row there is none: rule 0.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct rows_row {
	uint32_t offset, rule; /* rule: index in the dictionary */
};

struct rows {
	struct rows_row *v;
	size_t n, capacity;
};

enum { ROWS_NONE = 0, ROWS_UNSUPPORTED = 1 }; /* the first two rules of every dictionary */

/* Distinct rules, at most UNWIND_MAX_RULES; more of them become ROWS_UNSUPPORTED. */
struct rows_rules {
	uint64_t *v;
	size_t n, capacity;
	struct map index;
};

void rows_rules_init(struct rows_rules *rules);
void rows_rules_done(struct rows_rules *rules); /* v too, unless it was taken */
uint32_t rows_rule(struct rows_rules *rules, uint64_t rule);

void rows_done(struct rows *rows);
/* Appends; offset must not be below the last one. Rows that change nothing are left out. */
void rows_add(struct rows *rows, uint32_t offset, uint32_t rule);
/* Returns the rule at an offset, and in *ret_next where the next covered row after it begins (UINT32_MAX:
 * none). */
uint32_t rows_find(const struct rows *rows, uint32_t offset, uint32_t *ret_next);
/* Fills the gaps of rows (rule 0) from filler. */
void rows_fill(struct rows *rows, const struct rows *filler);
