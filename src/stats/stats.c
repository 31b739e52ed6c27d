#include "stats/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

enum { STRETCHES = 8 }; /* fewer give no variance worth its name */

/* --- distributions --- */

double stats_normal_cdf(double z)
{
	return 0.5 * erfc(-z / M_SQRT2);
}

/*
 * The continued fraction of the incomplete beta function, by the modified method of Lentz: ratios of
 * successive numerators and denominators, kept away from 0.
 */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), f;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	f = d;
	for (int m = 1; m < 400; m++) {
		double change = 1;

		for (int odd = 0; odd < 2; odd++) {
			double term = odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)) :
					    m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));

			d = 1 + term * d;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = 1 + term / c;
			if (fabs(c) < tiny)
				c = tiny;
			change = c * d;
			f *= change;
		}
		if (fabs(change - 1) < 1e-14)
			break;
	}
	return f;
}

/* The regularized incomplete beta function I_x(a, b); y is 1 - x, given for its own precision. */
static double beta_share(double a, double b, double x, double y)
{
	double front;
	int sign;

	if (x <= 0)
		return 0;
	if (y <= 0)
		return 1;
	front = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) + a * log(x) +
		    b * log(y));
	/* The fraction converges fast on one side of the mean only. */
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, y) / b;
}

double stats_t_p(double t, double df)
{
	double square = t * t;

	if (isnan(t) || isnan(df) || df <= 0)
		return 1;
	if (isinf(square))
		return 0;
	if (df > 1e6)
		return erfc(fabs(t) / M_SQRT2);
	return beta_share(df / 2, 0.5, df / (df + square), square / (df + square));
}

/* Twice the density: how fast stats_t_p() falls. */
static double t_slope(double t, double df)
{
	int sign;

	if (df > 1e6)
		return 2 * exp(-t * t / 2) / sqrt(2 * M_PI);
	return 2 * exp(lgamma_r((df + 1) / 2, &sign) - lgamma_r(df / 2, &sign) - (df + 1) / 2 * log1p(t * t / df)) / sqrt(df * M_PI);
}

/* Newton's steps, from below: stats_t_p() is convex there. One that leaves the bracket is halved. */
double stats_t_bound(double p, double df)
{
	double low = 0, high = 1, t;

	if (!(p < 1) || isnan(df) || df <= 0)
		return 0;
	while (stats_t_p(high, df) > p && high < 1e12) {
		low = high;
		high *= 2;
	}
	t = low;
	for (int i = 0; i < 100 && high - low > 1e-12 * high; i++) {
		double above = stats_t_p(t, df) - p, next = t + above / t_slope(t, df);

		*(above > 0 ? &low : &high) = t;
		if (!(next > low && next < high))
			next = (low + high) / 2;
		if (fabs(next - t) <= 1e-13 * t)
			return next;
		t = next;
	}
	return high;
}

/* --- many tests at once --- */

struct ranked {
	double p;
	size_t at;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return ORDER(x->p, y->p) ?: ORDER(x->at, y->at);
}

void stats_adjust(const double *p, size_t n, double *q)
{
	struct ranked *order = mem_alloc((n + 1) * sizeof(*order));
	double least = 1;

	for (size_t i = 0; i < n; i++)
		order[i] = (struct ranked){ p[i] >= 0 && p[i] <= 1 ? p[i] : 1, i };
	if (n > 1)
		qsort(order, n, sizeof(*order), compare_ranked);
	for (size_t i = n; i-- > 0;) {
		least = fmin(least, order[i].p * (double)n / (double)(i + 1));
		q[order[i].at] = least;
	}
	free(order);
}

/* --- series --- */

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return ORDER(x, y);
}

double stats_median(double *v, size_t n)
{
	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), compare_doubles);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double stats_quantile(const double *sorted, size_t n, double p)
{
	double at = (double)(n - 1) * p;
	size_t below = (size_t)at;

	if (!n)
		return NAN;
	if (below + 1 >= n)
		return sorted[n - 1];
	return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

/* Finite numbers of v, sorted; the caller frees. */
static double *sort_finite(const double *v, size_t n, size_t *ret_n)
{
	double *sorted = mem_alloc((n + 1) * sizeof(*sorted));
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (isfinite(v[i]))
			sorted[count++] = v[i];
	if (count > 1)
		qsort(sorted, count, sizeof(*sorted), compare_doubles);
	*ret_n = count;
	return sorted;
}

void stats_describe(const double *v, size_t n, struct stats_summary *ret)
{
	size_t count;
	_cleanup_free_ double *sorted = sort_finite(v, n, &count);
	long double sum = 0, squares = 0;

	*ret = (struct stats_summary){ count, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN };
	if (!count)
		return;
	for (size_t i = 0; i < count; i++)
		sum += sorted[i];
	sum /= count;
	for (size_t i = 0; i < count; i++)
		squares += (sorted[i] - sum) * (sorted[i] - sum);
	ret->min = sorted[0];
	ret->max = sorted[count - 1];
	ret->mean = (double)sum;
	ret->median = stats_quantile(sorted, count, 0.5);
	if (count > 1)
		ret->stddev = (double)sqrtl(squares / (count - 1));
	/* A quantile that lies among the last few numbers of many, or is only the largest of few. */
	if (count >= 10)
		ret->p90 = stats_quantile(sorted, count, 0.9);
	if (count >= 20)
		ret->p95 = stats_quantile(sorted, count, 0.95);
	if (count >= 100)
		ret->p99 = stats_quantile(sorted, count, 0.99);
	for (size_t i = 0; i < count; i++)
		sorted[i] = fabs(sorted[i] - ret->median);
	ret->mad = stats_median(sorted, count);
}

bool stats_is_outlier(const struct stats_summary *s, double x)
{
	const double normal = 1.482602218505602; /* 1 / the quartile of the normal distribution */

	return s->mad > 0 && fabs(x - s->median) > 3.5 * normal * s->mad;
}

/*
 * From sums over all stretches of length neighbours, overlapping: that is as good as half as many again which
 * lie end to end. Their kurtosis says how far the variance is known: it is 3 of a normal series and n of
 * a single burst, and df is 2 / (relative variance of the variance).
 */
static struct stats_spread spread_of_stretches(const double *e, size_t n, size_t length)
{
	size_t count = n - length + 1;
	double sum = 0, squares = 0, fourths = 0, stretches = (double)n / length, kurtosis;
	struct stats_spread s = { 0 };

	for (size_t i = 0; i < length - 1; i++)
		sum += e[i];
	for (size_t i = 0; i < count; i++) {
		sum += e[i + length - 1];
		squares += sum * sum;
		fourths += sum * sum * sum * sum;
		sum -= e[i];
	}
	if (!(squares > 0) || !(fourths > 0)) /* of tiny numbers nothing is left */
		return s;
	/* The variance of a sum of so many stretches, corrected for the estimated mean. */
	s.variance = squares / count * stretches * stretches / (stretches - 1);
	kurtosis = fourths * count / (squares * squares);
	if (length > 1)
		stretches *= 1.5;
	s.df = stretches - 1;
	if (kurtosis > 1)
		s.df = fmin(s.df, 2 * stretches / (kurtosis - 1));
	return s;
}

/* The larger variance counts. The choice of the larger makes up for some of its uncertainty, so its df
 * lies between those of both. */
static void take_larger(struct stats_spread *worst, double variance, double df)
{
	if (variance > worst->variance)
		*worst = (struct stats_spread){ variance, sqrt(worst->df * df) };
}

struct stats_spread stats_sum_spread(const double *e, size_t n)
{
	struct stats_spread worst, before;

	if (n < 2)
		return (struct stats_spread){ 0 };
	worst = before = spread_of_stretches(e, n, 1);
	for (size_t length = 2; length * STRETCHES <= n; length *= 2) {
		struct stats_spread s = spread_of_stretches(e, n, length);

		take_larger(&worst, s.variance, s.df);
		/* The missing part halves as the length doubles: this adds it again, and is noisier. */
		take_larger(&worst, 2 * s.variance - before.variance, s.df / 1.5);
		before = s;
	}
	return worst;
}

double stats_sum_df(const struct stats_spread *parts, size_t n)
{
	double v = 0, doubt = 0;

	for (size_t i = 0; i < n; i++) {
		v += parts[i].variance;
		if (parts[i].variance > 0)
			doubt += parts[i].variance * parts[i].variance / parts[i].df;
	}
	return doubt > 0 ? v * v / doubt : INFINITY;
}
