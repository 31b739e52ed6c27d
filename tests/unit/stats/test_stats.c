/* test_stats.c - figures of tables that others computed, and series whose variance is known. */
#include "test.h"

#include <math.h>

#include "base/json.h"
#include "stats/stats.h"
#include "golden.h"
#include "random.h"

static void near(double got, double wanted, double tolerance)
{
	if (!(fabs(got - wanted) <= tolerance))
		fail_msg("%.12g, wanted %.12g", got, wanted);
}

static void normal_distribution(void **state)
{
	near(stats_normal_cdf(0), 0.5, 1e-15);
	near(stats_normal_cdf(1.959963984540054), 0.975, 1e-12);
	near(stats_normal_cdf(-6), 9.865876450376981e-10, 1e-20);
}

/* The table at the end of every book on statistics: two-sided 5 %, 1 % and 0.1 %. */
static void student_distribution(void **state)
{
	static const struct {
		double df, five, one, tenth;
	} table[] = {
		{ 1, 12.706205, 63.656741, 636.619249 }, { 2, 4.302653, 9.924843, 31.599055 },
		{ 4, 2.776445, 4.604095, 8.610302 },     { 10, 2.228139, 3.169273, 4.586894 },
		{ 30, 2.042272, 2.749996, 3.645959 },    { 120, 1.979930, 2.617421, 3.373454 },
		{ INFINITY, 1.959964, 2.575829, 3.290527 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		near(stats_t_bound(0.05, table[i].df), table[i].five, 1e-5);
		near(stats_t_bound(0.01, table[i].df), table[i].one, 1e-5 * table[i].one);
		near(stats_t_bound(0.001, table[i].df), table[i].tenth, 1e-5 * table[i].tenth);
		near(stats_t_p(-table[i].five, table[i].df), 0.05, 1e-6);
	}
	near(stats_t_p(0, 5), 1, 1e-15);
	near(stats_t_p(1, 1), 0.5, 1e-12); /* Cauchy */
	near(stats_t_p(3, 7.5) - stats_t_p(3, 7.4), 0, 1e-3);
	near(stats_t_p(INFINITY, 3), 0, 0);
	near(stats_t_p(NAN, 3), 1, 0);
	near(stats_t_p(3, NAN), 1, 0);
	near(stats_t_p(3, -1), 1, 0);
	near(stats_t_bound(1, 3), 0, 0);
	assert_true(isfinite(stats_t_bound(0, 1)));
}

static void false_discoveries(void **state)
{
	/* By hand: p * 6 / rank, made monotonic from the end. */
	double p[] = { 0.04, 0.001, 0.5, 0.008, 0.039, NAN }, q[6];

	stats_adjust(p, 6, q);
	near(q[1], 0.006, 1e-12);
	near(q[3], 0.024, 1e-12);
	near(q[4], 0.06, 1e-12);
	near(q[0], 0.06, 1e-12);
	near(q[2], 0.6, 1e-12);
	near(q[5], 1, 0);
	stats_adjust(p, 6, p);
	assert_memory_equal(p, q, sizeof(p));
	stats_adjust(NULL, 0, NULL);
}

static void medians(void **state)
{
	double odd[] = { 3, 1, 2 }, even[] = { 4, 1, 3, 2 };

	near(stats_median(odd, 3), 2, 0);
	near(stats_median(even, 4), 2.5, 0);
	near(stats_median(NULL, 0), 0, 0);
}

/* The mean of the estimated variance of the sum, over many series, as a multiple of the true one; and how
 * often |sum| lies outside of its own 99 % interval. */
static void try_series(double correlation, double *ret_ratio, double *ret_outside)
{
	enum { N = 64, SERIES = 4000 };
	struct random r = { 7 };
	double v = 0, truth = 0, outside = 0;

	for (int i = 0; i < SERIES; i++) {
		double e[N], sum = 0, z = random_normal(&r);
		struct stats_spread s;

		for (int k = 0; k < N; k++) {
			z = correlation * z + sqrt(1 - correlation * correlation) * random_normal(&r);
			e[k] = z;
			sum += z;
		}
		for (int k = 0; k < N; k++)
			e[k] -= sum / N;
		s = stats_sum_spread(e, N);
		v += s.variance;
		truth += sum * sum;
		outside += stats_t_p(sum / sqrt(s.variance), s.df) < 0.01;
	}
	*ret_ratio = v / truth;
	*ret_outside = outside / SERIES;
}

static void variance_of_a_sum(void **state)
{
	double ratio, outside;

	/* Noise without memory: a bit too careful. */
	try_series(0, &ratio, &outside);
	assert_true(ratio > 1 && ratio < 1.6);
	assert_true(outside < 0.01);
	/* Neighbours that go together make three and nine times the variance; most of it must be seen. */
	try_series(0.5, &ratio, &outside);
	assert_true(ratio > 0.85 && ratio < 1.5);
	assert_true(outside < 0.02);
	try_series(0.8, &ratio, &outside);
	assert_true(ratio > 0.6 && ratio < 1.4);
	/* 5.05 % of what should be 1 %: such a series has 7 stretches that are independent, and no way to
	 * know more from it alone. docs/decisions/0007-diff.md says what that means. */
	assert_true(outside < 0.06);
}

static void bursts_and_nothing(void **state)
{
	double burst[64] = { 0 }, none[64] = { 0 }, two[] = { 1, -1 };
	struct stats_spread s;

	for (int k = 0; k < 64; k++)
		burst[k] = k == 20 ? 63 : -1;
	s = stats_sum_spread(burst, 64);
	assert_true(s.variance >= 64 * 63); /* all of it might as well not have come */
	assert_true(s.df < 5);
	s = stats_sum_spread(none, 64);
	near(s.variance, 0, 0);
	s = stats_sum_spread(two, 2);
	assert_true(s.variance > 0 && isfinite(s.variance) && s.df > 0);
	near(stats_sum_spread(two, 1).variance, 0, 0);
	near(stats_sum_spread(NULL, 0).variance, 0, 0);
	none[3] = 1e-200; /* its square is nothing */
	s = stats_sum_spread(none, 64);
	assert_true(isfinite(s.variance) && !isnan(s.df));
}

static void degrees_of_freedom(void **state)
{
	const struct stats_spread same[] = { { 2, 10 }, { 2, 10 } }, known[] = { { 2, 10 }, { 2, INFINITY } },
				  none[] = { { 0, 0 }, { 0, 0 } };

	near(stats_sum_df(same, 2), 20, 1e-12);
	near(stats_sum_df(known, 2), 40, 1e-12);
	assert_true(isinf(stats_sum_df(none, 2)));
}

/* Python's statistics module has the same: mean, median, stdev, quantiles(method="inclusive"). */
static void as_python_describes(void **state)
{
	const double few[] = { 59.23, 59.62, 60.40, 59.75, 60.12, 59.31,
			       60.98, 59.74, 59.77, 61.40, 59.9,  58.88 };
	double many[130] = { [128] = NAN, [129] = INFINITY };
	struct stats_summary s;

	stats_describe(few, 12, &s);
	assert_int_equal(s.n, 12);
	near(s.mean, 59.925, 1e-12);
	near(s.median, 59.76, 1e-12);
	near(s.stddev, 0.7190966555338708, 1e-12);
	near(s.p90, 60.922, 1e-12);
	near(s.mad, 0.405, 1e-12);
	near(s.min, 58.88, 0);
	near(s.max, 61.40, 0);
	assert_true(isnan(s.p95) && isnan(s.p99));
	for (int i = 0; i < 128; i++)
		many[i] = i * 7919 % 1009 / 7.0;
	stats_describe(many, 130, &s);
	assert_int_equal(s.n, 128);
	near(s.mean, 72.64397321428571, 1e-11);
	near(s.median, 73, 1e-11);
	near(s.stddev, 42.08378348516303, 1e-11);
	near(s.p90, 129.6, 1e-11);
	near(s.p95, 136.86428571428573, 1e-11);
	near(s.p99, 142.84571428571428, 1e-11);
}

static void outliers(void **state)
{
	const double v[] = { 10, 10.1, 9.9, 10.2, 9.8, 10, 14 }, same[] = { 1, 1, 1, 1, 9 };
	struct stats_summary s;

	stats_describe(v, 7, &s);
	assert_true(stats_is_outlier(&s, 14) && !stats_is_outlier(&s, 9.8));
	stats_describe(same, 5, &s);
	assert_false(stats_is_outlier(&s, 9));
	stats_describe(v, 1, &s);
	assert_true(s.n == 1 && isnan(s.stddev) && !stats_is_outlier(&s, 100));
	stats_describe(v, 0, &s);
	assert_true(!s.n && isnan(s.mean) && isnan(s.median) && !stats_is_outlier(&s, 1));
}

static void put_numbers(struct json *j, const char *key, const double *v, size_t n)
{
	json_open_array(j, key);
	for (size_t i = 0; i < n; i++)
		json_put_real(j, NULL, v[i], 9);
	json_close(j);
}

/* A series of a kind: white noise, neighbours that go together, a few bursts. Its sum is 0. */
static void make_series(double *e, size_t n, int kind)
{
	struct random r = { .state = 77 + kind };
	double mean = 0;

	for (size_t i = 0; i < n; i++) {
		e[i] = kind == 2 ? (random_unit(&r) < 0.1) : random_unit(&r) + (kind && i ? 0.8 * e[i - 1] : 0);
		mean += e[i] / n;
	}
	for (size_t i = 0; i < n; i++)
		e[i] = round((e[i] - mean) * 1e6) / 1e6;
}

/* Figures for the page, which computes the same in JavaScript: tests/browser/test_compare.py. */
static void figures_for_the_page(void **state)
{
	static const double ts[] = { 0, 0.3, 1, 2.5, 4, 9 }, dfs[] = { 0.7, 1, 3.3, 7, 30, 126, 5000, 1e9 };
	const double p[] = { 0.04, 0.001, 0.5, 0.008, 0.039, 1, 0.0001, 0.2 };
	double e[64], q[8];
	struct stats_spread parts[3];
	_cleanup_(buf_done) struct buf out = { 0 };
	struct json j = json_begin(&out);

	json_open_object(&j, NULL);
	json_open_array_line(&j, "tP", 0);
	for (size_t i = 0; i < sizeof(ts) / sizeof(*ts); i++)
		for (size_t k = 0; k < sizeof(dfs) / sizeof(*dfs); k++)
			put_numbers(&j, NULL, (const double[]){ ts[i], dfs[k], stats_t_p(ts[i], dfs[k]) }, 3);
	json_close(&j);
	json_open_array_line(&j, "tBound", 0);
	for (size_t k = 0; k < sizeof(dfs) / sizeof(*dfs); k++)
		put_numbers(&j, NULL, (const double[]){ 0.05, dfs[k], stats_t_bound(0.05, dfs[k]) }, 3);
	json_close(&j);
	stats_adjust(p, 8, q);
	json_open_object_line(&j, "adjust", 0);
	put_numbers(&j, "p", p, 8);
	put_numbers(&j, "q", q, 8);
	json_close(&j);
	json_open_array_line(&j, "spread", 0);
	for (int kind = 0; kind < 3; kind++) {
		size_t n = kind == 1 ? 64 : 40;

		make_series(e, n, kind);
		parts[kind] = stats_sum_spread(e, n);
		json_open_row(&j, 1);
		put_numbers(&j, "e", e, n);
		json_put_real(&j, "variance", parts[kind].variance, 9);
		json_put_real(&j, "df", parts[kind].df, 9);
		json_close(&j);
	}
	json_close(&j);
	json_break(&j, 0);
	json_put_real(&j, "sumDf", stats_sum_df(parts, 3), 9);
	json_end_line(&j);
	golden_check("stats.json", out.data, out.n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(normal_distribution), cmocka_unit_test(student_distribution),
		cmocka_unit_test(false_discoveries),   cmocka_unit_test(medians),
		cmocka_unit_test(variance_of_a_sum),   cmocka_unit_test(bursts_and_nothing),
		cmocka_unit_test(degrees_of_freedom),  cmocka_unit_test(as_python_describes),
		cmocka_unit_test(outliers),            cmocka_unit_test(figures_for_the_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
