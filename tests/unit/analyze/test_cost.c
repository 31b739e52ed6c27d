#include "test.h"

#include <string.h>

#include "analyze/cost.h"
#include "base/buf.h"
#include "export/section/cost/costtext.h"
#include "profile/keys.h"
#include "profile/profile.h"

static void add_change(struct profile *p, const char *collector, uint64_t ms, int64_t one_in)
{
	_cleanup_free_ char *key = key_of(KEY_THIN_OF, collector);

	profile_add_point(p, profile_series(p, key), ms * 1000000, one_in);
}

/* Ten seconds of a target that used half a CPU. */
static struct profile *recorded(void)
{
	struct profile *p = profile_new();

	p->duration_ns = 10000000000;
	profile_count_set(p, KEY_OVERHEAD_BASE_NS, 10000000000);
	profile_count_set(p, KEY_OVERHEAD_LIMIT, 50000);
	profile_count_set(p, KEY_OVERHEAD_MACHINE_NS, 40000000000);
	profile_count_set(p, KEY_OVERHEAD_TARGET_NS, 5000000000);
	profile_count_set(p, KEY_OVERHEAD_THREADS_NS, 5000000000);
	profile_count_set(p, KEY_OVERHEAD_START_NS, 140000000);
	profile_count_set_of(p, KEY_OVERHEAD_RUN_NS_OF, "tracepoint", 61);
	profile_count_set_of(p, KEY_OVERHEAD_RUN_NS_OF, "clock", 1400);
	profile_count_set_of(p, KEY_OVERHEAD_RUN_ASSUMED_NS_OF, "uprobe", 1200);
	profile_count_set_of(p, KEY_OVERHEAD_NS_OF, "own", 900000000);
	profile_count_set_of(p, KEY_OVERHEAD_OWN_NS_OF, "own", 900000000);
	profile_count_set_of(p, KEY_OVERHEAD_NS_OF, "cpu", 30000000);
	profile_count_set_of(p, KEY_OVERHEAD_OWN_NS_OF, "cpu", 10000000);
	profile_count_set_of(p, KEY_OVERHEAD_EVENTS_OF, "cpu", 10000);
	/* A half of a million switches is passed over: it is a part of four CPUs. */
	profile_count_set_of(p, KEY_OVERHEAD_NS_OF, "wait", 280000000);
	profile_count_set_of(p, KEY_OVERHEAD_OTHERS_NS_OF, "wait", 80000000);
	profile_count_set_of(p, KEY_OVERHEAD_EVENTS_OF, "wait", 1000000);
	profile_count_set_of(p, KEY_OVERHEAD_RECORDED_OF, "wait", 500000);
	return p;
}

static void nothing_is_said_of_other_captures(void **state)
{
	struct profile *p = profile_new();
	struct buf b = { 0 };

	costtext_put(p, false, &b);
	assert_int_equal(b.n, 0);
	profile_free(p);
}

static void costs_by_collector(void **state)
{
	struct profile *p = recorded();
	struct buf b = { 0 };
	struct cost c;

	cost_build(&c, p);
	assert_int_equal(c.rows.n, 3);
	/* The dearest first, what is nobody's last. */
	assert_string_equal(c.rows.v[0].name, "wait");
	assert_string_equal(c.rows.v[1].name, "cpu");
	assert_string_equal(c.rows.v[2].name, "own");
	assert_true(c.percent > 13.49 && c.percent < 13.51);
	assert_int_equal(c.spans.n, 0);
	cost_done(&c);
	costtext_put(p, false, &b);
	assert_string_equal(b.data, "Cost of recording: 13.50 % of the target's CPU time (0.50 CPUs); other processes lose 0.20 % of all CPUs; 5 % allowed; its start took 140 ms of CPU time\n"
				    "  collector           events  recorded  ns an event       cost   to others\n"
				    "  wait             1,000,000      50 %          280     4.00 %      0.20 %\n"
				    "  cpu                 10,000                  3,000     0.50 %\n"
				    "  own                                                   9.00 %\n"
				    "  measured at the start, and added to each run of a program: tracepoint 61 ns, clock 1400 ns\n"
				    "  assumed beside that: uprobe 1200 ns\n");
	buf_done(&b);
	/* A target that is hardly busy: the base is a part of a CPU, and that is said. */
	profile_count_set(p, KEY_OVERHEAD_TARGET_NS, 200000000);
	profile_count_set(p, KEY_OVERHEAD_THREADS_NS, 1000000000);
	b = (struct buf){ 0 };
	costtext_put(p, false, &b);
	assert_non_null(strstr(b.data, "Cost of recording: 31.10 % of a tenth of a CPU (the target used 0.02 CPUs); other processes"));
	buf_done(&b);
	profile_free(p);
}

static void what_was_thinned_when(void **state)
{
	struct profile *p = recorded();
	struct buf b = { 0 };
	struct cost c;

	add_change(p, "wait", 0, 1);
	add_change(p, "cpu", 0, 1);
	add_change(p, "wait", 2000, 8);
	add_change(p, "cpu", 3000, 2);
	add_change(p, "wait", 5000, 4);
	add_change(p, "wait", 7500, 1);
	profile_count_set_of(p, KEY_THINNED_SAMPLED_OF, "wait", 40000);
	profile_count_set(p, KEY_OVERHEAD_FLOOR, 62500);
	profile_count_set_of(p, KEY_THINNED_LEAST_NS_OF, "wait", 310);
	cost_build(&c, p);
	assert_int_equal(c.spans.n, 3);
	assert_string_equal(c.spans.v[0].collector, "wait");
	assert_int_equal(c.spans.v[0].one_in, 8);
	assert_int_equal(c.spans.v[0].to_ns, 5000000000);
	assert_int_equal(c.spans.v[1].to_ns, 7500000000);
	/* The last goes to the end. */
	assert_int_equal(c.spans.v[2].from_ns, 3000000000);
	assert_int_equal(c.spans.v[2].to_ns, 10000000000);
	cost_done(&c);
	costtext_put(p, false, &b);
	assert_non_null(strstr(b.data, "\n  wait: 1 in 8 of the usual stacks of short waits from 2.0 to 5.0 s, 1 in 4 "
				       "from 5.0 to 7.5 s; shares by stack of that time within 0.5 points (95 %)\n"));
	assert_non_null(strstr(b.data, "\n  cpu: 1 in 2 ticks of the clock from 3.0 to 10.0 s\n"));
	assert_non_null(strstr(b.data, "the least that was possible: 6.25 %; an event of wait costs 0.31 µs at least\n"
				       "  To keep 5 %, record without wait (the rest costs 4.40 %), or allow more (--max-overhead 7%)\n"));
	buf_done(&b);
	/* Many changes are one line. */
	for (int i = 0; i < 20; i++)
		add_change(p, "wait", 8000 + 10 * i, i % 2 ? 1 : 16);
	b = (struct buf){ 0 };
	costtext_put(p, false, &b);
	assert_non_null(strstr(b.data, "\n  wait: 1 in 16 of the usual stacks of short waits at most, in 12 steps from 2.0 to 8.2 s"));
	buf_done(&b);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_said_of_other_captures),
		cmocka_unit_test(costs_by_collector),
		cmocka_unit_test(what_was_thinned_when),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
