/* test_waits.c - the account, the wakers, the verdict, and what the formats make of them. */
#include "test.h"

#include "analyze/wait/account.h"
#include "analyze/quality.h"
#include "analyze/wait/verdict.h"
#include "analyze/wait/waits.h"
#include "base/buf.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "golden.h"
#include "judged.h"

static const struct waits_site *site(const struct all *a, enum cause cause)
{
	for (size_t i = 0; i < a->waits.sites.n; i++)
		if (a->waits.sites.v[i].cause == cause)
			return &a->waits.sites.v[i];
	fail_msg("no site of %s", cause_name(cause));
	return NULL;
}

static void the_account_closes(void **state)
{
	struct waiting w = waiting_make();
	struct all a;
	const struct account_row *r;

	begin(&a, w.s.p, (struct select_options){ 0 });
	r = row(&a, w.writer);
	assert_int_equal(r->wall_ns, 1000 * MS);
	assert_int_equal(r->ns[CAUSE_CPU], 200 * MS);
	assert_int_equal(r->ns[CAUSE_QUEUE], 20 * MS);
	assert_int_equal(r->ns[CAUSE_DISK_WRITE], 700 * MS);
	assert_int_equal(r->missing_ns, 80 * MS);
	assert_int_equal(r->waits, 7);
	r = row(&a, w.rpc);
	assert_int_equal(r->ns[CAUSE_LOCK], 900 * MS);
	assert_int_equal(r->missing_ns, 0);
	assert_int_equal(r->waits, 251);
	assert_int_equal(row(&a, w.engine)->ns[CAUSE_SLEEP], 690 * MS);
	assert_int_equal(row(&a, w.idle)->ns[CAUSE_IDLE], 999 * MS);
	assert_int_equal(row(&a, w.busy)->ns[CAUSE_CPU], 1000 * MS);
	/* Idle is not doing: the worker comes last of those that have a time. */
	assert_true(row(&a, w.idle) > row(&a, w.rpc));
	assert_int_equal(a.account.total.ns[CAUSE_CPU], 1601 * MS);
	assert_false(a.account.sampled_cpu || a.account.cpu_is_the_rest);
	end(&a);
	profile_free(w.s.p);
}

/* A thread that began while the recording was being ended: what it did is not part of it, and less than nothing
 * (which a capture holds as the largest number) is not a time. */
static void a_thread_that_came_too_late_has_no_time(void **state)
{
	struct waiting w = waiting_make();
	struct all a;

	w.s.p->threads.v[w.busy].start_ns = 1003 * MS;
	assert_int_equal(profile_thread_age_ns(&w.s.p->threads.v[w.busy], 1000 * MS), 0);
	assert_int_equal(profile_thread_age_ns(&w.s.p->threads.v[w.busy], 1005 * MS), 2 * MS);
	for (int below = 0; below < 2; below++) {
		waiting_account(&w, w.busy, below ? (uint64_t)-3 * MS : INT64_MAX, 0, 0);
		begin(&a, w.s.p, (struct select_options){ 0 });
		assert_true(a.account.total.ns[CAUSE_CPU] < 1602 * MS);
		assert_true(a.account.total.wall_ns <= 5000 * MS);
		end(&a);
	}
	profile_free(w.s.p);
}

static void a_range_cuts_waits(void **state)
{
	struct waiting w = waiting_make();
	struct selection s;
	struct all a;

	/* Half of the third fdatasync to half of the fifth. */
	begin(&a, w.s.p, (struct select_options){ .from_ns = 250 * MS, .to_ns = 450 * MS });
	assert_int_equal(row(&a, w.writer)->wall_ns, 200 * MS);
	assert_int_equal(row(&a, w.writer)->ns[CAUSE_DISK_WRITE], 200 * MS);
	assert_int_equal(row(&a, w.writer)->missing_ns, 0);
	assert_int_equal(row(&a, w.busy)->ns[CAUSE_CPU], 200 * MS); /* from samples */
	assert_true(a.account.sampled_cpu);
	assert_int_equal(site(&a, CAUSE_LOCK)->ns, 200 * MS);
	a.o.event = w.wait;
	assert_int_equal(selection_make(w.s.p, &a.o, &s, NULL), 0);
	/* writer and rpc whole, naps that lie in it */
	assert_true(s.all.value > 500 * MS && s.all.value < 560 * MS);
	assert_int_equal(s.idle.value, 200 * MS);
	selection_done(&s);
	end(&a);
	profile_free(w.s.p);
}

/* The queue's part of a wait comes after its blocked part. */
static void a_range_knows_the_order_of_a_waits_parts(void **state)
{
	struct waiting w = waiting_empty();
	struct all a;

	waiting_add(&w, w.wait, w.rpc, w.lock, 100 * MS, 50 * MS, 1);
	waiting_add(&w, w.queue, w.rpc, w.lock, 100 * MS, 30 * MS, 1);
	begin(&a, w.s.p, (struct select_options){ .from_ns = 140 * MS, .to_ns = 170 * MS });
	assert_int_equal(row(&a, w.rpc)->ns[CAUSE_LOCK], 10 * MS);
	assert_int_equal(row(&a, w.rpc)->ns[CAUSE_QUEUE], 20 * MS);
	end(&a);
	profile_free(w.s.p);
}

/* Threads of one name that come and go are one row; those that stay, and a pair, are not. */
static void a_crowd_is_one_row(void **state)
{
	struct waiting w = waiting_make();
	struct account_rows rows;
	uint64_t wall = 0;
	size_t crowds = 0, singles = 0;
	struct all a;

	for (unsigned i = 0; i < 9; i++) {
		uint32_t t = builder_thread(w.s.p, 0, 300 + i, i < 4 ? "block_executor_" : i < 6 ? "a pair" : "stays");

		w.s.p->threads.v[t].start_ns = i * 10 * MS;
		w.s.p->threads.v[t].end_ns = i < 6 ? (i * 10 + 5) * MS : 0;
		waiting_account(&w, t, 3 * MS, 1 * MS, 1 * MS);
	}
	begin(&a, w.s.p, (struct select_options){ 0 });
	account_join_crowds(&a.account, w.s.p, &rows);
	for (size_t i = 0; i < rows.list.n; i++) {
		const struct account_row *r = &rows.list.v[i];

		wall += r->wall_ns;
		if (strcmp(profile_str(w.s.p, w.s.p->threads.v[r->thread].name), "block_executor_")) {
			singles += r->threads == 1;
			continue;
		}
		crowds++;
		assert_int_equal(r->threads, 4);
		assert_int_equal(r->wall_ns, 4 * 5 * MS);
		assert_int_equal(r->ns[CAUSE_CPU], 4 * 3 * MS);
	}
	assert_int_equal(crowds, 1);
	assert_int_equal(singles, rows.list.n - 1);
	assert_int_equal(rows.list.n, a.account.threads.n - 3);
	assert_int_equal(wall, a.account.total.wall_ns);
	vec_done(&rows.list);
	end(&a);
	profile_free(w.s.p);
}

static void there_is_no_account_without_waits(void **state)
{
	struct sample s = sample_make();
	struct patterns patterns;
	struct causes causes;
	struct account account;

	patterns_init(&patterns);
	causes_init(&causes, s.p, &patterns);
	assert_false(account_make(&account, s.p, &(struct select_options){ 0 }, &causes));
	account_done(&account);
	causes_done(&causes);
	patterns_done(&patterns);
	profile_free(s.p);
}

static void wakers_are_named_and_what_they_ran(void **state)
{
	struct waiting w = waiting_make();
	const struct waits_site *s;
	struct all a;

	begin(&a, w.s.p, (struct select_options){ 0 });
	assert_string_equal(a.waits.sites.v[0].function, "reth::Cache::get");
	s = site(&a, CAUSE_LOCK);
	assert_int_equal(s->ns, 900 * MS);
	assert_int_equal(s->count, 251);
	assert_int_equal(s->longest_ns, 800 * MS);
	assert_int_equal(s->wakers.n, 1);
	assert_int_equal(s->wakers.v[0].interrupt, INTERRUPT_NONE);
	assert_string_equal(s->wakers.v[0].function, "reth::Cache::insert");
	assert_string_equal(s->wakers.v[0].thread, "persistence");
	assert_true(s->wakers.v[0].stack && s->wakers.v[0].stack_ns == s->wakers.v[0].ns);
	assert_true(s->wakers.v[0].longest_ns * s->wakers.v[0].count >= s->wakers.v[0].ns);
	/* Who waited, all of it. */
	assert_int_equal(s->waiters.n, 1);
	assert_string_equal(s->waiters.v[0].thread, "rpc-1");
	assert_int_equal(s->waiters.v[0].ns, s->ns);
	assert_int_equal(s->longest_thread, s->thread);
	/* While it was waited for, from 0 to 800 ms, the holder ran for the last 100. */
	assert_int_equal(s->ran.n, 1);
	assert_string_equal(s->ran.v[0].function, "reth::Cache::insert");
	assert_int_equal(s->ran.v[0].ns, 100 * MS);
	/* And before that it waited for the disk. */
	assert_int_equal(s->chains.n, 1);
	assert_int_equal(s->chains.v[0].link_count, 1);
	assert_string_equal(s->chains.v[0].links[0].thread, "persistence");
	assert_int_equal(s->chains.v[0].links[0].cause, CAUSE_DISK_WRITE);
	assert_string_equal(s->chains.v[0].links[0].function, "mdbx_txn_commit");
	assert_int_equal(s->chains.v[0].end, INTERRUPT_DISK);
	/* Interrupts woke the others, not who ran at the time. */
	s = site(&a, CAUSE_DISK_WRITE);
	assert_int_equal(s->wakers.v[0].interrupt, INTERRUPT_DISK);
	assert_string_equal(s->operation, "fdatasync");
	s = site(&a, CAUSE_SLEEP);
	assert_int_equal(s->wakers.n, 1);
	assert_int_equal(s->wakers.v[0].interrupt, INTERRUPT_TIMER);
	assert_int_equal(s->wakers.v[0].count, 69);
	assert_int_equal(s->ran.n, 0);
	assert_int_equal(a.waits.idle_ns, 999 * MS);
	end(&a);
	profile_free(w.s.p);
}

/* n threads, each waiting for the next; the last waits for the first again if it is a circle. */
static struct waiting chained(unsigned n, bool circle)
{
	struct waiting w = waiting_empty();
	struct sample *s = &w.s;
	uint32_t first = s->p->threads.n;

	for (unsigned i = 0; i < n; i++) {
		char name[16];

		snprintf(name, sizeof(name), "chain-%u", i);
		builder_thread(s->p, 0, 500 + i, name);
	}
	for (unsigned i = 0; i < n; i++) {
		bool last = i + 1 == n;

		waiting_woken(&w, first + i, w.lock, i * MS, 500 * MS - i * MS,
			      last && !circle ? PROFILE_NONE : last ? first : first + i + 1, "x",
			      last && !circle ? w.disk : w.unlocks);
	}
	return w;
}

static void chains_are_followed_to_their_end(void **state)
{
	for (unsigned n = 2; n < 14; n++) {
		struct waiting w = chained(n, false);
		const struct waits_chain *longest = NULL;
		struct all a;

		begin(&a, w.s.p, (struct select_options){ 0 });
		for (size_t i = 0; i < a.waits.sites.v[0].chains.n; i++)
			if (!longest || a.waits.sites.v[0].chains.v[i].link_count > longest->link_count)
				longest = &a.waits.sites.v[0].chains.v[i];
		assert_non_null(longest);
		assert_int_equal(longest->link_count, MIN(n - 1, WAITS_LINKS));
		if (n - 1 <= WAITS_LINKS)
			assert_int_equal(longest->end, INTERRUPT_DISK);
		end(&a);
		profile_free(w.s.p);
	}
}

static void a_circle_of_waits_ends(void **state)
{
	struct waiting w = chained(3, true);
	struct all a;

	begin(&a, w.s.p, (struct select_options){ 0 });
	for (size_t i = 0; i < a.waits.sites.v[0].chains.n; i++)
		assert_int_equal(a.waits.sites.v[0].chains.v[i].link_count, 2);
	end(&a);
	profile_free(w.s.p);
}

static void a_waker_that_worked_is_no_link(void **state)
{
	struct waiting w = waiting_empty();
	struct all a;

	waiting_woken(&w, w.rpc, w.lock, 0, 800 * MS, w.writer, "persistence", w.unlocks);
	waiting_woken(&w, w.writer, w.fsync, 100 * MS, 50 * MS, PROFILE_NONE, "x", w.disk);
	begin(&a, w.s.p, (struct select_options){ 0 });
	assert_int_equal(site(&a, CAUSE_LOCK)->chains.n, 0);
	end(&a);
	profile_free(w.s.p);
}

static void the_verdict_names_thread_cause_and_place(void **state)
{
	struct waiting w = waiting_make();
	struct all a;

	begin(&a, w.s.p, (struct select_options){ 0 });
	assert_true(a.verdict.sentences.n >= 2 && a.verdict.sentences.n <= 3);
	assert_string_equal(
		a.verdict.sentences.v[0],
		"90 % of thread `rpc-1` (900 ms of 1.00 s) is waiting for a lock under "
		"`reth::Cache::get`, mostly ended by `reth::Cache::insert` of thread `persistence`.");
	assert_non_null(strstr(a.verdict.sentences.v[1], "Another thread holds the lock"));
	assert_non_null(strstr(a.verdict.sentences.v[1], "What usually helps: "));
	end(&a);
	begin(&a, w.s.p, (struct select_options){ .threads = (const char *const[]){ "persistence", NULL } });
	assert_string_equal(a.verdict.sentences.v[0], "70 % of thread `persistence` (700 ms of 1.00 s) is "
						      "fdatasync under `mdbx_txn_commit`.");
	assert_string_equal(a.verdict.pattern->name, "commit waits for the disk");
	end(&a);
	begin(&a, w.s.p, (struct select_options){ .threads = (const char *const[]){ "busy", NULL } });
	assert_int_equal(a.verdict.sentences.n, 1);
	assert_non_null(strstr(a.verdict.sentences.v[0], "on the CPU, 1.00 s of it"));
	end(&a);
	begin(&a, w.s.p, (struct select_options){ .threads = (const char *const[]){ "tokio*", NULL } });
	assert_int_equal(a.verdict.sentences.n, 1);
	assert_non_null(strstr(a.verdict.sentences.v[0], "idle"));
	end(&a);
	profile_free(w.s.p);
}

static void what_could_run_but_did_not_is_said(void **state)
{
	struct waiting w = waiting_empty();
	struct all a;

	waiting_add(&w, w.queue, w.rpc, w.preempted, 0, 400 * MS, 40);
	waiting_account(&w, w.rpc, 600 * MS, 400 * MS, 0);
	begin(&a, w.s.p, (struct select_options){ 0 });
	assert_non_null(strstr(a.verdict.sentences.v[0], "ready for 400 ms without a CPU, 40 %"));
	end(&a);
	profile_free(w.s.p);

	/* Two thirds of nearly nothing. */
	w = waiting_empty();
	waiting_add(&w, w.queue, w.rpc, w.preempted, 0, 2 * MS, 2);
	waiting_add(&w, w.wait, w.rpc, w.park, 3 * MS, 997 * MS, 1);
	waiting_account(&w, w.rpc, 1 * MS, 2 * MS, 997 * MS);
	begin(&a, w.s.p, (struct select_options){ 0 });
	for (size_t i = 0; i < a.verdict.sentences.n; i++)
		assert_null(strstr(a.verdict.sentences.v[i], "without a CPU"));
	end(&a);
	profile_free(w.s.p);
}

static struct buf export(const struct profile *p, const char *format, const char *what,
			 struct export_options o, bool idle)
{
	struct selection s;
	struct quality q;
	struct buf out = { 0 };
	struct all a;

	begin(&a, p, (struct select_options){ .idle = idle });
	assert_int_equal(select_event(p, what, &a.o.event, NULL), 0);
	assert_int_equal(selection_make(p, &a.o, &s, NULL), 0);
	quality_measure(&q, p, &s);
	assert_true(q.fit);
	assert_int_equal(export_find(format)->write(&(struct export_job){ p, &s, &q, o, &a.account, &a.waits,
									  &a.verdict }, &out, NULL), 0);
	quality_done(&q);
	selection_done(&s);
	end(&a);
	buf_add(&out, "", 0);
	return out;
}

static void golden(void **state)
{
	static const struct {
		const char *file, *format, *what;
		bool idle;
		struct export_options o;
	} files[] = {
		{ "waits.txt", "text", "wait", false, { .limit = 30 } },
		{ "waits-terminal.txt",
		  "text",
		  "wall",
		  false,
		  { .limit = 3, .columns = 100, .colour = true } },
		{ "waits.json", "json", "wait", false, { 0 } },
		{ "waits.folded", "folded", "wait", false, { .group = CALLTREE_BY_NAME } },
		{ "wall.folded", "folded", "wall", true, { .group = CALLTREE_BY_NAME } },
		{ "wall-reverse.folded",
		  "folded",
		  "wall",
		  false,
		  { .group = CALLTREE_BY_NAME, .reverse = true } },
		{ "wall.svg", "svg", "wall", false, { .group = CALLTREE_BY_NAME } },
	};
	struct waiting w = waiting_make();

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct buf b = export(w.s.p, files[i].format, files[i].what, files[i].o, files[i].idle);

		golden_check(files[i].file, b.data, b.n);
		buf_done(&b);
	}
	profile_free(w.s.p);
}

static void weights_are_time_and_idle_is_apart(void **state)
{
	struct waiting w = waiting_make();
	struct buf b =
		export(w.s.p, "folded", "wait", (struct export_options){ .group = CALLTREE_MERGED }, false);

	assert_non_null(strstr(b.data, "jbd2_log_wait_commit_[k] 700000\n"));
	assert_null(strstr(b.data, "tokio"));
	assert_null(strstr(b.data, "schedule"));
	buf_done(&b);
	b = export(w.s.p, "folded", "wait", (struct export_options){ .weigh = EXPORT_WEIGH_SAMPLES }, true);
	assert_non_null(strstr(b.data, "futex_do_wait_[k] 251\n"));
	assert_non_null(strstr(b.data, "tokio"));
	buf_done(&b);
	b = export(w.s.p, "svg", "wait", (struct export_options){ 0 }, false);
	assert_non_null(strstr(b.data, ">[disk write] (700 ms, "));
	assert_non_null(strstr(b.data, "idle left out: 999 ms"));
	assert_non_null(strstr(b.data, ">lock</text>"));
	assert_null(strstr(b.data, ">user code</text>"));
	buf_done(&b);
	profile_free(w.s.p);
}

/* One tiny wait that is cut says nothing of a second that is not; and the other way round. */
static void stacks_of_waits_are_weighed_by_time(void **state)
{
	static const struct {
		uint64_t whole_ns, cut_ns;
		const char *line, *warning;
		bool fit;
	} cases[] = {
		{ 999 * MS, 3000, "2 waits, 99.9 % complete by time (1 cut), 0 lost", NULL, true },
		{ 3000, 999 * MS, "2 waits, under 0.1 % complete by time (1 cut), 0 lost",
		  "under 0.1 % of the time has stacks that are complete (no tables 99.9 %)", false },
		{ 5 * MS, 0, "1 wait, 100 % complete, 0 lost", NULL, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct waiting w = waiting_empty();
		uint32_t cut = sample_stack(&w.s, "!no tables");
		struct selection s;
		struct quality q;
		struct buf line = { 0 };

		waiting_add(&w, w.wait, w.rpc, w.lock, 0, cases[i].whole_ns, 1);
		if (cases[i].cut_ns)
			waiting_add(&w, w.wait, w.rpc, cut, 0, cases[i].cut_ns, 1);
		assert_int_equal(selection_make(w.s.p, &(struct select_options){ .event = w.wait }, &s, NULL),
				 0);
		quality_measure(&q, w.s.p, &s);
		quality_line(&q, &s, &line);
		assert_non_null(strstr(line.data, cases[i].line));
		assert_int_equal(q.fit, cases[i].fit);
		if (cases[i].warning)
			assert_non_null(strstr(q.warnings.v[0], cases[i].warning));
		buf_done(&line);
		quality_done(&q);
		selection_done(&s);
		profile_free(w.s.p);
	}
}

static void waits_are_not_samples_of_a_clock(void **state)
{
	struct waiting w = waiting_empty();
	struct selection s;
	struct quality q;
	struct buf line = { 0 };
	uint32_t before = sample_stack(&w.s, "k:[waiting since before the recording]");

	waiting_add(&w, w.wait, w.rpc, w.lock, 0, 900 * MS, 3);
	waiting_add(&w, w.wait, w.engine, before, 0, 900 * MS, 1);
	profile_count_set(w.s.p, "waits.lost", 1);
	profile_count_set(w.s.p, "samples.lost", 1000);
	assert_int_equal(selection_make(w.s.p, &(struct select_options){ .event = w.wait }, &s, NULL), 0);
	quality_measure(&q, w.s.p, &s);
	quality_line(&q, &s, &line);
	assert_non_null(strstr(line.data, "4 waits, 50.0 % complete by time (1 cut), 1 lost"));
	for (size_t i = 0; i < q.warnings.n; i++)
		assert_null(strstr(q.warnings.v[i], "only 4"));
	assert_true(q.fit);
	buf_done(&line);
	quality_done(&q);
	selection_done(&s);
	assert_int_equal(select_event(w.s.p, "wall", &s.options.event, NULL), 0);
	assert_int_equal(s.options.event, SELECT_WALL);
	profile_free(w.s.p);
}

/* Names of a target reach the terminal clean, and its lines stay within it. */
static void hostile_names_do_nothing(void **state)
{
	struct waiting w = waiting_empty();
	uint32_t thread = builder_thread(w.s.p, 0, 999, "\033[31m\n%s%n");
	uint32_t stack = sample_stack(&w.s, "\033]0\\;x\007%%s;pthread_mutex_lock;k:do_futex");
	struct buf b;

	waiting_woken(&w, thread, stack, 0, 800 * MS, thread, "\033[1m", stack);
	waiting_account(&w, thread, 200 * MS, 0, 800 * MS);
	for (int i = 0; i < 2; i++) {
		b = export(w.s.p, i ? "json" : "text", "wait", (struct export_options){ .columns = 80 },
			   false);
		for (const char *c = b.data; *c; c++)
			assert_true((unsigned char)*c >= 0x20 || *c == '\n');
		assert_non_null(strstr(b.data, "%s%n"));
		buf_done(&b);
	}
	profile_free(w.s.p);
}

static void lines_fit_a_terminal(void **state)
{
	static const unsigned widths[] = { 80, 100, 140 };
	struct waiting w = waiting_make();

	for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
		struct buf b =
			export(w.s.p, "text", "wait", (struct export_options){ .columns = widths[i] }, false);
		char *rest = strstr(b.data, "\nVerdict");

		for (char *line = strtok_r(rest, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
			if (cleantext_columns(line) > widths[i])
				fail_msg("%u: %s", widths[i], line);
		buf_done(&b);
	}
	profile_free(w.s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_account_closes),
		cmocka_unit_test(a_thread_that_came_too_late_has_no_time),
		cmocka_unit_test(a_range_cuts_waits),
		cmocka_unit_test(a_range_knows_the_order_of_a_waits_parts),
		cmocka_unit_test(a_crowd_is_one_row),
		cmocka_unit_test(there_is_no_account_without_waits),
		cmocka_unit_test(wakers_are_named_and_what_they_ran),
		cmocka_unit_test(chains_are_followed_to_their_end),
		cmocka_unit_test(a_circle_of_waits_ends),
		cmocka_unit_test(a_waker_that_worked_is_no_link),
		cmocka_unit_test(the_verdict_names_thread_cause_and_place),
		cmocka_unit_test(what_could_run_but_did_not_is_said),
		cmocka_unit_test(golden),
		cmocka_unit_test(weights_are_time_and_idle_is_apart),
		cmocka_unit_test(stacks_of_waits_are_weighed_by_time),
		cmocka_unit_test(waits_are_not_samples_of_a_clock),
		cmocka_unit_test(hostile_names_do_nothing),
		cmocka_unit_test(lines_fit_a_terminal),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
