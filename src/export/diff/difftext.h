/*
 * difftext.h - a comparison of two recordings as a table, as JSON, as folded stacks with two counts.
 *
 *	struct diff_job job = { .before = &a, .after = &b, .diff = &d, .options = { .limit = 30 } };
 *	difftext_write(&job, &out, NULL);
 *
 * These are the diff functions of the table in export.c. None of them fails.
 */
#pragma once

#include "analyze/diff/diff.h"
#include "export/export.h"

struct diff_job {
	const struct export_job *before, *after; /* with their own selections and options */
	const char *name_before, *name_after;    /* the user's names for them: paths */
	const struct diff *diff;
	struct export_options options;           /* limit, order, columns, colour, max_bytes */
};

int difftext_write(const struct diff_job *job, struct buf *out, struct err *err);
int diffjson_write(const struct diff_job *job, struct buf *out, struct err *err);
/* "outer;leaf 12 15": as difffolded.pl writes them. Before is scaled to the sum of after when normalized. */
int difffolded_write(const struct diff_job *job, struct buf *out, struct err *err);

/* The verdict: a sentence or two, clean, without a newline. */
void difftext_verdict(const struct diff *d, struct buf *out);
