/*
 * compare.h - decides whether one set of runs is slower than another, and whether that is real.
 *
 * Two sides of measured runs (runs.h), figure by figure: mean, median, and the upper quantiles where there
 * are enough values. For each an interval by bootstrap, clustered by run, and a verdict only when the whole
 * interval lies beyond a floor: mean and median 1.2 %, p90 1.35 %, p99 5 %. A difference within the floor may
 * be real, but is too small to report.
 *
 * One metric is judged at the requested confidence. The others explain it; since there are many of them, each
 * needs a higher confidence, so that all together are wrong as seldom as the one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/bootstrap.h"
#include "base/vec.h"

struct err;
struct runs;

enum compare_figure { COMPARE_MEAN, COMPARE_P50, COMPARE_P90, COMPARE_P99, COMPARE_FIGURES };

enum compare_word {
	COMPARE_SAME,    /* nothing beyond the floor that is sure */
	COMPARE_BETTER,
	COMPARE_WORSE,
	COMPARE_MIXED,   /* one figure better, another worse */
	COMPARE_UNKNOWN, /* too few runs, or nothing to compare with */
};

struct compare_options {
	double floor;       /* 0 to 1; below 0: the floors above */
	double confidence;  /* 0.95 */
	uint64_t seed;
	const char *metric; /* to judge by; NULL: runs_main_metric() */
};

struct compare_row {
	const char *name, *unit; /* of the runs of side A */
	bool part;               /* of the row that is judged, in its unit */
	size_t n[2];             /* values */
	double level[2][COMPARE_FIGURES];
	struct bootstrap_interval
		change[COMPARE_FIGURES]; /* of B to A; all NAN: not enough values for that figure */
	enum compare_word word[COMPARE_FIGURES];
	enum compare_word verdict;
};

/* How the runs of both sides belong together. */
enum compare_design {
	COMPARE_ROUNDS, /* run i of A and of B were made in turn */
	COMPARE_INDEPENDENT, /* one side after the other */
	COMPARE_PAIRS, /* pairs of files, each a run of many blocks */
	COMPARE_BLOCKS, /* one such pair: blocks are paired, and what differs from run to run is not known */
	COMPARE_OTHER_BLOCKS, /* one such pair without a block that both have */
};

struct comparison {
	VEC(struct compare_row) rows; /* the first row is the judged metric */
	enum compare_design design;
	size_t clusters[2];
	double confidence, floor;
};

/* A side: command number command of files[i]. */
struct compare_side {
	const struct runs *const *files;
	size_t count;
	uint32_t command;
};

/* -EINVAL with a sentence where both sides have nothing in common. */
int compare_make(const struct compare_side *a, const struct compare_side *b, const struct compare_options *o,
		 struct comparison *ret, struct err *err);
void comparison_done(struct comparison *c);

/* The part that has most of the change of a row that is judged better or worse; NULL: none is sure, or there are no parts. */
const struct compare_row *compare_explain(const struct comparison *c);

double compare_floor(const struct comparison *c, enum compare_figure f);
extern const char *const compare_figure_names[COMPARE_FIGURES]; /* "mean", "p50", ... */
