/* Metrics: what a window adds, once; what labels become; what is dropped. */
#include "test.h"

#include <errno.h>

#include "base/buf.h"
#include "base/clock.h"
#include "fleet/sink/metrics.h"
#include "fleet/sink/sink.h"
#include "windowed.h"

static const uint64_t hour_ns = 3600ULL * 1000000000;

static struct sink_window window_of(const struct windowed *x, const char *target)
{
	return (struct sink_window){ .target = target, .start_wall_ns = x->w.s.p->start_wall_ns, .duration_ns = 1000 * MS, .job = &x->job, .fd = -1 };
}

/* Has the page this line? */
static bool has(const struct metrics *m, const char *line)
{
	_cleanup_(buf_done) struct buf page = { 0 };

	metrics_put_text(m, &page);
	return page.n && strstr(page.data, line);
}

static void test_windows(void **state)
{
	struct metrics *m = metrics_new();
	struct windowed x;
	struct sink_window w;

	windowed_make(&x);
	w = window_of(&x, "reth");
	assert_false(has(m, "gasflame"));
	metrics_add_window(m, &w);
	assert_true(has(m, "\ngasflame_blocks_total{host=\"box\",target=\"reth\"} 1\n"));
	assert_true(has(m, "\ngasflame_gas_total{host=\"box\",target=\"reth\"} 30000000\n"));
	assert_true(has(m, "\ngasflame_transactions_total{host=\"box\",target=\"reth\"} 99\n"));
	assert_true(has(m, "\ngasflame_recorded_seconds_total{host=\"box\",target=\"reth\"} 1\n"));
	/* 100 ms: in its bucket and in all above it. */
	assert_true(has(m, "_bucket{host=\"box\",le=\"0.05\",target=\"reth\"} 0\n"));
	assert_true(has(m, "_bucket{host=\"box\",le=\"0.1\",target=\"reth\"} 1\n"));
	assert_true(has(m, "_bucket{host=\"box\",le=\"+Inf\",target=\"reth\"} 1\n"));
	assert_true(has(m, "gasflame_block_seconds_sum{host=\"box\",target=\"reth\"} 0.1\n"));
	/* What was not recorded is not there. */
	assert_false(has(m, "gasflame_memory"));
	assert_false(has(m, "gasflame_time_seconds_total"));

	/* It comes again: once. The next one adds up, also where the clock was set back. */
	metrics_add_window(m, &w);
	assert_true(has(m, "\ngasflame_blocks_total{host=\"box\",target=\"reth\"} 1\n"));
	w.start_wall_ns += 1000 * MS;
	w.sequence = 1;
	metrics_add_window(m, &w);
	assert_true(has(m, "\ngasflame_blocks_total{host=\"box\",target=\"reth\"} 2\n"));
	w.start_wall_ns -= hour_ns;
	w.sequence = 2;
	metrics_add_window(m, &w);
	assert_true(has(m, "\ngasflame_blocks_total{host=\"box\",target=\"reth\"} 3\n"));

	/* Another release is another series, from the begin. */
	w.start_wall_ns += 2 * hour_ns;
	w.release = "v2";
	metrics_add_window(m, &w);
	assert_true(has(m, "\ngasflame_blocks_total{host=\"box\",release=\"v2\",target=\"reth\"} 1\n"));
	assert_false(has(m, "{host=\"box\",target=\"reth\"}"));
	metrics_free(m);
	windowed_done(&x);
}

static void test_labels(void **state)
{
	static const char *const labels[] = { "zone=a\"b\\c\nd", "target=other", "le=1", "9=nine", "__name__=evil", "\xff-x=\xff", "empty=", "none", "zone=again", NULL };
	struct metrics *m = metrics_new();
	struct windowed x;
	struct sink_window w;
	char longest[1000], quoted[1100];

	windowed_make(&x);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	w = window_of(&x, longest);
	w.labels = labels;
	metrics_add_window(m, &w);
	longest[200] = 0;
	assert_false(has(m, "target=\"other\""));
	assert_true(has(m, "host=\"box\",label_9=\"nine\",label___name__=\"evil\",le=\"1\",target=\""));
	snprintf(quoted, sizeof(quoted), "\"%s\"", longest);
	assert_true(has(m, quoted));
	/* A name of two "_" at its begin is no label's. */
	assert_true(has(m, "x_x=\"\xef\xbf\xbd\",zone=\"a\\\"b\\\\c\xef\xbf\xbd" "d\"} 1\n"));
	/* Ours wins. */
	assert_true(has(m, "le=\"0.1\""));
	assert_false(has(m, "empty"));
	assert_false(has(m, "none"));
	metrics_free(m);
	windowed_done(&x);
}

static void test_bounds(void **state)
{
	struct metrics *m = metrics_new();
	struct windowed x;
	char name[32];

	windowed_make(&x);
	for (int i = 0; i < METRICS_TARGETS + 10; i++) {
		struct sink_window w = window_of(&x, name);

		snprintf(name, sizeof(name), "t%d", i);
		metrics_add_window(m, &w);
	}
	assert_false(has(m, "target=\"t0\""));
	assert_false(has(m, "target=\"t9\""));
	assert_true(has(m, "target=\"t10\""));
	metrics_set(m, "gasflame_agent_spool_bytes", NULL, 12);
	metrics_set(m, "gasflame_agent_windows_total", (const char *const[]){ "target=t10", NULL }, 3);
	metrics_expire(m, clock_mono_ns() + hour_ns / 2);
	assert_true(has(m, "gasflame_agent_windows_total{target=\"t10\"} 3\n"));
	metrics_expire(m, clock_mono_ns() + hour_ns + hour_ns / 2);
	assert_false(has(m, "target="));
	assert_true(has(m, "\ngasflame_agent_spool_bytes 12\n"));
	metrics_free(m);
	windowed_done(&x);
}

static void test_agent(void **state)
{
	const char *const sink[] = { "sink=o\"tel", NULL };
	struct metrics *m = metrics_new();
	int r = 0;

	assert_int_equal(metrics_set(m, "gasflame_agent_sink_delivered_total", sink, 1), 0);
	assert_int_equal(metrics_set(m, "gasflame_agent_sink_delivered_total", sink, 0.1), 0);
	assert_true(has(m, "# TYPE gasflame_agent_sink_delivered_total counter\ngasflame_agent_sink_delivered_total{sink=\"o\\\"tel\"} 0.1\n"));
	assert_int_equal(metrics_set(m, "gasflame_blocks_total", sink, 1), -EINVAL);
	assert_int_equal(metrics_set(m, "nonsense", sink, 1), -EINVAL);
	for (int i = 0; i <= METRICS_FIGURES && !r; i++) {
		char label[32];

		snprintf(label, sizeof(label), "target=%d", i);
		r = metrics_set(m, "gasflame_agent_target_up", (const char *const[]){ label, NULL }, 1);
	}
	assert_int_equal(r, -ENOSPC);
	metrics_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_windows), cmocka_unit_test(test_labels), cmocka_unit_test(test_bounds),
					    cmocka_unit_test(test_agent) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
