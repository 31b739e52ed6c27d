/* test_tasktext.c - async tasks in the report: lines for people, members for programs. */
#include "test.h"

#include "analyze/blocks/blocks.h"
#include "analyze/quality.h"
#include "analyze/select.h"
#include "analyze/task/pollstacks.h"
#include "base/buf.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/report/wrap.h"
#include "export/section/blockstext.h"
#include "export/section/section.h"
#include "jsonmembers.h"
#include "judged.h"
#include "tasks.h"

static void assert_has(const struct buf *b, const char *text)
{
	if (!b->data || !strstr(b->data, text))
		fail_msg("nothing like\n%s\nin\n%s", text, b->data ? b->data : "");
}

static void in_the_report(void **state)
{
	struct made_tasks m = made_tasks();
	struct selection sel = { 0 };
	struct export_job job = { .profile = m.p, .selection = &sel };
	struct buf b = { 0 };
	struct all a;

	begin(&a, m.p, (struct select_options){ 0 });
	sel.options = a.o;
	section_tasks.text(&job, &b);
	assert_has(&b, "\nAsync tasks: 7 tasks of 5 types, tokio 1.43.0; polled 1.13 s, in the runtime's queue 351 ms, awaiting 4.05 s\n");
	assert_has(&b, "       3       2      1,000 ");
	assert_has(&b, "  100 ms    300 ms    2.10 s  node::rpc::serve\n"
		       "    awaited  66.7 %  a message by node::exec::publish in task node::exec::run\n"
		       "             22.4 %  the end of task node::db::read\n"
		       "              6.2 %  I/O\n"
		       "     queued  66.7 %  behind task node::db::flush\n"
		       "             26.7 %  behind task node::exec::run\n"
		       "              6.7 %  at an idle worker\n"
		       "    spawned       2  by node::rpc::accept\n");
	assert_has(&b, "   900 ms  node::db::flush\n"
		       "     polled  75.0 %  disk write\n"
		       "    awaited  92.2 %  a timer\n");
	assert_has(&b, "\nLong polls: 5 of 1.00 ms or more kept their workers from other tasks for 100 ms\n");
	assert_has(&b, "   100 ms         5   20.0 ms  node::db::commit\n"
		       "                               task node::db::flush\n"
		       "                               75.0 ms disk write (fdatasync), 25.0 ms on CPU\n"
		       "                               queued meanwhile: 55 times, 209 ms together: node::rpc::serve 200 ms, node::tick "
		       "9.00 ms\n");
	assert_has(&b, "  30.0 ms         1  node::rpc::serve awaited a message by node::rpc::share of node::rpc::serve, which awaited the "
		       "end of node::db::read, which was waiting: disk read in node::db::load\n");
	assert_has(&b, "  tasks in queues    1.3 on average, at most 4.0, at 0.11 s\n"
		       "  threads busy       1.1 on average, at most 2.0; 3 polled tasks\n"
		       "  polls a second     2,800 on average, at most 2,800\n"
		       "  longest poll       20.0 ms, before 0.13 s\n");
	buf_done(&b);
	end(&a);
	profile_free(m.p);
}

static void in_a_narrow_terminal(void **state)
{
	struct made_tasks m = made_tasks();
	struct selection sel = { 0 };
	struct export_job job = { .profile = m.p, .selection = &sel, .options = { .columns = 80, .limit = 2 } };
	struct buf b = { 0 };

	section_tasks.text(&job, &b);
	assert_has(&b, "   tasks      polls   longest    polled    queued  awaiting  type\n");
	assert_has(&b, "       1      1,800    900 µs    900 ms   40.0 ms   60.0 ms  node::exec::run\n");
	assert_has(&b, "and 3 more types (--limit 0 shows all)\n");
	wrap_lines(&b, 0, 80);
	for (char *rest = b.data, *line; (line = strsep(&rest, "\n"));)
		assert_in_range(cleantext_columns(line), 0, 80);
	buf_done(&b);
	profile_free(m.p);
}

static void for_programs(void **state)
{
	struct made_tasks m = made_tasks();
	struct selection sel = { 0 };
	struct export_job job = { .profile = m.p, .selection = &sel };
	struct buf b = { 0 };
	struct all a;

	begin(&a, m.p, (struct select_options){ 0 });
	sel.options = a.o;
	put_members(&b, section_tasks.json(&job, &j));
	assert_has(&b, "\"tasks\":{\"tasks\":7,\"spawned\":3,\"alive\":5,\"polls\":2816,\"poll_ns\":1131000000,\"queue_ns\":351000000,"
		       "\"await_ns\":4050000000,\"threads\":3,");
	assert_has(&b, "{\"type\":\"node::rpc::serve\",\"blocking\":false,\"tasks\":3,\"spawned\":2,\"finished\":1,\"alive\":2,\"polls\":1000,");
	assert_has(&b, "{\"kind\":\"channel\",\"function\":\"node::exec::publish\",\"task\":\"node::exec::run\",\"tid\":121,"
		       "\"ns\":1400000000,\"count\":700,\"longest_ns\":50000000}");
	assert_has(&b, "{\"type\":\"node::db::flush\",\"function\":\"node::db::commit\"");
	assert_has(&b, "\"by_cause_ns\":{\"cpu\":25000000,\"disk-write\":75000000},\"queued\":55,\"queued_ns\":209000000,");
	assert_has(&b, "\"end_type\":\"node::db::read\",\"end_tid\":123,\"end_cause\":\"disk-read\",\"end_function\":\"node::db::load\"}");
	assert_has(&b, "\"health\":{\"queue\":{\"mean\":1.3,\"most\":4,\"most_at_ns\":110000000},");
	buf_done(&b);
	end(&a);
	profile_free(m.p);
}

/* The awaits on the path of a block. */
static void in_a_block(void **state)
{
	struct made_tasks m = made_tasks();
	struct blocks blocks;
	struct blocks_job job = { .profile = m.p, .blocks = &blocks, .capture = "x.gasflame" };
	struct buf b = { 0 };
	struct all a;

	made_block(&m);
	begin(&a, m.p, (struct select_options){ 0 });
	assert_int_equal(blocks_make(&blocks, m.p, &a.causes, NULL, NULL, NULL), 0);
	blockstext_write_one(&job, 0, &b);
	assert_has(&b, "\nTasks on its path\n"
		       "    30.000 ms  node::rpc::serve awaited a message of node::rpc::serve\n"
		       "    25.000 ms    node::rpc::serve awaited the end of node::db::read\n");
	assert_has(&b, "     2.000 ms   5.7 %  queue       [queue of the runtime]\n");
	b.n = 0;
	blocksjson_write(&job, &b);
	assert_has(&b, "\"tasks\":[{\"type\":\"node::rpc::serve\",\"awaited\":\"channel\",\"waker\":\"node::rpc::serve\",\"waker_is_task\":true,"
		       "\"ns\":30000000,\"depth\":0},{\"type\":\"node::rpc::serve\",\"awaited\":\"join\",\"waker\":\"node::db::read\",");
	buf_done(&b);
	blocks_done(&blocks);
	end(&a);
	profile_free(m.p);
}

/* Stacks by who ended awaits: the type is their root. */
static void as_folded_stacks(void **state)
{
	struct made_tasks m = made_tasks();
	struct select_options o = { 0 };
	struct selection sel;
	struct quality quality;
	struct export_job job = { .profile = m.p, .selection = &sel, .quality = &quality };
	struct buf b = { 0 };

	assert_int_equal(select_event(m.p, "await", &o.event, NULL), 0);
	assert_int_equal(selection_make(m.p, &o, &sel, NULL), 0);
	assert_int_equal(sel.kind, SELECT_AWAITS);
	assert_int_equal(sel.all.value, 4050 * MS);
	quality_measure(&quality, m.p, &sel);
	assert_string_equal(quality_noun(&sel, 2), "awaits");
	assert_int_equal(folded_write(&job, &b, NULL), 0);
	assert_has(&b, "task node::rpc::serve;[not ended] 100000000\n");
	assert_has(&b, "tokio::runtime::time::<impl tokio::runtime::time::handle::Handle>::process_at_time;");
	buf_done(&b);
	quality_done(&quality);
	selection_done(&sel);
	profile_free(m.p);
}

/* Polls have the stacks of CPU time and waits below their type, and the sum of each type is the exact one: flush has all of its
 * 100 ms in stacks, the ticks none; the samples of rpc say more than there was, once there are too many of them. */
static void polls_by_their_stacks(void **state)
{
	struct made_tasks m = made_tasks();
	struct selection sel;
	struct export_job job = { .profile = m.p, .selection = &sel, .options.group = CALLTREE_MERGED };
	uint64_t sum = 0, polls = 0;
	struct buf b = { 0 };
	struct all a;

	m.w.s.now_ns = 700 * MS;
	sample_add(&m.w.s, m.worker1, m.serve, 100);
	begin(&a, m.p, (struct select_options){ 0 });
	assert_int_equal(select_event(m.p, "poll", &a.o.event, NULL), 0);
	assert_int_equal(selection_make(m.p, &a.o, &sel, NULL), 0);
	pollstacks_apply(m.p, &sel);
	for (size_t i = 0; i < sel.entries.n; i++) {
		sum += sel.entries.v[i].weight.value;
		polls += sel.entries.v[i].weight.samples;
	}
	assert_int_equal(sum, 1131 * MS);
	assert_int_equal(sel.all.value, 1131 * MS);
	assert_int_equal(polls, 2816);
	assert_int_equal(folded_write(&job, &b, NULL), 0);
	assert_has(&b, "task node::db::flush;node::db::flush::{{closure}};node::db::commit;fdatasync;");
	assert_has(&b, "task node::db::flush;node::db::flush::{{closure}};node::db::encode 25000000\n");
	assert_has(&b, "task node::rpc::serve;node::rpc::serve::{{closure}};node::rpc::answer 100000000\n");
	assert_has(&b, "task node::tick 1000000\n");
	assert_null(strstr(b.data, "task node::db::flush 1"));
	buf_done(&b);
	selection_done(&sel);
	end(&a);
	profile_free(m.p);
}

/* A name from the target is shown without what a terminal obeys. */
static void names_are_cleaned(void **state)
{
	struct made_tasks m = made_tasks();
	struct selection sel = { 0 };
	struct export_job job = { .profile = m.p, .selection = &sel };
	struct buf b = { 0 };

	made_add(&m, m.poll, m.worker1, profile_stack(m.p, 0, profile_named_frame(m.p, PROFILE_NONE, FRAME_USER, "task a\033[31mb")),
		 0, MS, 1);
	section_tasks.text(&job, &b);
	assert_null(strchr(b.data, '\033'));
	buf_done(&b);
	profile_free(m.p);
}

static void nothing_without_tasks(void **state)
{
	struct waiting w = waiting_make();
	struct selection sel = { 0 };
	struct export_job job = { .profile = w.s.p, .selection = &sel };
	struct buf b = { 0 };

	section_tasks.text(&job, &b);
	assert_int_equal(b.n, 0);
	put_members(&b, section_tasks.json(&job, &j));
	assert_string_equal(b.data, "{}");
	buf_done(&b);
	profile_free(w.s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_the_report),
		cmocka_unit_test(in_a_narrow_terminal),
		cmocka_unit_test(for_programs),
		cmocka_unit_test(in_a_block),
		cmocka_unit_test(as_folded_stacks),
		cmocka_unit_test(polls_by_their_stacks),
		cmocka_unit_test(names_are_cleaned),
		cmocka_unit_test(nothing_without_tasks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
