/* test_phases.c - phases by functions and by marks. The figures are those of sample.h. */
#include "test.h"

#include <errno.h>

#include "analyze/blocks/phases.h"
#include "analyze/tree/restack.h"
#include "base/err.h"
#include "waiting.h"

#define MS 1000000ULL

static void select_all(struct sample *s, struct selection *sel, struct select_options o)
{
	struct err err = { 0 };

	if (selection_make(s->p, &o, sel, &err))
		fail_msg("%s", err.text);
}

#define NAMES(...) (const char *const[]){ __VA_ARGS__, NULL }

static const struct phase *phase(const struct phases *f, const char *name)
{
	for (size_t i = 0; i < f->rows.n; i++)
		if (!strcmp(f->rows.v[i].name, name))
			return &f->rows.v[i];
	fail_msg("no phase %s", name);
	return NULL;
}

static void check(const struct phases *f, const char *name, unsigned weight, unsigned total, uint64_t first,
		  uint64_t last)
{
	const struct phase *row = phase(f, name);

	if (row->weight.samples != weight || row->weight.value != weight * MS ||
	    row->total.samples != total || row->first_ns != first * MS || row->last_ns != last * MS)
		fail_msg("%s: %u and %u samples from %llu to %llu", name, (unsigned)row->weight.samples,
			 (unsigned)row->total.samples, (unsigned long long)(row->first_ns / MS),
			 (unsigned long long)(row->last_ns / MS));
}

static void functions_on_the_stack(void **state)
{
	struct sample s = sample_make();
	struct selection sel;
	struct phases f;
	struct err err;

	select_all(&s, &sel, (struct select_options){ 0 });
	assert_int_equal(
		phases_build(&f, s.p, &sel, NAMES("HashBuilder", "nowhere", "node::run", "fib"), &err), 0);
	/* In the order of their first appearance. */
	assert_string_equal(f.rows.v[0].name, "fib");
	assert_string_equal(f.rows.v[1].name, "node::run");
	assert_string_equal(f.rows.v[2].name, "HashBuilder");
	assert_string_equal(f.rows.v[3].name, "nowhere");
	check(&f, "node::run", 300, 1000, 0, 999);
	check(&f, "fib", 700, 700, 0, 699);
	check(&f, "HashBuilder", 750, 750, 1000, 1749);
	assert_int_equal(phase(&f, "nowhere")->threads, 0);
	assert_int_equal(phase(&f, "fib")->thread, s.main);
	assert_int_equal(phase(&f, "HashBuilder")->thread, s.worker);
	assert_int_equal(f.outside.samples, 100);
	assert_int_equal(f.elsewhere.samples, 150);
	assert_int_equal(f.all.samples, 2000);
	assert_int_equal(f.threads, 2);
	phases_done(&f);
	assert_int_equal(phases_build(&f, s.p, &sel, NAMES("nowhere"), &err), -ENODATA);
	phases_done(&f);
	assert_int_equal(phases_build(&f, s.p, &sel, NAMES("ok", "a["), &err), -EINVAL);
	assert_non_null(strstr(err.text, "'a['"));
	phases_done(&f);
	selection_done(&sel);
	/* With a range and a thread. */
	select_all(
		&s, &sel,
		(struct select_options){ .from_ns = 500 * MS, .to_ns = 800 * MS, .threads = NAMES("main") });
	assert_int_equal(phases_build(&f, s.p, &sel, NAMES("node::run", "fib"), &err), 0);
	check(&f, "fib", 200, 200, 500, 699);
	check(&f, "node::run", 100, 300, 500, 799);
	phases_done(&f);
	selection_done(&sel);
	/* And below a root, with a group. */
	select_all(&s, &sel, (struct select_options){ 0 });
	assert_int_equal(restack_apply(s.p, &sel,
				       &(struct restack_options){ .root = "node::run", .groups = NAMES("F=fib") },
				       &err),
			 0);
	assert_int_equal(phases_build(&f, s.p, &sel, NAMES("^F$"), &err), 0);
	check(&f, "^F$", 700, 700, 0, 699);
	assert_int_equal(f.all.samples, 1000);
	assert_int_equal(f.outside.samples, 300);
	phases_done(&f);
	selection_done(&sel);
	profile_free(s.p);
}

static void add_mark(struct profile *p, uint64_t start, uint64_t end, const char *kind, uint32_t thread)
{
	profile_add_mark(p, &(struct profile_mark){ .start_ns = start * MS,
						    .end_ns = end * MS,
						    .name = profile_string(p, "x"),
						    .kind = profile_string(p, kind),
						    .thread = thread });
}

static void marks_hold_what_was_then(void **state)
{
	struct sample s = sample_make();
	struct selection sel;
	struct marks m;
	struct err err;

	select_all(&s, &sel, (struct select_options){ 0 });
	assert_int_equal(marks_build(&m, s.p, &sel, &err), -ENODATA);
	marks_done(&m);
	add_mark(s.p, 900, 1600, "phase", s.worker);
	add_mark(s.p, 0, 650, "block", PROFILE_NONE);
	add_mark(s.p, 100, 200, "block", PROFILE_NONE);
	assert_int_equal(marks_build(&m, s.p, &sel, &err), 0);
	assert_int_equal(m.rows.n, 3);
	assert_int_equal(m.rows.v[0].weight.samples, 650);
	assert_int_equal(m.rows.v[1].weight.samples, 100);
	assert_int_equal(m.rows.v[2].weight.samples, 600); /* of its thread only */
	assert_int_equal(m.outside.samples, 2000 - 650 - 600);
	assert_int_equal(m.outside.value, (2000 - 650 - 600) * MS);
	assert_int_equal(m.kinds.n, 2);
	assert_string_equal(m.kinds.v[0].name, "block");
	assert_int_equal(m.kinds.v[0].count, 2);
	assert_int_equal(m.kinds.v[0].time_ns, 750 * MS);
	assert_int_equal(m.kinds.v[0].longest_ns, 650 * MS);
	assert_int_equal(m.kinds.v[0].weight.samples, 750);
	marks_done(&m);
	/* A moment lasts until the next one of its kind, the last to the end. */
	add_mark(s.p, 1900, 1900, "tick", PROFILE_NONE);
	add_mark(s.p, 500, 500, "tick", PROFILE_NONE);
	assert_int_equal(marks_build(&m, s.p, &sel, &err), 0);
	assert_int_equal(m.rows.v[2].start_ns, 500 * MS);
	assert_int_equal(m.rows.v[2].end_ns, 1900 * MS);
	assert_int_equal(m.rows.v[2].weight.samples, 1400);
	assert_int_equal(m.rows.v[4].end_ns, 2100 * MS);
	assert_int_equal(m.rows.v[4].weight.samples, 100);
	assert_int_equal(m.outside.samples, 0);
	marks_done(&m);
	selection_done(&sel);
	/* Marks that the range does not touch are not there. */
	select_all(&s, &sel, (struct select_options){ .from_ns = 1700 * MS, .to_ns = 1950 * MS });
	assert_int_equal(marks_build(&m, s.p, &sel, &err), 0);
	assert_int_equal(m.rows.n, 2);
	assert_int_equal(m.rows.v[0].weight.samples, 200);
	assert_int_equal(m.rows.v[1].weight.samples, 50);
	marks_done(&m);
	selection_done(&sel);
	profile_free(s.p);
}

/* A wait has a length: each mark has its part of it. */
static void long_waits_are_cut(void **state)
{
	struct sample s = sample_empty();
	struct profile *p = s.p;
	uint32_t wait = profile_add_event(p, "wait", "ns", "", 0), stack = sample_stack(&s, "a;b");
	struct selection sel;
	struct phases f;
	struct marks m;
	struct err err;

	profile_add_sample(p,
			   &(struct profile_sample){
				   .time_ns = 100 * MS, .value = 800 * MS, .stack = stack, .event = wait });
	add_mark(p, 0, 300, "block", PROFILE_NONE);
	add_mark(p, 200, 400, "block", PROFILE_NONE);
	add_mark(p, 600, 2000, "block", PROFILE_NONE);
	select_all(&s, &sel, (struct select_options){ .event = wait });
	assert_int_equal(marks_build(&m, p, &sel, &err), 0);
	assert_int_equal(m.rows.v[0].weight.value, 200 * MS);
	assert_int_equal(m.rows.v[1].weight.value, 200 * MS);
	assert_int_equal(m.rows.v[2].weight.value, 300 * MS);
	assert_int_equal(m.outside.value, 200 * MS);
	assert_int_equal(m.outside.samples, 0);
	marks_done(&m);
	assert_int_equal(phases_build(&f, p, &sel, NAMES("b"), &err), 0);
	assert_int_equal(f.rows.v[0].first_ns, 100 * MS);
	assert_int_equal(f.rows.v[0].last_ns, 900 * MS);
	phases_done(&f);
	selection_done(&sel);
	select_all(&s, &sel,
		   (struct select_options){ .event = wait, .from_ns = 250 * MS, .to_ns = 650 * MS });
	assert_int_equal(marks_build(&m, p, &sel, &err), 0);
	assert_int_equal(m.rows.v[0].weight.value, 50 * MS);
	assert_int_equal(m.rows.v[1].weight.value, 150 * MS);
	assert_int_equal(m.rows.v[2].weight.value, 50 * MS);
	assert_int_equal(m.outside.value, 200 * MS);
	marks_done(&m);
	selection_done(&sel);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_on_the_stack),
		cmocka_unit_test(marks_hold_what_was_then),
		cmocka_unit_test(long_waits_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
