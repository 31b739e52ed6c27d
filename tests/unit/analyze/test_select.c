#include "test.h"

#include <errno.h>

#include "analyze/select.h"
#include "base/err.h"
#include "sample.h"

static uint64_t count(struct sample *s, struct select_options o)
{
	struct selection sel;
	uint64_t n;

	assert_int_equal(selection_make(s->p, &o, &sel, NULL), 0);
	n = sel.all.samples;
	assert_int_equal(sel.all.value, n * SAMPLE_PERIOD_NS);
	selection_done(&sel);
	return n;
}

static void refused(struct sample *s, struct select_options o, int code, const char *sentence)
{
	struct selection sel;
	struct err err;

	assert_int_equal(selection_make(s->p, &o, &sel, &err), -code);
	if (!strstr(err.text, sentence))
		fail_msg("'%s' does not say '%s'", err.text, sentence);
	selection_done(&sel);
}

#define LIST(...) .threads = (const char *const[]){ __VA_ARGS__, NULL }

static void threads_by_name_glob_and_number(void **state)
{
	struct sample s = sample_make();

	assert_int_equal(count(&s, (struct select_options){ 0 }), 2000);
	assert_int_equal(count(&s, (struct select_options){ LIST("main") }), 1050);
	assert_int_equal(count(&s, (struct select_options){ LIST("work*") }), 800);
	assert_int_equal(count(&s, (struct select_options){ LIST("101") }), 800);
	assert_int_equal(count(&s, (struct select_options){ LIST("main", "helper") }), 1200);
	assert_int_equal(
		count(&s, (struct select_options){ .processes = (const char *const[]){ "200", NULL } }), 150);
	assert_int_equal(
		count(&s, (struct select_options){ .processes = (const char *const[]){ "nod?", NULL } }),
		1850);
	refused(&s, (struct select_options){ LIST("nobody") }, ENODATA,
		"no thread 'nobody' in this recording: there is helper, main, worker 1");
	refused(&s,
		(struct select_options){ LIST("main"), .processes = (const char *const[]){ "helper", NULL } },
		ENODATA, "the selected threads have no samples");
	profile_free(s.p);
}

static void a_range_of_time(void **state)
{
	struct sample s = sample_make();

	assert_int_equal(count(&s, (struct select_options){ .from_ns = 1900000000 }), 100);
	assert_int_equal(count(&s, (struct select_options){ .to_ns = 500000000 }), 500);
	assert_int_equal(count(&s, (struct select_options){ .from_ns = 5000000, .to_ns = 6000000 }), 1);
	refused(&s, (struct select_options){ .from_ns = 3000000000, .to_ns = 4000000000 }, ENODATA,
		"no samples between 3 and 4 s: the recording has 0-2.1 s");
	refused(&s, (struct select_options){ .from_ns = 3000000000 }, ENODATA, "no samples after 3 s");
	refused(&s, (struct select_options){ .from_ns = 2, .to_ns = 2 }, EINVAL, "--from is not before --to");
	profile_free(s.p);
}

/* The sum of a slot is spread over it: a range gets its part of values and counts. */
static void a_part_of_a_slot(void **state)
{
	struct sample s = sample_make();
	struct select_options o = { .from_ns = 250, .to_ns = 500 };
	struct selection sel;

	s.p->samples.n = 1;
	s.p->samples.v[0].time_ns = 100;
	s.p->samples.v[0].count = 10;
	s.p->samples.v[0].value = 4000;
	profile_add_summed(s.p, &(struct profile_summed){ 100, 1100 });
	assert_int_equal(selection_make(s.p, &o, &sel, NULL), 0);
	assert_int_equal(sel.all.value, 1000);
	assert_int_equal(sel.all.samples, 2);
	selection_done(&sel);
	o = (struct select_options){ .from_ns = 100, .to_ns = 1100 };
	assert_int_equal(selection_make(s.p, &o, &sel, NULL), 0);
	assert_int_equal(sel.all.value, 4000);
	assert_int_equal(sel.all.samples, 10);
	selection_done(&sel);
	profile_free(s.p);
}

static void stacks_with_a_function(void **state)
{
	struct sample s = sample_make();

	assert_int_equal(count(&s, (struct select_options){ .function = "^node::fib$" }), 700);
	assert_int_equal(count(&s, (struct select_options){ .function = "HashBuilder" }),
			 750); /* inlined too */
	assert_int_equal(count(&s, (struct select_options){ .function = "ext4|help" }), 450);
	refused(&s, (struct select_options){ .function = "nothing_like_it" }, ENODATA, "no function matches");
	refused(&s, (struct select_options){ .function = "a(" }, EINVAL, "is not a regular expression");
	profile_free(s.p);
}

static void events_by_name(void **state)
{
	struct sample s = sample_make();
	struct err err;
	uint32_t event;

	profile_add_event(s.p, "wait", "ns", "", 0);
	assert_int_equal(select_event(s.p, NULL, &event, &err), 0);
	assert_int_equal(event, 0);
	assert_int_equal(select_event(s.p, "wait", &event, &err), 0);
	assert_int_equal(event, 1);
	refused(&s, (struct select_options){ .event = 1 }, ENODATA, "no samples of 'wait'");
	assert_int_equal(select_event(s.p, "heap", &event, &err), -ENOENT);
	assert_string_equal(err.text, "nothing called 'heap' was recorded: there is cpu, wait, wall");
	profile_free(s.p);
}

static void nothing_recorded_is_no_error(void **state)
{
	struct sample s = sample_empty();
	struct profile *p = profile_new();
	struct selection sel;

	assert_int_equal(count(&s, (struct select_options){ LIST("nobody"), .function = "x" }), 0);
	assert_int_equal(selection_make(p, &(struct select_options){ 0 }, &sel, NULL), 0);
	assert_int_equal(sel.entries.n, 0);
	selection_done(&sel);
	profile_free(p);
	profile_free(s.p);
}

static uint32_t event_of(struct sample *s, const char *name)
{
	uint32_t event;
	struct err err;

	if (select_event(s->p, name, &event, &err))
		fail_msg("%s", err.text);
	return event;
}

static void add_value(struct sample *s, uint32_t event, uint64_t value)
{
	profile_add_sample(s->p, &(struct profile_sample){ .event = event, .value = value, .count = 2,
							   .stack = sample_stack(s, "main") });
}

/* Words that people use, and several events of one unit. */
static void io_and_faults_by_other_names(void **state)
{
	struct sample s = sample_make();
	uint32_t read = profile_add_event(s.p, "read", "bytes", "", 0);
	uint32_t write = profile_add_event(s.p, "write", "bytes", "", 0);
	uint32_t major = profile_add_event(s.p, "major-faults", "count", "", 0);
	uint32_t minor = profile_add_event(s.p, "minor-faults", "count", "", 0), event;
	uint32_t major_time = profile_add_event(s.p, "major-time", "ns", "", 0);
	struct selection sel;
	struct err err;

	assert_int_equal(event_of(&s, "io"), SELECT_IO);
	assert_int_equal(event_of(&s, "reads"), read);
	assert_int_equal(event_of(&s, "write"), write);
	add_value(&s, read, 100);
	add_value(&s, write, 30);
	assert_int_equal(selection_make(s.p, &(struct select_options){ .event = SELECT_IO }, &sel, &err), 0);
	assert_int_equal(sel.all.value, 130);
	assert_int_equal(sel.all.samples, 4);
	assert_int_equal(sel.recorded.value, 130);
	assert_string_equal(sel.name, "io");
	assert_string_equal(sel.unit, "bytes");
	assert_int_equal(sel.kind, SELECT_CALLS);
	selection_done(&sel);
	/* The first of those that happened; nothing did: one that was recorded. */
	assert_int_equal(event_of(&s, "fault"), major_time);
	add_value(&s, minor, 1);
	assert_int_equal(event_of(&s, "faults"), minor);
	add_value(&s, major, 1);
	assert_int_equal(event_of(&s, "fault"), major);
	add_value(&s, major_time, 1);
	assert_int_equal(event_of(&s, "fault"), major_time);
	assert_int_equal(select_event(s.p, "disk", &event, &err), -ENOENT);
	assert_non_null(strstr(err.text, "major-time, io"));
	profile_free(s.p);
	s = sample_make();
	assert_int_equal(select_event(s.p, "io", &event, &err), -ENOENT);
	assert_int_equal(select_event(s.p, "fault", &event, &err), -ENOENT);
	assert_null(strstr(err.text, "io"));
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_by_name_glob_and_number),
		cmocka_unit_test(a_range_of_time), cmocka_unit_test(a_part_of_a_slot),
		cmocka_unit_test(stacks_with_a_function),
		cmocka_unit_test(events_by_name),
		cmocka_unit_test(nothing_recorded_is_no_error),
		cmocka_unit_test(io_and_faults_by_other_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
