/*
 * diff.h - two recordings, function by function: what changed, and how sure that is.
 *
 * Functions are matched by name, module's basename and kind. Values are rates: the share of what is
 * weighed, in percent, when normalized, else the value per second of the recording. The noise comes from
 * the recordings themselves: each is cut into time slices, and the variance between those gives each
 * difference its interval. Among all rows the false discovery rate is held at 1 %
 * (Benjamini-Hochberg): significant rows are those that a person should look at. docs/decisions/0007-diff.md
 * says why it is done so.
 *
 * Shares have to add up to 100 %: where one function takes more, all others get less without having
 * changed. So normalized differences are taken at equal work: `after` is scaled such that the functions which
 * did not change, which are most of them, stay where they were.
 *
 *	struct diff d;
 *	struct diff_side before = { a, &selection_a }, after = { b, &selection_b };
 *	int r = diff_make(&d, &before, &after, &(struct diff_options){ 0 }, &err);
 *	...
 *	diff_done(&d);
 *
 * The selections are made with .moments; profiles and selections need not outlive the diff.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/tree/ident.h"
#include "analyze/select.h"
#include "analyze/diff/slices.h"
#include "base/vec.h"

struct err;
struct profile;

struct diff_value {
	double a, b;         /* before and after */
	double delta;        /* b * scale - a */
	double low, high;    /* 95 % interval of delta */
	double p, q;         /* of no difference; q: after correction for the number of rows */
	bool tested;         /* there are enough samples; else p and q are 1 */
	bool significant;    /* q <= 1 %, and the change is not negligible */
};

struct diff_row {
	const char *name, *module; /* live as long as the diff */
	enum ident_kind kind;
	struct diff_value self, total;
	uint64_t samples_a, samples_b; /* with it anywhere on the stack */
	bool only_a, only_b;           /* vanished, new */
	bool outside;                  /* interrupts: shown, never tested */
};

struct diff {
	VEC(struct diff_row) rows; /* largest change of self first, significant ones before the others */
	bool normalized;
	const char *unit;          /* of a and b: "%" when normalized, else "ns/s", "bytes/s", "/s" */
	double scale;              /* of b, for equal work; 1 when absolute or unknown */
	bool scaled;               /* the scale is known */
	bool grouped;              /* rows are subsystems, not functions */
	bool timeless;             /* of imported stacks: noise is that of the counts alone, rates are sums */
	double all_a, all_b;       /* the whole: value per second */
	struct diff_value all;     /* the whole compared, per second, also when normalized */
	size_t tested;             /* rows with enough samples to say anything */
	size_t significant;        /* rows with a significant change, of self or of total */
	size_t significant_self;   /* of self */
	uint64_t samples_a, samples_b;
	uint64_t slices_a, slices_b;
	/* The rest is private. */
	struct slices_table table;
};

struct diff_side {
	const struct profile *profile;
	const struct selection *selection;
};

struct diff_options {
	bool absolute;  /* values per second, not shares */
	bool no_inline;
	bool by_total;  /* order of the rows */
	bool grouped;   /* the selections are of subsystems (subsystem/chain.h) */
};

/* -EINVAL: the sides weigh different units, a selection has no moments, or there is no time to be absolute
 * about. A side without samples is
 * fine: nothing is significant then. */
int diff_make(struct diff *d, const struct diff_side *a, const struct diff_side *b,
	      const struct diff_options *o, struct err *err);
void diff_done(struct diff *d);

/* The change at equal work in percent of the value before: 20 = a fifth more. INFINITY where that was 0. */
static inline double diff_percent(const struct diff_value *v, double of)
{
	return v->a > 0 ? 100 * of / v->a : of > 0 ? __builtin_inf() : 0;
}
