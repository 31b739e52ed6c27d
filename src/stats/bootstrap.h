/*
 * bootstrap.h - confidence intervals for figures of measured runs, by resampling the runs.
 *
 * Clusters are resampled: all the values of a run together, since a cause that makes a run slow (a warm
 * machine, the placement of its pages) makes all of its values slow. A value without a run is its own
 * cluster. The generator is seeded: the same numbers give the same interval.
 *
 * The quantiles of the resamples alone make intervals that are too narrow for a handful of clusters; they are
 * widened by the ratio of Student's distribution to the normal one (and by n / (n - 1), which a resample of n
 * loses).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A figure is a quantile, 0 to 1, or this. */
#define BOOTSTRAP_MEAN (-1.0)

enum { BOOTSTRAP_DRAWS = 10000, BOOTSTRAP_CLUSTERS_MIN = 3 };

struct bootstrap_side {
	const double *values;    /* finite */
	const uint32_t *cluster; /* of each value, below clusters; NULL: each its own */
	size_t n;
	uint32_t clusters;       /* may be 0 where cluster is NULL */
};

struct bootstrap_options {
	unsigned draws;    /* 0 = BOOTSTRAP_DRAWS */
	double confidence; /* 0.95; 0 = that */
	uint64_t seed;
	bool paired;       /* cluster i of both sides was measured together: they are drawn together */
};

struct bootstrap_interval {
	double estimate;
	double low, high; /* NAN below BOOTSTRAP_CLUSTERS_MIN clusters */
};

/* The figure itself; NAN of nothing. */
double bootstrap_figure(const struct bootstrap_side *s, double figure);
/* ret[i] is about figures[i]. */
void bootstrap_level(const struct bootstrap_side *s, const double *figures, size_t count,
		     const struct bootstrap_options *o, struct bootstrap_interval *ret);
/* Of b / a - 1. Paired sides must have the same number of clusters. All NAN where a figure of a is 0. */
void bootstrap_change(const struct bootstrap_side *a, const struct bootstrap_side *b, const double *figures,
		      size_t count, const struct bootstrap_options *o, struct bootstrap_interval *ret);
