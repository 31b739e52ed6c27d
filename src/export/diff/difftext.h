/*
 * difftext.h - a comparison of two recordings as a table, as JSON, as folded stacks with two counts.
 *
 *	struct diff_job job = { .before = &a, .after = &b, .diff = &d, .options = { .limit = 30 } };
 *	difftext_write(&job, &out);
 */
#pragma once

#include "analyze/diff/diff.h"
#include "export/export.h"

struct diff_job {
	const struct export_job *before, *after; /* with their own selections and options */
	const char *name_before, *name_after;    /* what the user called them: paths */
	const struct diff *diff;
	struct export_options options;           /* limit, order, columns, colour */
};

void difftext_write(const struct diff_job *job, struct buf *out);
void diffjson_write(const struct diff_job *job, struct buf *out);
/* "outer;leaf 12 15": as difffolded.pl writes them. Before is scaled to the sum of after when normalized. */
void difffolded_write(const struct diff_job *job, struct buf *out);

/* The verdict: a sentence or two, clean, without a newline. */
void difftext_verdict(const struct diff *d, struct buf *out);
