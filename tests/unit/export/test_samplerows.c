#include "test.h"

#include <errno.h>

#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"
#include "export/samplerows.h"
#include "judged.h"

struct job {
	struct patterns patterns;
	struct causes causes;
	struct selection selection;
	struct export_job job;
	struct samplerows rows;
};

static int make(struct job *j, const struct profile *p, struct select_options o, bool every, unsigned flags, struct err *err)
{
	*j = (struct job){ 0 };
	patterns_init(&j->patterns);
	patterns_add_builtin(&j->patterns);
	causes_init(&j->causes, p, &j->patterns);
	o.causes = &j->causes;
	selection_make(p, &o, &j->selection, NULL);
	j->job = (struct export_job){ .profile = p, .selection = &j->selection, .options = { .every_event = every } };
	return samplerows_make(&j->rows, &j->job, flags, err);
}

static void done(struct job *j)
{
	samplerows_done(&j->rows);
	selection_done(&j->selection);
	causes_done(&j->causes);
	patterns_done(&j->patterns);
}

static uint64_t sum_of(const struct samplerows *rows, uint32_t event, uint32_t thread)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < rows->list.n; i++)
		if (rows->list.v[i].event == event && rows->list.v[i].thread == thread)
			sum += rows->list.v[i].value;
	return sum;
}

static const struct samplerow *row_of(const struct samplerows *rows, uint32_t event, uint32_t thread)
{
	for (size_t i = 0; i < rows->list.n; i++)
		if (rows->list.v[i].event == event && rows->list.v[i].thread == thread)
			return &rows->list.v[i];
	fail_msg("no row of event %u, thread %u", event, thread);
	return NULL;
}

static void all_events_or_one(void **state)
{
	struct waiting w = waiting_make();
	struct job j;

	assert_int_equal(make(&j, w.s.p, (struct select_options){ .event = w.s.cpu }, true, 0, NULL), 0);
	assert_int_equal(j.rows.events.n, 3);
	assert_int_equal(j.rows.events.v[0], w.s.cpu);
	assert_int_equal(j.rows.events.v[1], w.wait);
	assert_int_equal(j.rows.events.v[2], w.queue);
	assert_int_equal(sum_of(&j.rows, w.s.cpu, w.busy), 1000 * MS);
	assert_int_equal(sum_of(&j.rows, w.wait, w.writer), 700 * MS);
	assert_int_equal(sum_of(&j.rows, w.queue, w.writer), 20 * MS);
	done(&j);
	assert_int_equal(make(&j, w.s.p, (struct select_options){ .event = w.queue }, false, 0, NULL), 0);
	assert_int_equal(j.rows.events.n, 1);
	assert_int_equal(j.rows.list.n, 2);
	done(&j);
	assert_int_equal(make(&j, w.s.p, (struct select_options){ .event = w.queue }, false, SAMPLEROWS_EVERY, NULL), 0);
	assert_int_equal(j.rows.events.n, 3);
	done(&j);
	/* All time together, each row with its own event. */
	assert_int_equal(make(&j, w.s.p, (struct select_options){ .event = SELECT_WALL }, false, 0, NULL), 0);
	assert_int_equal(j.rows.events.n, 3);
	done(&j);
	profile_free(w.s.p);
}

static void causes_and_idle(void **state)
{
	struct waiting w = waiting_make();
	struct job j;

	assert_int_equal(make(&j, w.s.p, (struct select_options){ 0 }, true, 0, NULL), 0);
	assert_string_equal(samplerow_cause(row_of(&j.rows, w.wait, w.writer)), "disk write");
	assert_string_equal(samplerow_cause(row_of(&j.rows, w.wait, w.rpc)), "lock");
	assert_string_equal(samplerow_cause(row_of(&j.rows, w.queue, w.engine)), "run queue");
	assert_string_equal(samplerow_cause(row_of(&j.rows, w.s.cpu, w.busy)), "");
	assert_int_equal(row_of(&j.rows, w.wait, w.writer)->role, ROLE_WAIT);
	assert_int_equal(sum_of(&j.rows, w.wait, w.idle), 0);
	/* The scheduler is not on the stack of a wait. */
	assert_string_equal(cause_frame_name(w.s.p, w.s.p->stacks.v[row_of(&j.rows, w.wait, w.writer)->stack].frame), "jbd2_log_wait_commit");
	done(&j);
	assert_int_equal(make(&j, w.s.p, (struct select_options){ 0 }, true, SAMPLEROWS_IDLE, NULL), 0);
	assert_int_equal(sum_of(&j.rows, w.wait, w.idle), 999 * MS);
	assert_string_equal(samplerow_cause(row_of(&j.rows, w.wait, w.idle)), "idle");
	done(&j);
	assert_int_equal(make(&j, w.s.p, (struct select_options){ .idle = true }, true, 0, NULL), 0);
	assert_int_equal(sum_of(&j.rows, w.wait, w.idle), 999 * MS);
	done(&j);
	profile_free(w.s.p);
}

/* Single waits are cut at the borders; a sum of waits is at its moment, or not. */
static void a_range_cuts_waits(void **state)
{
	struct waiting w = waiting_make();
	const struct samplerow *r;
	struct job j;

	assert_int_equal(make(&j, w.s.p, (struct select_options){ .from_ns = 750 * MS, .to_ns = 810 * MS }, true, SAMPLEROWS_IDLE, NULL), 0);
	r = row_of(&j.rows, w.wait, w.rpc);
	assert_int_equal(r->begin_ns, 750 * MS);
	assert_int_equal(r->end_ns, 800 * MS);
	assert_int_equal(r->value, 50 * MS);
	assert_int_equal(sum_of(&j.rows, w.wait, w.rpc), 50 * MS); /* the sum of 250 begins at 810 */
	r = row_of(&j.rows, w.wait, w.idle);
	assert_int_equal(r->begin_ns, 750 * MS);
	assert_int_equal(r->end_ns, 810 * MS);
	assert_int_equal(r->value, 60 * MS);
	assert_int_equal(sum_of(&j.rows, w.wait, w.writer), 0);
	for (size_t i = 0; i < j.rows.list.n; i++)
		assert_true(j.rows.list.v[i].begin_ns >= 750 * MS && j.rows.list.v[i].end_ns <= 810 * MS);
	done(&j);
	assert_int_equal(make(&j, w.s.p, (struct select_options){ .from_ns = 805 * MS }, true, 0, NULL), 0);
	r = row_of(&j.rows, w.wait, w.rpc);
	assert_int_equal(r->begin_ns, r->end_ns);
	assert_int_equal(r->value, 100 * MS);
	assert_int_equal(r->count, 250);
	done(&j);
	profile_free(w.s.p);
}

/* The queue's part of a wait begins where it was woken. */
static void queue_after_wait(void **state)
{
	struct waiting w = waiting_empty();
	struct job j;

	waiting_add(&w, w.wait, w.rpc, w.lock, 100 * MS, 50 * MS, 1);
	waiting_add(&w, w.queue, w.rpc, w.lock, 100 * MS, 20 * MS, 1);
	assert_int_equal(make(&j, w.s.p, (struct select_options){ 0 }, true, 0, NULL), 0);
	assert_int_equal(row_of(&j.rows, w.wait, w.rpc)->end_ns, 150 * MS);
	assert_int_equal(row_of(&j.rows, w.queue, w.rpc)->begin_ns, 150 * MS);
	assert_int_equal(row_of(&j.rows, w.queue, w.rpc)->end_ns, 170 * MS);
	done(&j);
	profile_free(w.s.p);
}

static void by_time(void **state)
{
	struct waiting w = waiting_make();
	struct job j;

	assert_int_equal(make(&j, w.s.p, (struct select_options){ 0 }, true, SAMPLEROWS_BY_TIME, NULL), 0);
	for (size_t i = 1; i < j.rows.list.n; i++)
		assert_true(j.rows.list.v[i - 1].begin_ns <= j.rows.list.v[i].begin_ns);
	done(&j);
	profile_free(w.s.p);
}

static void add_block(struct profile *p, uint64_t begin_ms, uint64_t end_ms, const char *kind)
{
	profile_add_mark(p, &(struct profile_mark){ .start_ns = begin_ms * MS, .end_ns = end_ms * MS, .kind = profile_string(p, kind),
						    .thread = PROFILE_NONE });
}

/* The block that began last, of those that are not over. */
static void blocks(void **state)
{
	static const struct {
		unsigned ms, mark;
	} cases[] = { { 5, PROFILE_NONE }, { 10, 0 }, { 25, 2 }, { 35, 0 }, { 45, 5 }, { 65, 0 }, { 75, 1 }, { 85, 1 }, { 95, PROFILE_NONE } };
	struct sample s = sample_empty();
	struct job j;

	add_block(s.p, 10, 75, "block"); /* 0 */
	add_block(s.p, 70, 90, "block"); /* 1 */
	add_block(s.p, 20, 30, "block"); /* 2 */
	add_block(s.p, 32, 38, "phase"); /* 3: no block */
	add_block(s.p, 36, 36, "block"); /* 4: a moment */
	add_block(s.p, 40, 50, "block"); /* 5 */
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		s.now_ns = cases[i].ms * MS;
		sample_add(&s, s.main, sample_stack(&s, "main"), 1);
	}
	assert_int_equal(make(&j, s.p, (struct select_options){ 0 }, true, 0, NULL), 0);
	assert_int_equal(j.rows.list.n, ARRAY_LEN(cases));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(j.rows.list.v[i].block, cases[i].mark);
	done(&j);
	profile_free(s.p);
}

static void filters(void **state)
{
	const char *nobody[] = { "nobody", NULL }, *rpc[] = { "rpc-1", NULL };
	struct waiting w = waiting_make();
	struct err err = { 0 };
	struct job j;

	/* Of some events nothing is left, which is no error: rpc-1 has no CPU samples. */
	assert_int_equal(make(&j, w.s.p, (struct select_options){ .threads = rpc }, true, 0, &err), 0);
	assert_int_equal(j.rows.events.n, 1);
	assert_int_equal(sum_of(&j.rows, w.wait, w.rpc), 900 * MS);
	done(&j);
	assert_int_equal(make(&j, w.s.p, (struct select_options){ .threads = nobody }, true, 0, &err), -ENODATA);
	assert_non_null(strstr(err.text, "nobody"));
	done(&j);
	assert_int_equal(make(&j, w.s.p, (struct select_options){ .function = "[" }, true, 0, &err), -EINVAL);
	done(&j);
	/* Nothing was recorded at all. */
	profile_free(w.s.p);
	w.s.p = profile_new();
	assert_int_equal(make(&j, w.s.p, (struct select_options){ 0 }, true, 0, &err), 0);
	assert_int_equal(j.rows.list.n + j.rows.events.n, 0);
	done(&j);
	profile_free(w.s.p);
}

/* --- stacks --- */

static char *names_of(const struct profile *p, uint32_t stack, bool no_inline)
{
	struct export_job job = { .profile = p, .options = { .no_inline = no_inline } };
	struct stackcalls calls;
	struct buf b = { 0 };

	stackcalls_init(&calls, &job);
	stackcalls_of(&calls, stack);
	for (size_t i = 0; i < calls.list.n; i++)
		buf_printf(&b, "%s%s%s", i ? "<" : "", calls.list.v[i].name, calls.list.v[i].inlined ? "(i)" : "");
	buf_add(&b, "", 0);
	stackcalls_done(&calls);
	return b.data;
}

static void calls_of_stacks(void **state)
{
	struct sample s = sample_empty();
	uint32_t stack = sample_stack(&s, "main;run;i:middle;i:inner;k:do_syscall_64");
	_cleanup_free_ char *all = names_of(s.p, stack, false), *called = names_of(s.p, stack, true), *none = names_of(s.p, 0, false),
			    *odd = names_of(s.p, sample_stack(&s, "!no table;?"), false);

	assert_string_equal(all, "do_syscall_64<inner(i)<middle(i)<run<main");
	assert_string_equal(called, "do_syscall_64<run<main");
	assert_string_equal(none, "");
	assert_string_equal(odd, "libstripped.so+0x1230<[truncated: no table]");
	profile_free(s.p);
}

static void lines_of_calls(void **state)
{
	struct sample s = sample_empty();
	struct profile *p = s.p;
	uint32_t frame = profile_frame(p, s.node, FRAME_USER, 0x4000);
	struct profile_function inner = { .name = profile_string(p, "inner"), .module = s.node, .file = profile_string(p, "a.rs") };
	struct profile_function outer = { .name = profile_string(p, "outer"), .module = s.node, .file = profile_string(p, "b.rs") };
	struct profile_line lines[] = { { profile_function(p, &inner), 7, true }, { profile_function(p, &outer), 9, false } };

	profile_set_lines(p, frame, lines, 2);
	for (int no_inline = 0; no_inline < 2; no_inline++) {
		struct export_job job = { .profile = p, .options = { .no_inline = no_inline } };
		const struct stackcall *last;
		struct stackcalls calls;

		stackcalls_init(&calls, &job);
		stackcalls_of_frame(&calls, frame);
		assert_int_equal(calls.list.n, no_inline ? 1 : 2);
		last = &calls.list.v[calls.list.n - 1];
		assert_string_equal(last->name, "outer");
		assert_string_equal(last->file, "b.rs");
		assert_int_equal(last->line, 9);
		assert_int_equal(last->address, 0x4000);
		assert_int_equal(last->frame, frame);
		assert_string_equal(last->module, "/opt/node/bin/node");
		if (!no_inline) {
			assert_string_equal(calls.list.v[0].file, "a.rs");
			assert_int_equal(calls.list.v[0].line, 7);
		}
		stackcalls_done(&calls);
	}
	profile_free(p);
}

/* What --root and its like make of stacks is what rows have; those that are not below it are left out. */
static void shaped_stacks(void **state)
{
	struct sample s = sample_empty();
	uint32_t below = sample_stack(&s, "main;run;work"), beside = sample_stack(&s, "main;other"), cut = sample_stack(&s, "run;work");
	uint32_t *shaped = mem_alloc((s.p->stacks.n + 1) * sizeof(*shaped));
	struct job j;

	sample_add(&s, s.main, below, 2);
	sample_add(&s, s.main, beside, 1);
	for (uint32_t i = 0; i < s.p->stacks.n; i++)
		shaped[i] = i == below ? cut : PROFILE_NONE;
	assert_int_equal(make(&j, s.p, (struct select_options){ 0 }, true, 0, NULL), 0);
	samplerows_done(&j.rows);
	j.selection.shaped = shaped;
	assert_int_equal(samplerows_make(&j.rows, &j.job, 0, NULL), 0);
	assert_int_equal(j.rows.list.n, 2);
	assert_int_equal(j.rows.list.v[0].stack, cut);
	done(&j);
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_events_or_one),
		cmocka_unit_test(causes_and_idle),
		cmocka_unit_test(a_range_cuts_waits),
		cmocka_unit_test(queue_after_wait),
		cmocka_unit_test(by_time),
		cmocka_unit_test(blocks),
		cmocka_unit_test(filters),
		cmocka_unit_test(calls_of_stacks),
		cmocka_unit_test(lines_of_calls),
		cmocka_unit_test(shaped_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
