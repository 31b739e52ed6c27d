/*
 * stats.h - statistics to decide whether a figure is more or less than another.
 *
 * Pure arithmetic: no allocation is kept, nothing is random. Functions of hostile figures (NaN, infinite,
 * negative degrees of freedom) give a p of 1 or a finite number, never a trap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* --- distributions --- */

/* P(Z <= z) */
double stats_normal_cdf(double z);
/* P(|T| >= |t|) of Student's t; df may be a fraction and infinite. */
double stats_t_p(double t, double df);
/* The t that |T| exceeds with probability p: 0.05 gives the half width of a 95 % interval. */
double stats_t_bound(double p, double df);

/* --- many tests at once --- */

/* Benjamini and Hochberg: q[i] is the smallest false discovery rate at which test i counts as a discovery.
 * p and q may be the same array. */
void stats_adjust(const double *p, size_t n, double *q);

/* --- series --- */

/* The median; sorts v. 0 of nothing. */
double stats_median(double *v, size_t n);

/* The p-quantile of sorted numbers, straight lines between them (type 7 of the usual nine). NAN of nothing.
 */
double stats_quantile(const double *sorted, size_t n, double p);

struct stats_summary {
	size_t n;                      /* of numbers: NAN and infinite ones do not count */
	double min, max, mean, median;
	double stddev;                 /* of a sample, NAN below 2 */
	double p90, p95, p99;          /* NAN for fewer than 10, 20, 100 numbers */
	double mad;                    /* the median distance from the median */
};
/* All NAN where there is no number. */
void stats_describe(const double *v, size_t n, struct stats_summary *ret);
/* Returns whether x is further from the median than 3.5 standard deviations as estimated by the MAD. Never
 * where the MAD is 0. */
bool stats_is_outlier(const struct stats_summary *s, double x);

struct stats_spread {
	double variance;
	double df; /* how well the variance itself is known: degrees of freedom */
};

/*
 * The variance of the sum of a series of residuals (their sum is 0), measured from the series itself.
 * Neighbours may go together: the variance is also taken from sums over 2, 4, ... neighbours as long as 8
 * such stretches fit, and beyond that by how it grew; the largest counts. A series that is made of a few
 * bursts knows its variance badly, however long it is: df says so.
 */
struct stats_spread stats_sum_spread(const double *e, size_t n);

/* df of the sum of independent parts (Welch and Satterthwaite); df INFINITY in a part: exactly known. */
double stats_sum_df(const struct stats_spread *parts, size_t n);
