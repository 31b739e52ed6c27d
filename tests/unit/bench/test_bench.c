/* test_bench.c - intervals and verdicts on runs whose truth is known, and the files that they come in. */
#include "test.h"

#include <errno.h>
#include <math.h>

#include "stats/bootstrap.h"
#include "bench/compare.h"
#include "bench/runlog.h"
#include "bench/runs.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sanitized.h"
#include "export/bench/bench.h"
#include "random.h"

static void near(double got, double wanted, double tolerance)
{
	if (!(fabs(got - wanted) <= tolerance))
		fail_msg("%.12g, wanted %.12g", got, wanted);
}

/* --- bootstrap --- */

static const double guide[] = { 59.23, 59.62, 60.40, 59.75, 60.12, 59.31,
				60.98, 59.74, 59.77, 61.40, 59.9,  58.88 };

/* A dozen lines of Python, with its statistics module and the same generator, say the same. */
static void as_python_draws(void **state)
{
	const struct bootstrap_side side = { .values = guide, .n = 12 };
	const struct bootstrap_options o = { .seed = 12 };
	const double figures[] = { 0.5, BOOTSTRAP_MEAN };
	struct bootstrap_interval i[2];

	bootstrap_level(&side, figures, 2, &o, i);
	near(i[0].estimate, 59.76, 1e-9);
	near(i[0].low, 59.31, 1e-9);
	near(i[0].high, 60.4, 1e-9);
	near(i[1].estimate, 59.925, 1e-9);
	assert_true(i[1].low < 59.925 && i[1].high > 59.925);
}

static void few_runs_have_no_interval(void **state)
{
	const struct bootstrap_side two = { .values = guide, .n = 2 }, none = { .values = guide };
	const struct bootstrap_options o = { 0 };
	const double median[] = { 0.5 };
	struct bootstrap_interval i;

	bootstrap_level(&two, median, 1, &o, &i);
	near(i.estimate, 59.425, 1e-9);
	assert_true(isnan(i.low) && isnan(i.high));
	bootstrap_level(&none, median, 1, &o, &i);
	assert_true(isnan(i.estimate) && isnan(i.low));
}

/* Of 300 samples of 8 the interval has the true mean in about 95 of 100. */
static void intervals_hold_the_truth(void **state)
{
	const double mean[] = { BOOTSTRAP_MEAN };
	struct random r = { 7 };
	int held = 0;

	for (int k = 0; k < 300; k++) {
		double v[8];
		const struct bootstrap_side side = { .values = v, .n = 8 };
		const struct bootstrap_options o = { .seed = k, .draws = 2000 };
		struct bootstrap_interval i;

		for (int j = 0; j < 8; j++)
			v[j] = 100 + random_normal(&r);
		bootstrap_level(&side, mean, 1, &o, &i);
		held += i.low <= 100 && i.high >= 100;
	}
	if (held < 276 || held > 298)
		fail_msg("%d of 300 hold it", held);
}

/* Runs that differ as a whole: values within them say little, and the interval knows. */
static void clusters_count_not_values(void **state)
{
	enum { CLUSTERS = 6, EACH = 50 };
	static double v[CLUSTERS * EACH];
	static uint32_t cluster[CLUSTERS * EACH];
	const double mean[] = { BOOTSTRAP_MEAN };
	const struct bootstrap_side grouped = { v, cluster, CLUSTERS * EACH, CLUSTERS },
				    alone = { v, NULL, CLUSTERS * EACH, 0 };
	const struct bootstrap_options o = { .seed = 1, .draws = 2000 };
	struct bootstrap_interval with, without;
	struct random r = { 3 };

	for (int i = 0; i < CLUSTERS * EACH; i++) {
		cluster[i] = i / EACH;
		v[i] = 100 + (i / EACH) * 2 + 0.5 * random_normal(&r);
	}
	bootstrap_level(&grouped, mean, 1, &o, &with);
	bootstrap_level(&alone, mean, 1, &o, &without);
	near(with.estimate, without.estimate, 1e-9);
	assert_true(with.high - with.low > 4 * (without.high - without.low));
}

/* --- verdicts --- */

/* n runs of two commands in turn; the second takes so much longer, and every run has this noise, all
 * relative. */
static void make_runs(struct runs *r, struct random *random, int n, double slower, double noise)
{
	*r = (struct runs){ .interleaved = true };
	runs_command(r, "a");
	runs_command(r, "b");
	runs_add_metric(r, "wall", "s");
	for (int i = 0; i < n; i++)
		for (uint32_t c = 0; c < 2; c++) {
			const struct runs_row row = { .command = c, .round = i + 1 };

			*runs_add_row(r, &row) =
				0.06 * (1 + c * slower) * (1 + noise * random_normal(random));
		}
}

static enum compare_word verdict(const struct runs *r, double floor)
{
	const struct runs *files[] = { r };
	const struct compare_side a = { files, 1, 0 }, b = { files, 1, 1 };
	const struct compare_options o = { .floor = floor };
	struct comparison c;
	enum compare_word word;

	assert_int_equal(compare_make(&a, &b, &o, &c, NULL), 0);
	word = c.rows.v[0].verdict;
	comparison_done(&c);
	return word;
}

/* At least that many of 100 comparisons end so. The statistics are proven without sanitizers: with them there
 * are fewer draws, which tell the share less exactly. */
static void ends_so(int least, int n, double slower, double noise, double floor, bool together,
		    enum compare_word wanted)
{
	const int times = SANITIZED ? 5 : 100;
	int found = 0;

	for (int k = 0; k < times; k++) {
		struct random random = { k * 1000003ULL + 17 };
		struct runs r;

		make_runs(&r, &random, n, slower, noise);
		r.interleaved = together;
		found += verdict(&r, floor) == wanted;
		runs_done(&r);
	}
	print_message("%g %% slower, %g %% noise, %d runs: %d of %d\n", slower * 100, noise * 100, n, found, times);
	assert_true(found * 100 >= times * (SANITIZED ? least - 20 : least));
}

static void the_same_is_the_same(void **state)
{
	ends_so(98, 10, 0, 0.01, -1, true, COMPARE_SAME);
	ends_so(90, 10, 0, 0.05, -1, true, COMPARE_SAME);
	ends_so(90, 20, 0, 0.05, -1, false, COMPARE_SAME);
	/* Without a floor too. */
	ends_so(90, 10, 0, 0.01, 0, true, COMPARE_SAME);
}

static void slower_is_found(void **state)
{
	ends_so(90, 10, 0.03, 0.01, -1, true, COMPARE_WORSE);
	ends_so(98, 20, 0.03, 0.01, -1, true, COMPARE_WORSE);
	ends_so(98, 20, 0.03, 0.01, -1, false, COMPARE_WORSE);
	ends_so(98, 20, -0.04, 0.01, -1, true, COMPARE_BETTER);
}

static void too_few_or_nothing(void **state)
{
	struct random random = { 1 };
	struct runs r;

	make_runs(&r, &random, 2, 0.5, 0.01);
	assert_int_equal(verdict(&r, -1), COMPARE_UNKNOWN);
	runs_done(&r);
	make_runs(&r, &random, 10, 0, 0.01);
	for (size_t i = 0; i < r.values.n; i += 2)
		r.values.v[i] = 0; /* all of a */
	assert_int_equal(verdict(&r, -1), COMPARE_UNKNOWN);
	runs_done(&r);
}

/* --- files --- */

static void read_back(const struct runs *r, void (*write)(const struct runs *, struct buf *))
{
	struct buf out = { 0 };
	struct runs again;

	write(r, &out);
	assert_int_equal(runs_read(out.data, out.n, "x", &again, NULL), 0);
	assert_int_equal(again.rows.n, r->rows.n);
	assert_int_equal(again.metrics.n, r->metrics.n);
	assert_true(again.interleaved);
	for (size_t c = 0; c < r->commands.n; c++)
		assert_string_equal(again.commands.v[c], r->commands.v[c]);
	for (uint32_t m = 0; m < r->metrics.n; m++) {
		double a[64], b[64];

		assert_string_equal(again.metrics.v[m].name, r->metrics.v[m].name);
		assert_string_equal(again.metrics.v[m].unit, r->metrics.v[m].unit);
		for (uint32_t c = 0; c < r->commands.n; c++) {
			size_t n = runs_column(r, c, m, a, NULL);

			assert_int_equal(runs_column(&again, c, m, b, NULL), n);
			for (size_t i = 0; i < n; i++)
				near(b[i], a[i], 1e-10 * fabs(a[i]));
		}
	}
	runs_done(&again);
	buf_done(&out);
}

static void hostile_runs(struct runs *r)
{
	*r = (struct runs){ .interleaved = true, .warmups = 2 };
	runs_command(r, "./a \"quoted\", </script><b>&\n\033[31m");
	runs_command(r, "\\b\xff|*_`");
	runs_add_metric(r, "wall", "s");
	runs_add_metric(r, "peak_rss", "bytes");
	runs_add_metric(r, "exec", "s");
	runs_add_metric(r, "gas", "gas");
	runs_add_metric(r, "gas_per_s", "gas/s");
	runs_add_metric(r, "minor_faults", "count");
	for (uint64_t i = 0; i < 24; i++) {
		const struct runs_row row = { .command = i % 2,
					      .round = i / 2 + 1,
					      .start_ns = 1700000000000000000 + i };
		double *v = runs_add_row(r, &row);

		v[0] = 0.1 + (double)i * 0.001;
		v[1] = 1e7;
		if (i > 2) /* the first did not print it */
			v[2] = 0.06;
		v[3] = 37.5e6;
		v[4] = 37.5e6 / 0.06;
		v[5] = 0;
	}
}

static void files_are_read_back(void **state)
{
	struct runs r;

	hostile_runs(&r);
	r.commands.v[1][2] = 'x'; /* JSON holds text only, and says so by U+FFFD */
	read_back(&r, benchcsv_put);
	read_back(&r, benchjson_put);
	runs_done(&r);
}

static void nothing_hostile_gets_through(void **state)
{
	struct buf out = { 0 };
	struct comparison c;
	struct runs r;
	const struct runs *files[] = { &r };
	const struct compare_side a = { files, 1, 0 }, b = { files, 1, 1 };
	const struct compare_options o = { .floor = -1 };

	hostile_runs(&r);
	benchpage_put(&r, &out);
	assert_null(strstr(out.data, "<script"));
	assert_null(strstr(out.data, "<b>"));
	assert_null(strchr(out.data, '\033'));
	assert_non_null(strstr(out.data, "default-src 'none'"));
	out.n = 0;
	benchtext_put(&r, 0, &out);
	assert_null(strchr(out.data, '\033'));
	assert_non_null(strstr(out.data, "median"));
	out.n = 0;
	assert_int_equal(compare_make(&a, &b, &o, &c, NULL), 0);
	assert_string_equal(c.rows.v[0].name, "exec");
	comparemarkdown_put(&c, &(struct compare_names){ r.commands.v[0], r.commands.v[1] }, &out);
	assert_null(strchr(out.data, '<'));
	assert_null(strchr(out.data, '\033'));
	assert_non_null(strstr(out.data, "\\*\\_\\`"));
	comparison_done(&c);
	runs_done(&r);
	buf_done(&out);
}

/* The page says what the terminal does, before its pictures; ticks are round. */
static void the_page_concludes(void **state)
{
	static const char *const shown[] = { ">60 ms<", ">80 ms<", ">100 ms<", ">wall of a run<" };
	struct runs r = { .interleaved = true };
	struct buf out = { 0 }, sentence = { 0 };
	const struct runs *files[] = { &r };
	const struct compare_side a = { files, 1, 0 }, b = { files, 1, 1 };
	struct comparison c;

	runs_command(&r, "old");
	runs_command(&r, "new");
	runs_add_metric(&r, "wall", "s");
	for (uint64_t i = 0; i < 24; i++)
		runs_add_row(&r, &(struct runs_row){ .command = i % 2, .round = i / 2 + 1 })[0] =
			(i % 2 ? 0.057 : 0.1) + (double)(i * 7 % 11) * 1e-4;
	benchpage_put(&r, &out);
	assert_int_equal(compare_make(&a, &b, &(struct compare_options){ .floor = -1 }, &c, NULL), 0);
	compare_sentence(&c, &sentence);
	assert_non_null(strstr(sentence.data, "% faster"));
	assert_non_null(strstr(out.data, sentence.data));
	assert_true(strstr(out.data, sentence.data) < strstr(out.data, "<svg"));
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		assert_non_null(strstr(out.data, shown[i]));
	comparison_done(&c);
	runs_done(&r);
	buf_done(&sentence);
	buf_done(&out);
}

/* A time in nanoseconds has more digits than a double. */
static void integers_are_exact(void **state)
{
	static const char text[] = "{\"commands\":[{\"runs\":[{\"start_ns\":1794734003197916855,\"block\":9007199254740993,"
				   "\"wall_ms\":1500,\"run\":1e1}]}],\"metrics\":[\"wall_ms\"]}";
	struct runs r;

	assert_int_equal(runs_read(text, strlen(text), "good", &r, NULL), 0);
	assert_int_equal(r.rows.v[0].start_ns, 1794734003197916855);
	assert_int_equal(r.rows.v[0].block, 9007199254740993);
	assert_int_equal(r.rows.v[0].round, 10);
	assert_true(fabs(runs_value(&r, 0, 0) - 1.5) < 1e-9);
	runs_done(&r);
}

/* Each is refused with a sentence; one byte less of a good file must not harm. */
static void bad_files(void **state)
{
	static const char *const bad[] = {
		"",
		"{}",
		"{",
		"[]",
		"x",
		"x\n1,2\n",
		"wall_s\nabc\n",
		"wall_s\n\"1\n",
		"command,run\na,1\n",
		"wall_s,user_s\n1\n",
		"{\"metrics\":[\"wall_s\"],\"commands\":[{\"runs\":[{\"wall_s\":}]}]}",
		"{\"commands\":[]}",
		"{\"metrics\":[\"wall_s\"],\"commands\":[{\"runs\":[]}]}",
		"wall_s\n1e999\n",
		"{\"metrics\":[\"wall_s\"]}x",
		"{\"metrics\":[\"wall_s\"],\"commands\":[{\"command\":3}]}",
	};
	struct buf good = { 0 }, deep = { 0 };
	struct runs r, made;
	struct err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err = (struct err){ 0 };
		if (runs_read(bad[i], strlen(bad[i]), "bad", &r, &err) >= 0)
			fail_msg("'%s' was read", bad[i]);
		assert_true(*err.text && strstr(err.text, "bad"));
	}
	hostile_runs(&made);
	benchjson_put(&made, &good);
	for (size_t n = 0; n < good.n - 2; n += 7)
		assert_true(runs_read(good.data, n, "cut", &r, NULL) < 0);
	for (int i = 0; i < 100000; i++)
		buf_puts(&deep, "{\"a\":");
	assert_true(runs_read(deep.data, deep.n, "deep", &r, NULL) < 0);
	runs_done(&made);
	buf_done(&good);
	buf_done(&deep);
}

/* Latencies of a replay, as others write them: two pairs of runs, paired by file; one pair, paired by block.
 */
static void block_latencies(void **state)
{
	struct buf text = { 0 };
	struct runs files[6];
	const struct runs *sides[2][3];
	struct random random = { 5 };
	struct comparison c;
	const struct compare_options o = { .floor = -1 };

	for (int f = 0; f < 6; f++) {
		text.n = 0;
		buf_puts(&text, "block_number,gas_limit,transaction_count,gas_used,new_payload_latency,fcu_"
				"latency,total_latency\r\n");
		for (int block = 0; block < 150; block++)
			buf_printf(&text, "%d,60000000,442,37500000,%.0f,500,%.0f\r\n", 24443168 + block,
				   (f % 2 ? 1.05 : 1) * (60000 + 300 * (block % 40)) *
					   (1 + 0.005 * random_normal(&random)),
				   1e5);
		assert_int_equal(runs_read(text.data, text.n, "x.csv", &files[f], NULL), 0);
		sides[f % 2][f / 2] = &files[f];
		near(runs_value(&files[f], 0, runs_find_metric(&files[f], "gas_per_s")),
		     37.5e6 / runs_value(&files[f], 0, runs_find_metric(&files[f], "new_payload_latency")), 1e-3);
	}
	for (size_t count = SANITIZED ? 3 : 1; count <= 3; count += 2) {
		const struct compare_side a = { sides[0], count, 0 }, b = { sides[1], count, 0 };
		struct compare_options by = o;

		by.metric = "new_payload_latency";
		assert_int_equal(compare_make(&a, &b, &by, &c, NULL), 0);
		assert_int_equal(c.design, count == 1 ? COMPARE_BLOCKS : COMPARE_PAIRS);
		assert_int_equal(c.clusters[0], count == 1 ? 150 : 3);
		assert_int_equal(c.rows.v[0].verdict, COMPARE_WORSE);
		near(c.rows.v[0].change[COMPARE_P50].estimate, 0.05, 0.005);
		assert_true(isfinite(c.rows.v[0].change[COMPARE_P99].estimate));
		near(c.rows.v[0].level[0][COMPARE_MEAN], 0.0658, 0.0005); /* microseconds */
		comparison_done(&c);
	}
	for (int f = 0; f < 6; f++)
		runs_done(&files[f]);
	buf_done(&text);
}

/* --- what programs print --- */

static void feed(struct runlog *l, const char *s)
{
	runlog_feed(l, s, strlen(s));
	runlog_end(l);
}

static void phases_from_output(void **state)
{
	struct runlog l = { 0 };
	struct err err;

	assert_int_equal(runlog_add_phase(&l, "exec=TIME SPENT: ([0-9.]+) ms", &err), 0);
	assert_int_equal(runlog_add_phase(&l, "load=loaded in ([0-9.]+)", &err), 0);
	assert_int_equal(runlog_add_gas(&l, "gas: ([0-9.]+)", &err), 0);
	assert_true(isnan(runlog_seconds(&l, 0)) && isnan(runlog_gas(&l)));
	feed(&l, "x\nTIME SPENT: 59.75 ms\n\033[1mTIME \033[0mSPENT: 0.25 ms\nloaded in 1m2.5s, gas: 37.5M");
	near(runlog_seconds(&l, 0), 0.06, 1e-12);
	near(runlog_seconds(&l, 1), 62.5, 1e-12);
	near(runlog_gas(&l), 37.5e6, 1e-3);
	runlog_reset(&l);
	assert_true(isnan(runlog_seconds(&l, 0)));
	feed(&l, "loaded in 33.1\xc2\xb5s");
	near(runlog_seconds(&l, 1), 33.1e-6, 1e-12);
	feed(&l, "loaded in 3 apples\nloaded in 1.2.3s\n");
	assert_int_equal(l.unclear, 2);
	/* In pieces, and a line without end. */
	runlog_reset(&l);
	runlog_feed(&l, "TIME SPE", 8);
	runlog_feed(&l, "NT: 5 ms\nTIME", 13);
	near(runlog_seconds(&l, 0), 0.005, 1e-12);
	for (int i = 0; i < 1000; i++)
		runlog_feed(&l, "no newline, ever; ", 18);
	assert_true(l.line.n <= RUNLOG_LINE);
	assert_true(runlog_add_phase(&l, "exec", &err) < 0);
	assert_true(runlog_add_phase(&l, "wall=([0-9]+) s", &err) < 0);
	assert_true(runlog_add_phase(&l, "x=[0-9]+ s", &err) < 0);
	assert_true(runlog_add_phase(&l, "x=(", &err) < 0);
	runlog_done(&l);
}

static void presets(void **state)
{
	static const struct {
		const char *preset, *line;
		double seconds, gas;
	} lines[] = {
		{ "ethrex",
		  "[METRIC] BLOCK EXECUTION THROUGHPUT (24443168): 0.628 Ggas/s TIME SPENT: 60 ms. Gas "
		  "Used: 0.038 (62%), #Txs: 442. exec: 80% merkle: 15% store: 5%",
		  0.06, 38000000 },
		{ "ethrex",
		  "\033[2m2026-11-15T10:00:00Z\033[0m \033[32mINFO\033[0m [METRIC] BLOCK 24443168 0xabcd | "
		  "0.628 Ggas/s | 59.75 ms | 442 txs | 37 Mgas (62%)",
		  0.05975, 0.628 * 59.75e6 },
		{ "ethrex", "[METRIC] BLOCK 7 0xabcd | 0.005 Ggas/s | 62.00 ms | 9 txs | 0 Mgas (1%)", 0.062, 310000 },
		{ "reth",
		  "2026-11-15T10:00:00Z  INFO reth_node_events::node: Block added to canonical chain "
		  "number=24443168 hash=0xab peers=3 txs=442 gas_used=36.42Mgas "
		  "gas_throughput=1.10Ggas/second gas_limit=60.00Mgas full=62.0% base_fee=0.30Gwei blobs=3 "
		  "excess_blobs=0 elapsed=33.1ms",
		  0.0331, 36.42e6 },
		{ "reth",
		  "\033[32m INFO\033[0m Block added to canonical chain "
		  "\033[3mnumber\033[0m\033[2m=\033[0m24443168 gas_used\033[2m=\033[0m950.20Kgas "
		  "elapsed\033[2m=\033[0m950.25\xc2\xb5s",
		  950.25e-6, 950200 },
		{ "geth",
		  "INFO [11-15|10:00:00.000] Imported new potential chain segment number=24,443,168 "
		  "hash=ab..cd blocks=1 txs=442 mgas=37.500 elapsed=59.750ms mgasps=627.615 triediffs=1.0MiB",
		  0.05975, 37.5e6 },
		{ "geth",
		  "INFO Imported new chain segment number=1 blocks=1 txs=1 mgas=0.021 elapsed=1.250s "
		  "mgasps=0.1",
		  1.25, 21000 },
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct runlog l = { 0 };

		assert_int_equal(runlog_add_preset(&l, lines[i].preset, NULL), 0);
		feed(&l, lines[i].line);
		near(runlog_seconds(&l, 0), lines[i].seconds, 1e-9);
		near(runlog_gas(&l), lines[i].gas, 1);
		assert_int_equal(l.unclear, 0);
		/* A block that is cut anywhere is no other block. */
		for (size_t n = 0; n < strlen(lines[i].line); n++) {
			runlog_reset(&l);
			runlog_feed(&l, lines[i].line, n);
			runlog_end(&l);
			assert_true(isnan(runlog_seconds(&l, 0)) || runlog_seconds(&l, 0) <= 2);
		}
		runlog_done(&l);
	}
}

/* What the time of a block is made of, in the new form of ethrex. */
static void parts_of_a_block(void **state)
{
	struct runlog l = { 0 };

	assert_int_equal(runlog_add_preset(&l, "ethrex", NULL), 0);
	l.now_ns = 1000000000;
	feed(&l, "[METRIC] BLOCK 1 0xab | 0.6 Ggas/s | 59.75 ms | 4 txs | 37 Mgas (62%)\n"
		 "  |- validate:  1.25 ms ( 2%)\n  |- exec:     40.50 ms (68%) << BOTTLENECK\n"
		 "  |- merkle:   15.00 ms (25%)\n  |- store:     3.00 ms ( 5%)\n  `- warmer:   20.00 ms\n");
	assert_int_equal(l.phases.n, 7);
	near(runlog_seconds(&l, 0), 0.05975, 1e-12);
	near(runlog_seconds(&l, 1), 0.00125, 1e-12);
	near(runlog_seconds(&l, 2), 0.0405, 1e-12);
	near(runlog_seconds(&l, 3), 0.015, 1e-12);
	near(runlog_seconds(&l, 4), 0.003, 1e-12);
	/* The block ended when its line came; when its parts did, nobody says. */
	assert_int_equal(l.spans.n, 1);
	assert_int_equal(l.spans.v[0].phase, 0);
	assert_int_equal(l.spans.v[0].start_ns, 1000000000 - 59750000);
	runlog_done(&l);
}

/* As ethrex-replay prints one run, and several: what it says of one is the mean. */
static void ethrex_replay(void **state)
{
#define STAMP "2026-11-15T10:00:00.000000Z  INFO ethrex_replay::cli: "
	struct runlog l = { 0 };

	assert_int_equal(runlog_add_preset(&l, "ethrex", NULL), 0);
	feed(&l, STAMP "Storage preparation finished in 1.20s\n" STAMP "Executing block 24443168 on mainnet\n"
		 STAMP "add_block_pipeline execution time: 59.75ms\n");
	assert_string_equal(l.phases.v[0].name, "block");
	assert_string_equal(l.phases.v[5].name, "prepare");
	assert_string_equal(l.phases.v[6].name, "pipeline");
	near(runlog_seconds(&l, 0), 0.05975, 1e-12);
	near(runlog_seconds(&l, 5), 1.2, 1e-12);
	near(runlog_seconds(&l, 6), 0.05975, 1e-12);
	assert_int_equal(l.unclear, 0);
	runlog_reset(&l);
	for (int i = 0; i < 2; i++)
		feed(&l, "--- Run 1/2 ---\n[METRIC] BLOCK 7 0xab | 0.500 Ggas/s | 60.00 ms | 9 txs | 30 Mgas (50%)\n");
	feed(&l, STAMP "=== Profiling Results (2 runs) ===\n" STAMP "Preparation:\n  min:       1.10s\n"
		 STAMP "Execution (add_block_pipeline):\n  min:      61.00ms\n  max:      63.00ms\n  mean:     62.00ms\n"
		 "  median:   62.00ms\n  stddev:     1.00ms\n  p95:      63.00ms\n  p99:      63.00ms\n"
		 STAMP "Individual runs:\n" STAMP "  # 1: prep=   1.10s exec= 61.00ms total=   1.16s\n"
		 STAMP "  # 2: prep=   1.30s exec= 63.00ms total=   1.36s\n");
	near(runlog_seconds(&l, 0), 0.06, 1e-12);
	near(runlog_total(&l, 0), 0.12, 1e-12);
	near(runlog_seconds(&l, 6), 0.062, 1e-12);
	near(runlog_gas(&l), 30e6, 1e-3);
	assert_int_equal(l.unclear, 0);
	/* The next run says nothing of repetitions. */
	runlog_reset(&l);
	feed(&l, "add_block_pipeline execution time: 950.12\xc2\xb5s\n");
	near(runlog_seconds(&l, 0), 950.12e-6, 1e-12);
	runlog_done(&l);
}

/* txgen's report, with the figures of `replay`; a block of its `send` mode has no times of the Engine API. */
static void txgen_report(void **state)
{
	static const char text[] =
		"{\"benchmark_id\":\"6f\",\"run_stats\":{\"total_blocks\":2},\"blocks\":["
		"{\"number\":100,\"timestamp_ms\":1700000000000,\"tx_count\":2,\"gas_used\":30000000,\"gas_limit\":60000000,"
		"\"block_time_ms\":null,\"new_payload_ms\":50,\"forkchoice_updated_ms\":2,\"new_payload_server_latency_us\":49123,"
		"\"persistence_wait_us\":1500,\"execution_cache_wait_us\":7,\"sparse_trie_wait_us\":9},"
		"{\"number\":101,\"tx_count\":0,\"gas_used\":0,\"gas_limit\":60000000,\"block_time_ms\":12000}]}";
	static const struct {
		const char *name;
		double first, second;
	} wanted[] = {
		{ "new_payload_latency", 0.05, NAN },	 { "fcu_latency", 0.002, NAN },
		{ "total_latency", 0.052, NAN },	 { "server_latency", 0.049123, NAN },
		{ "persistence_wait", 0.0015, NAN },	 { "execution_cache_wait", 7e-6, NAN },
		{ "sparse_trie_wait", 9e-6, NAN },	 { "block_time", NAN, 12 },
		{ "gas_used", 30e6, 0 },		 { "gas_per_s", 600e6, NAN },
	};
	struct err err = { 0 };
	struct runs r;

	if (runs_read(text, strlen(text), "report.json", &r, &err))
		fail_msg("%s", err.text);
	assert_int_equal(r.rows.n, 2);
	assert_int_equal(r.rows.v[0].block, 100);
	assert_string_equal(r.metrics.v[runs_main_metric(&r)].name, "total_latency");
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		uint32_t m = runs_find_metric(&r, wanted[i].name);

		assert_true(m != UINT32_MAX);
		for (size_t k = 0; k < 2; k++) {
			double x = k ? wanted[i].second : wanted[i].first;

			if (isnan(x))
				assert_true(isnan(runs_value(&r, k, m)));
			else
				near(runs_value(&r, k, m), x, x * 1e-9);
		}
	}
	runs_done(&r);
	assert_int_equal(runs_read("{\"blocks\":[{\"gas_used\":1}]}", 26, "x", &r, &err), -EINVAL);
	assert_int_equal(runs_read("{\"blocks\":[]}", 13, "x", &r, &err), -ENODATA);
}

static void gas_as_typed(void **state)
{
	double gas;

	assert_int_equal(runlog_parse_gas("37.5M", &gas), 0);
	near(gas, 37.5e6, 1e-6);
	assert_int_equal(runlog_parse_gas("21000", &gas), 0);
	near(gas, 21000, 0);
	assert_true(runlog_parse_gas("M", &gas) < 0 && runlog_parse_gas("", &gas) < 0 &&
		    runlog_parse_gas("1Mx", &gas) < 0);
}

static void values_for_people(void **state)
{
	char out[32];

	assert_string_equal(bench_value(out, 0.05975, "s"), "59.75 ms");
	assert_string_equal(bench_value(out, 12.345, "s"), "12.35 s");
	assert_string_equal(bench_value(out, 33.1e-6, "s"), "33.10 \xc2\xb5s");
	assert_string_equal(bench_value(out, 0.628e9, "gas/s"), "0.628 Ggas/s");
	assert_string_equal(bench_value(out, 0, "s"), "0");
	assert_string_equal(bench_value(out, NAN, "s"), "-");
	assert_string_equal(bench_value(out, 12, "count"), "12");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_python_draws),
		cmocka_unit_test(few_runs_have_no_interval),
		cmocka_unit_test(intervals_hold_the_truth),
		cmocka_unit_test(clusters_count_not_values),
		cmocka_unit_test(the_same_is_the_same),
		cmocka_unit_test(slower_is_found),
		cmocka_unit_test(too_few_or_nothing),
		cmocka_unit_test(files_are_read_back),
		cmocka_unit_test(nothing_hostile_gets_through),
		cmocka_unit_test(the_page_concludes),
		cmocka_unit_test(integers_are_exact),
		cmocka_unit_test(bad_files),
		cmocka_unit_test(block_latencies),
		cmocka_unit_test(phases_from_output),
		cmocka_unit_test(presets),
		cmocka_unit_test(parts_of_a_block),
		cmocka_unit_test(ethrex_replay),
		cmocka_unit_test(txgen_report),
		cmocka_unit_test(gas_as_typed),
		cmocka_unit_test(values_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
