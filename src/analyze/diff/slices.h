/*
 * slices.h - the cost of each function, slice by slice of a recording.
 *
 * Functions are rows of a table that several recordings share: the same function has the same row in all
 * of them. The table grows while recordings are added; after that each one is summed. The kernel's work in
 * interrupts is one row for all its functions, and no part of the totals of the interrupted code.
 *
 *	struct slices_table t;
 *	slices_table_init(&t);
 *	slices_init(&a, &t, profile, &selection, 0);	// the selection was made with .moments
 *	slices_init(&b, ...);
 *	slices_sum(&a, t.rows.n);			// a.self[row], a.total[row]
 *	slices_series(&a, pick, n);			// slices_of(&a, i, false)[slice] of n rows
 *
 * The profile and its selection must outlive them; slices_table_done() after slices_done().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/tree/ident.h"
#include "analyze/select.h"
#include "base/map.h"
#include "base/vec.h"

#define SLICES_NONE UINT32_MAX
#define SLICES_INTERRUPTS "[interrupts]" /* a row: all that ran in the program's time, but not for it */

struct slices_row {
	const char *name, *module; /* module: what follows the last slash of its path */
	enum ident_kind kind;
	bool outside;              /* interrupts: how many come is up to the machine, not to the program */
};

struct slices_table {
	VEC(struct slices_row) rows;
	/* The rest is private. */
	struct strtab names;
	struct map index;
};

struct slices_sum {
	double value;
	double square;    /* of the values of its samples: the variance that comes from sampling alone */
	uint64_t samples;
};

struct slices {
	size_t n;                       /* slices, all of one length */
	double duration_ns;             /* of all of them */
	bool timeless;                  /* no times were recorded, or the event has none: all is of 1 s */
	double *all;                    /* by slice */
	struct slices_sum everything;
	struct slices_sum *self, *total; /* by row; recursion counts once */
	/* The rest is private. */
	const struct profile *p;
	const struct selection *s;
	uint32_t *self_row;             /* by stack; SLICES_NONE = no function's */
	bool *inside;                   /* by stack: in an interrupt */
	uint32_t *first_at;             /* by stack, into firsts, and one more */
	VEC(uint32_t) firsts;           /* rows that a stack has and its callers have not */
	struct slices_piece *pieces;    /* by slice */
	size_t *piece_at;               /* by slice, into pieces, and one more */
	double *series;
};

void slices_table_init(struct slices_table *t);
void slices_table_done(struct slices_table *t);

/* flags: of idents_init(). */
void slices_init(struct slices *sl, struct slices_table *t, const struct profile *p,
		 const struct selection *s, unsigned flags);
void slices_done(struct slices *sl);

void slices_sum(struct slices *sl, size_t rows);
/* For the rows whose pick is not SLICES_NONE but a number below picked. */
void slices_series(struct slices *sl, const uint32_t *pick, size_t picked);

/* The values by slice of a picked row. */
static inline const double *slices_of(const struct slices *sl, size_t pick, bool total)
{
	return &sl->series[(2 * pick + total) * sl->n];
}
