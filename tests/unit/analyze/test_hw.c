/* test_hw.c - counters by function, thread and phase, and between two moments. */
#include "test.h"

#include <errno.h>
#include <math.h>

#include "bench/counterline.h"
#include "analyze/hw.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/bench/stattext.h"
#include "jsonmembers.h"
#include "sample.h"

static void near(double got, double wanted, double tolerance)
{
	if (!(fabs(got - wanted) <= tolerance))
		fail_msg("%.12g, wanted %.12g", got, wanted);
}

static uint32_t add_event(struct sample *s, const char *name)
{
	return profile_add_event(s->p, name, strstr(name, "clock") ? "ns" : "count", "", 0);
}

static void add(struct sample *s, uint32_t event, uint32_t thread, uint32_t stack, uint64_t time_ms, uint64_t value,
		unsigned count)
{
	while (count--)
		profile_add_sample(s->p, &(struct profile_sample){ .event = event, .thread = thread, .stack = stack,
								   .time_ns = time_ms++ * 1000000, .value = value });
}

static const struct hw_row *row_of(const struct hw_rows *rows, const char *name)
{
	for (size_t i = 0; i < rows->n; i++)
		if (!strcmp(rows->v[i].name, name))
			return &rows->v[i];
	fail_msg("no %s", name);
	return NULL;
}

/* chase stalls (0.5 instructions a cycle), keccak does not (3); load is too rare to tell. */
static struct sample make(void)
{
	struct sample s = sample_empty();
	struct profile *p = s.p;
	uint32_t chase = sample_stack(&s, "main;state_root;chase"), keccak = sample_stack(&s, "main;keccak");
	uint32_t load = sample_stack(&s, "main;load");
	uint32_t fault = sample_stack(&s, "main;state_root;chase;k:asm_exc_page_fault;k:handle_mm_fault");
	uint32_t clock = add_event(&s, "hw:task-clock"), major = add_event(&s, "hw:major-faults");
	uint32_t cycles = add_event(&s, "hw:cycles"), instructions = add_event(&s, "hw:instructions");

	add_event(&s, "hw:migrations");  /* counted, and there was none */
	add_event(&s, "hw:dTLB-loads");  /* never had its turn */
	add(&s, clock, s.main, chase, 0, 1000000, 100);
	add(&s, clock, s.worker, keccak, 100, 1000000, 50);
	add(&s, cycles, s.main, chase, 0, 4000000, 100);
	add(&s, cycles, s.worker, keccak, 100, 4000000, 50);
	add(&s, cycles, s.worker, load, 190, 4000000, 9);
	add(&s, instructions, s.main, chase, 0, 2000000, 100);
	add(&s, instructions, s.worker, keccak, 100, 12000000, 50);
	add(&s, instructions, s.worker, load, 190, 2000000, 9);
	add(&s, major, s.main, fault, 50, 3, 20);
	profile_count_set(p, "hw.share.cycles", 1000000);
	profile_count_set(p, "hw.share.instructions", 400000);
	profile_count_set(p, "hw.share.dTLB-loads", 0);
	profile_add_mark(p, &(struct profile_mark){ .start_ns = 100000000, .end_ns = 200000000, .thread = PROFILE_NONE,
						    .kind = profile_string(p, "phase"),
						    .name = profile_string(p, "exec") });
	return s;
}

static void functions_have_their_own(void **state)
{
	struct sample s = make();
	const struct hw_row *r;
	struct hw_tables t;

	assert_int_equal(hw_build(&t, s.p, NULL), 0);
	assert_int_equal(t.order, COUNTER_CYCLES);
	assert_string_equal(t.functions.v[0].name, "chase");
	r = row_of(&t.functions, "chase");
	near(hw_ratio(r, RATIO_IPC), 0.5, 1e-12);
	/* A fault is of the function that touched the page, not of the kernel's that serves it. */
	near(r->values[COUNTER_MAJOR_FAULTS].value, 60, 0);
	near(hw_ratio(row_of(&t.functions, "keccak"), RATIO_IPC), 3, 1e-12);
	assert_true(isnan(hw_ratio(row_of(&t.functions, "load"), RATIO_IPC)));
	assert_true(t.all.values[COUNTER_MIGRATIONS].known && !t.all.values[COUNTER_MIGRATIONS].value);
	assert_false(t.all.values[COUNTER_TLB_LOADS].known || t.all.values[COUNTER_CACHE_MISSES].known);
	assert_false(r->values[COUNTER_TLB_LOADS].known);
	near(t.all.values[COUNTER_INSTRUCTIONS].share, 0.4, 1e-9);
	assert_int_equal(t.threads.n, 2);
	assert_int_equal(t.threads.v[0].id, 100);
	r = row_of(&t.phases, "exec");
	near(r->values[COUNTER_CYCLES].value, 59 * 4e6, 0);
	near(r->values[COUNTER_TASK_CLOCK].value, 50e6, 0);
	assert_int_equal(r->time_ns, 100000000);
	hw_done(&t);
	profile_free(s.p);
}

static void tables_say_it(void **state)
{
	struct sample s = make();
	struct buf out = { 0 };
	struct hw_tables t;

	assert_int_equal(hw_build(&t, s.p, NULL), 0);
	const struct stat_table table = { "function", t.functions.v, &t.all, t.functions.n };

	stattext_values(t.all.values, t.duration_ns, &out);
	assert_non_null(strstr(out.data, "counted 40 % of the time, scaled"));
	assert_non_null(strstr(out.data, "took turns"));
	assert_null(strstr(out.data, "dTLB"));
	out.n = 0;
	stattext_table(&table, &out);
	assert_non_null(strstr(out.data, "IPC"));
	assert_null(strstr(out.data, "branch"));
	assert_non_null(strstr(out.data, "62.9 %    0.50"));
	out.n = 0;
	stattext_hints(&t, &out);
	assert_non_null(strstr(out.data, "chase: instructions a cycle 0.50 (below 1"));
	assert_null(strstr(out.data, "keccak"));
	out.n = 0;
	put_members(&out, statjson_table(&table, "functions", &j));
	assert_non_null(strstr(out.data, "\"name\":\"chase\""));
	assert_non_null(strstr(out.data, "\"major-faults\":{\"value\":60,\"counted\":1.0000}"));
	assert_null(strstr(out.data, "dTLB"));
	buf_done(&out);
	hw_done(&t);
	profile_free(s.p);
}

/* A virtual machine: what the kernel counts, ordered by CPU time; and a recording that has nothing of it. */
static void without_a_processor(void **state)
{
	struct sample s = sample_empty();
	struct err err = { 0 };
	struct hw_tables t;
	struct buf out = { 0 };

	assert_int_equal(hw_build(&t, s.p, &err), -ENODATA);
	assert_non_null(strstr(err.text, "-e hw"));
	add(&s, add_event(&s, "hw:task-clock"), s.main, 0, 0, 1000000, 20);
	assert_int_equal(hw_build(&t, s.p, NULL), 0);
	assert_int_equal(t.order, COUNTER_TASK_CLOCK);
	assert_string_equal(t.functions.v[0].name, "[no stack]");
	stattext_values(t.all.values, 1000000000, &out);
	assert_null(strstr(out.data, "cycles"));
	assert_non_null(strstr(out.data, "0.02 CPUs"));
	buf_done(&out);
	hw_done(&t);
	profile_free(s.p);
}

/* Three readings; the second counter had its turn in the second half of the time only. */
static void between_moments(void **state)
{
	struct counterline_reading r = { .time_ns = 1000 };
	struct counter_value v[COUNTERS];
	struct counterline c = { 0 };

	counterline_between(&c, 0, 10, v);
	assert_false(v[COUNTER_CYCLES].known);
	r.known[COUNTER_CYCLES] = r.known[COUNTER_INSTRUCTIONS] = true;
	counterline_add(&c, &r);
	r.time_ns = 2000;
	r.raw[COUNTER_CYCLES] = (struct counter_raw){ 100, 1000, 1000 };
	r.raw[COUNTER_INSTRUCTIONS] = (struct counter_raw){ 0, 1000, 0 };
	counterline_add(&c, &r);
	counterline_add(&c, &r); /* twice the same moment is once */
	r.time_ns = 3000;
	r.raw[COUNTER_CYCLES] = (struct counter_raw){ 300, 2000, 2000 };
	r.raw[COUNTER_INSTRUCTIONS] = (struct counter_raw){ 500, 2000, 1000 };
	counterline_add(&c, &r);
	assert_int_equal(c.list.n, 3);
	counterline_between(&c, 1500, 2500, v);
	near(v[COUNTER_CYCLES].value, 150, 1e-9);
	near(v[COUNTER_INSTRUCTIONS].value, 500, 1e-9); /* 250 in half of it */
	near(v[COUNTER_INSTRUCTIONS].share, 0.5, 1e-9);
	counterline_between(&c, 1000, 2000, v);
	assert_false(v[COUNTER_INSTRUCTIONS].known);
	assert_false(v[COUNTER_BRANCHES].known);
	counterline_between(&c, 0, 9000, v);
	near(v[COUNTER_CYCLES].value, 300, 1e-9);
	counterline_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_have_their_own),
		cmocka_unit_test(tables_say_it),
		cmocka_unit_test(without_a_processor),
		cmocka_unit_test(between_moments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
