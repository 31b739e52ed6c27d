/* test_counters.c - counters as a kernel handed them over, and what is made of them. */
#include "test.h"

#include <math.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/mem.h"
#include "target/trace/counters.h"

static void near(double got, double wanted, double tolerance)
{
	if (!(fabs(got - wanted) <= tolerance))
		fail_msg("%.12g, wanted %.12g", got, wanted);
}

/* Values as perf stat shows them for events that had all of the time, a part, and none of it. */
static void turns_are_scaled(void **state)
{
	const struct counter_raw whole = { 2540000000, 1000000000, 1000000000 };
	const struct counter_raw part = { 1250000, 1000000000, 624500000 };
	const struct counter_raw never = { 0, 1000000000, 0 };
	const struct counter_raw idle = { 0, 0, 0 };
	const struct counter_raw large = { UINT64_MAX / 2, 4000000000000, 1000000000000 };
	const struct counter_raw odd = { 5, 100, 200 };
	struct counter_value v = counter_decode(&whole);

	assert_true(v.known);
	near(v.value, 2540000000, 0);
	near(v.share, 1, 0);
	v = counter_decode(&part);
	assert_true(v.known);
	near(v.value, 1250000 / 0.6245, 0.01);
	near(v.share, 0.6245, 1e-12);
	assert_false(counter_decode(&never).known);
	v = counter_decode(&idle);
	assert_true(v.known && !v.value);
	v = counter_decode(&large);
	near(v.value / (double)UINT64_MAX, 2, 1e-9);
	v = counter_decode(&odd);
	near(v.value, 5, 0);
	near(v.share, 1, 0);
}

/*
 * Samples of one counter on one CPU, as a kernel with four counters for ten events hands them over: each time it has
 * counted a period it says how long it has been there, and how long it had its turn. The first had all of the
 * time, then two of five parts, then it had to wait for half a second.
 */
static void samples_are_scaled(void **state)
{
	static const struct {
		uint64_t period, enabled, running, wanted;
	} recorded[] = {
		{ 4000000, 4001210, 4001210, 4000000 },
		{ 4000000, 14011210, 8005210, 10000000 },
		{ 4100000, 24021210, 12009210, 10250000 },
		{ 4100000, 524021210, 16013210, 511988012 },
		{ 4100000, 528025210, 20017210, 4100000 },
	};
	const struct counter_raw zero = { 0 }, late = { 0, 1000, 500 }, early = { 0, 900, 400 }, wild = { 0, UINT64_MAX, 1 };
	struct counter_raw last = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(recorded); i++) {
		const struct counter_raw now = { 0, recorded[i].enabled, recorded[i].running };

		assert_in_range(counter_weight(recorded[i].period, &last, &now), recorded[i].wanted - 1,
				recorded[i].wanted + 1);
		last = now;
	}
	/* What cannot be is not scaled: no times at all, times that go back, more than fits. */
	assert_int_equal(counter_weight(7, &zero, &zero), 7);
	assert_int_equal(counter_weight(7, &late, &early), 7);
	assert_int_equal(counter_weight(7, &zero, &wild), 7);
}

static void threads_add_up(void **state)
{
	struct counter_value sum = { 0 };
	const struct counter_value unknown = { 0 }, one = { 100, 1, true }, half = { 300, 0.5, true };

	counter_add(&sum, &unknown);
	assert_false(sum.known);
	counter_add(&sum, &one);
	counter_add(&sum, &half);
	counter_add(&sum, &unknown);
	assert_true(sum.known);
	near(sum.value, 400, 1e-12);
	near(sum.share, 0.625, 1e-12);
}

/* The figures of the guide: IPC 2.54, 12.56 % of loads miss. */
static void ratios_and_hints(void **state)
{
	struct counter_value v[COUNTERS] = { 0 };

	assert_true(isnan(counter_ratio(v, RATIO_IPC)));
	v[COUNTER_CYCLES] = (struct counter_value){ 1e9, 1, true };
	v[COUNTER_INSTRUCTIONS] = (struct counter_value){ 2.54e9, 1, true };
	v[COUNTER_L1D_LOADS] = (struct counter_value){ 1e8, 0.5, true };
	v[COUNTER_L1D_MISSES] = (struct counter_value){ 12.56e6, 0.5, true };
	v[COUNTER_CACHE_REFERENCES] = (struct counter_value){ 0, 1, true };
	v[COUNTER_CACHE_MISSES] = (struct counter_value){ 0, 1, true };
	near(counter_ratio(v, RATIO_IPC), 2.54, 1e-12);
	near(counter_ratio(v, RATIO_L1D_MISSES), 0.1256, 1e-12);
	assert_true(isnan(counter_ratio(v, RATIO_CACHE_MISSES)));
	assert_non_null(strstr(counter_hint(RATIO_IPC, 2.54), "good"));
	assert_non_null(strstr(counter_hint(RATIO_IPC, 0.7), "stalls"));
	assert_null(counter_hint(RATIO_IPC, 1.5));
	assert_non_null(counter_hint(RATIO_CACHE_MISSES, 0.11));
	assert_null(counter_hint(RATIO_CACHE_MISSES, 0.09));
	assert_non_null(counter_hint(RATIO_L1D_MISSES, 0.1256));
}

/* Ourselves, where the kernel lets us: CPU time is counted, and what this machine lacks is not known rather
 * than 0. */
static void of_ourselves(void **state)
{
	struct counter_value v[COUNTERS];
	struct counters c;
	volatile uint64_t work = 0;

	if (counters_open(&c, getpid(), false)) {
		counters_close(&c);
		skip();
	}
	for (uint64_t i = 0; i < 20000000; i++)
		work += i;
	assert_int_not_equal(work, 0);
	counters_read(&c, v);
	assert_true(v[COUNTER_TASK_CLOCK].known && v[COUNTER_TASK_CLOCK].value > 1e6);
	for (size_t i = 0; i < COUNTERS; i++)
		if (c.fds[i] < 0)
			assert_false(v[i].known);
	if (v[COUNTER_CYCLES].known && v[COUNTER_INSTRUCTIONS].known)
		assert_true(v[COUNTER_CYCLES].value > 0 && v[COUNTER_INSTRUCTIONS].value > 2e7);
	c.user_only = true;
	counters_read(&c, v);
	assert_false(v[COUNTER_SWITCHES].known || v[COUNTER_MIGRATIONS].known);
	counters_close(&c);
	counters_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_are_scaled),
		cmocka_unit_test(samples_are_scaled),
		cmocka_unit_test(threads_add_up),
		cmocka_unit_test(ratios_and_hints),
		cmocka_unit_test(of_ourselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
