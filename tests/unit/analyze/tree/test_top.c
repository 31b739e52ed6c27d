#include "test.h"

#include "analyze/quality.h"
#include "analyze/tree/top.h"
#include "base/buf.h"
#include "sample.h"

static const struct top_row *row(const struct top_row *rows, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	fail_msg("no row %s", name);
	return NULL;
}

static void tables_of_the_sample(void **state)
{
	struct sample s = sample_make();
	const struct top_row *r;
	struct selection sel;
	struct top t;

	assert_int_equal(selection_make(s.p, &(struct select_options){ 0 }, &sel, NULL), 0);
	top_build(&t, s.p, &sel, false, TOP_BY_SELF);
	assert_string_equal(t.functions.v[0].name, "node::fib");
	assert_int_equal(t.functions.v[0].self.samples, 700);
	assert_int_equal(t.functions.v[0].total.samples, 700); /* three levels of recursion, once */
	r = row(t.functions.v, t.functions.n, "main");
	assert_int_equal(r->self.samples, 50);
	assert_int_equal(r->total.samples, 1200);
	r = row(t.functions.v, t.functions.n, "alloy_trie::HashBuilder::update");
	assert_int_equal(r->self.samples, 250);
	assert_int_equal(r->total.samples, 750);
	for (size_t i = 0; i < t.functions.n; i++)
		assert_null(strstr(t.functions.v[i].name, "truncated"));

	r = row(t.modules.v, t.modules.n, "/opt/node/bin/node");
	assert_int_equal(r->self.samples, 1700);
	assert_int_equal(r->total.samples, 2000);
	r = row(t.modules.v, t.modules.n, "[kernel]");
	assert_int_equal(r->self.samples, 300);
	assert_int_equal(r->total.samples, 300);
	r = row(t.modules.v, t.modules.n, "/opt/node/lib/libstripped.so");
	assert_int_equal(r->self.samples, 0);
	assert_int_equal(r->total.samples, 50);

	assert_int_equal(t.threads.n, 3);
	assert_string_equal(t.threads.v[0].name, "main");
	assert_int_equal(t.threads.v[0].total.samples, 1050);
	assert_int_equal(t.threads.v[0].total.value, 1050ULL * SAMPLE_PERIOD_NS);
	assert_int_equal(t.threads.v[2].process, 200);
	top_done(&t);

	top_build(&t, s.p, &sel, false, TOP_BY_TOTAL);
	assert_string_equal(t.functions.v[0].name, "main");
	top_done(&t);
	selection_done(&sel);
	profile_free(s.p);
}

/* The recording's quality with samples of this kind, as its line; says whether it is fit. */
static bool quality(struct sample *s, struct buf *line, struct buf *warnings)
{
	struct selection sel;
	struct quality q;
	bool fit;

	assert_int_equal(selection_make(s->p, &(struct select_options){ 0 }, &sel, NULL), 0);
	quality_measure(&q, s->p, &sel);
	line->n = warnings->n = 0;
	quality_line(&q, &sel, line);
	buf_puts(warnings, "");
	for (size_t i = 0; i < q.warnings.n; i++)
		buf_printf(warnings, "%s\n", q.warnings.v[i]);
	fit = q.fit;
	quality_done(&q);
	selection_done(&sel);
	return fit;
}

#define says(b, words)                                                   \
	do {                                                             \
		if (!strstr((b).data, words))                            \
			fail_msg("'%s' does not say '%s'", (b).data, words); \
	} while (0)

static void a_good_recording_has_a_line_and_no_warning(void **state)
{
	struct sample s = sample_make();
	struct buf line = { 0 }, warnings = { 0 };

	assert_true(quality(&s, &line, &warnings));
	assert_string_equal(line.data, "2,000 samples, 97.5 % complete, 2 lost (under 0.1 %), "
				       "0.5 % of frames without a name; own cost 0.5 % of a CPU");
	assert_string_equal(warnings.data, "");
	buf_done(&line);
	buf_done(&warnings);
	profile_free(s.p);
}

static void few_samples_of_an_idle_target(void **state)
{
	struct sample s = sample_empty();
	struct buf line = { 0 }, warnings = { 0 };

	sample_add(&s, s.main, sample_stack(&s, "main"), 42);
	assert_true(quality(&s, &line, &warnings));
	says(warnings, "the target used 2 % of a CPU: idle?");
	says(warnings, "only 42 samples");
	profile_count_set(s.p, "target.cpu_ns", 2000000000);
	quality(&s, &line, &warnings);
	assert_null(strstr(warnings.data, "idle"));
	s.p->finished = false;
	quality(&s, &line, &warnings);
	says(warnings, "did not end normally");
	buf_done(&line);
	buf_done(&warnings);
	profile_free(s.p);
}

/* What was counted one by one is no sample: few of them are exact, and the CPU has no say in it. */
static void exact_counts_are_not_called_samples(void **state)
{
	static const struct {
		const char *name, *unit, *describe, *lost, *line;
	} events[] = {
		{ "read", "bytes", "bytes read, as the calls returned them", "io.lost calls",
		  "3 calls, 100 % complete, 1 lost (25.0 %)" },
		{ "sync", "ns", "", "io.lost calls", "3 calls, 100 % complete, 1 lost" },
		{ "sync", "ns", "", "bpf.missed", "3 calls, 100 % complete, 0 lost, up to 1 not seen" },
		{ "major-faults", "count", "", "faults.lost", "3 faults, 100 % complete, 1 lost" },
		{ "reclaim-time", "ns", "", "faults.lost", "3 reclaims, 100 % complete, 1 lost" },
		{ "syscalls:sys_enter_futex", "count", "tracepoint, counted",
		  "event.lost.syscalls:sys_enter_futex", "3 events, 100 % complete, 1 lost" },
		{ "cycles", "count", "hardware event, sampled", "samples.lost",
		  "3 samples, 100 % complete, 1 lost" },
	};

	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		struct sample s = sample_empty();
		struct buf line = { 0 }, warnings = { 0 };

		profile_count_set(s.p, "samples.lost", 500);
		profile_count_set(s.p, "target.cpu_ns", 1000);
		profile_count_set(s.p, events[i].lost, 1);
		s.p->events.n = 0;
		profile_add_event(s.p, events[i].name, events[i].unit, events[i].describe, 0);
		sample_add(&s, s.main, sample_stack(&s, "main"), 3);
		quality(&s, &line, &warnings);
		says(line, events[i].line);
		if (!strcmp(events[i].name, "cycles")) {
			says(warnings, "only 3 samples");
			says(warnings, "idle?");
		} else if (strstr(warnings.data, "only") || strstr(warnings.data, "idle") ||
			   strstr(warnings.data, "-F")) {
			fail_msg("%s: %s", events[i].name, warnings.data);
		}
		buf_done(&line);
		buf_done(&warnings);
		profile_free(s.p);
	}
}

static void no_samples_are_unfit(void **state)
{
	struct sample s = sample_empty();
	struct buf line = { 0 }, warnings = { 0 };

	assert_false(quality(&s, &line, &warnings));
	assert_string_equal(line.data, "0 samples, 0 lost; not fit to read");
	says(warnings, "no samples");
	buf_done(&line);
	buf_done(&warnings);
	profile_free(s.p);
}

static void cut_and_lost_stacks(void **state)
{
	struct sample s = sample_empty();
	struct buf line = { 0 }, warnings = { 0 };

	sample_add(&s, s.main, sample_stack(&s, "main"), 900);
	sample_add(&s, s.main, sample_stack(&s, "!no table;leaf"), 90);
	sample_add(&s, s.main, sample_stack(&s, "!too deep;leaf"), 10);
	assert_true(quality(&s, &line, &warnings));
	says(warnings, "only 90.0 % of the stacks are complete (no table 9.0 %, too deep 1.0 %)");
	sample_add(&s, s.main, 0, 1000); /* no stack at all is not complete */
	assert_false(quality(&s, &line, &warnings));
	says(line, "not fit to read");
	profile_free(s.p);

	s = sample_empty();
	sample_add(&s, s.main, sample_stack(&s, "main"), 1000);
	profile_count_set(s.p, "samples.lost", 20);
	assert_true(quality(&s, &line, &warnings));
	says(warnings, "2.0 % of the samples were lost: record at a lower rate (-F)");
	profile_count_set(s.p, "samples.lost", 300);
	assert_false(quality(&s, &line, &warnings));
	buf_done(&line);
	buf_done(&warnings);
	profile_free(s.p);
}

static void frames_without_a_name_say_which_file(void **state)
{
	struct sample s = sample_empty();
	struct buf line = { 0 }, warnings = { 0 };
	uint32_t fallback;

	sample_add(&s, s.main, sample_stack(&s, "main;?"), 1000);
	quality(&s, &line, &warnings);
	says(warnings, "50.0 % of the frames have no name: functions of /opt/node/lib/libstripped.so are shown by their start; "
		       "gasflame symbols /opt/node/lib/libstripped.so says how to get names");
	profile_count_set(s.p, "symbols.problem: /opt/node/lib/libstripped.so has no symbol table", 1);
	quality(&s, &line, &warnings);
	says(warnings, "no name: /opt/node/lib/libstripped.so has no symbol table");

	/* What the symbolizer writes where it finds nothing is no name either; a name like it is. */
	fallback = profile_named_frame(s.p, s.stripped, FRAME_USER, "libstripped.so+0x77");
	assert_true(ident_frame_unnamed(s.p, fallback));
	fallback = profile_named_frame(s.p, s.stripped, FRAME_USER, "libstripped.so+0xy");
	assert_false(ident_frame_unnamed(s.p, fallback));
	buf_done(&line);
	buf_done(&warnings);
	profile_free(s.p);
}

/* One function is one box, also for addresses that nobody symbolized yet. */
static void frames_of_a_known_function(void **state)
{
	struct sample s = sample_empty();
	const uint64_t addresses[] = { 0x1055, 0x1100, 0x10ff, 0x9000 };
	const char *const names[] = { "libstripped.so+0x1040", "libstripped.so+0x1100", "libstripped.so+0x1040",
				      "libstripped.so+0x9000" };
	struct idents t;
	uint32_t n;

	profile_add_range(s.p, s.stripped, 0x2000, 0x2100);
	profile_add_range(s.p, s.stripped, 0x1040, 0x1100);
	for (size_t i = 0; i < ARRAY_LEN(addresses); i++)
		profile_frame(s.p, s.stripped, FRAME_USER, addresses[i]);
	idents_init(&t, s.p, 0);
	for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
		uint32_t frame = profile_frame(s.p, s.stripped, FRAME_USER, addresses[i]);
		uint32_t id = *idents_of_frame(&t, frame, &n);

		assert_string_equal(t.list.v[id].name, names[i]);
	}
	idents_done(&t);
	profile_free(s.p);
}

/* Threads of one name, in processes of one name: one row where there are many, with all of their weight. */
static void many_threads(void **state)
{
	struct profile *p = profile_new();
	uint32_t stack, event = profile_add_event(p, "cpu", "ns", "", 1);
	const struct top_row *r;
	struct selection sel;
	struct top t;

	stack = profile_stack(p, 0, profile_named_frame(p, PROFILE_NONE, FRAME_USER, "main"));
	for (uint32_t i = 0; i < 120; i++) {
		const char *name = i < 60 ? "sh" : i < 110 ? "worker" : "sh";
		uint32_t process = profile_add_process(p, &(struct profile_process){
			.pid = 100 + i / 2, .name = profile_string(p, i < 110 ? "sh" : "dash") });
		uint32_t thread = profile_add_thread(p, &(struct profile_thread){ .process = process, .tid = 1000 + i,
										   .name = profile_string(p, name) });

		profile_add_sample(p, &(struct profile_sample){ .event = event, .thread = thread, .stack = stack, .value = 10 });
	}
	assert_int_equal(selection_make(p, &(struct select_options){ 0 }, &sel, NULL), 0);
	top_build(&t, p, &sel, false, TOP_BY_SELF);
	assert_int_equal(t.threads.n, 120);
	top_sum_threads(&t, 50, TOP_BY_SELF);
	assert_int_equal(t.threads.n, 1 + 50 + 10); /* 50 workers are not more than 50, and 10 are of another program */
	r = &t.threads.v[0];
	assert_string_equal(r->name, "sh");
	assert_int_equal(r->threads, 60);
	assert_int_equal(r->processes, 30);
	assert_int_equal(r->total.value, 600);
	assert_int_equal(r->total.samples, 60);
	assert_int_equal(t.threads.v[1].threads, 0);
	top_done(&t);
	selection_done(&sel);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_of_the_sample),
		cmocka_unit_test(many_threads),
		cmocka_unit_test(a_good_recording_has_a_line_and_no_warning),
		cmocka_unit_test(few_samples_of_an_idle_target),
		cmocka_unit_test(exact_counts_are_not_called_samples),
		cmocka_unit_test(no_samples_are_unfit),
		cmocka_unit_test(cut_and_lost_stacks),
		cmocka_unit_test(frames_without_a_name_say_which_file),
		cmocka_unit_test(frames_of_a_known_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
