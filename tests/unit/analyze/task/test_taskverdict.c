/* test_taskverdict.c - what the verdict says about async tasks, and when it says nothing. */
#include "test.h"

#include "judged.h"
#include "tasks.h"

static const struct verdict_link *said(const struct verdict *v, const char *text)
{
	for (size_t i = 0; i < v->sentences.n; i++)
		if (strstr(v->sentences.v[i], text))
			return &v->links.v[i];
	for (size_t i = 0; i < v->sentences.n; i++)
		print_error("%s\n", v->sentences.v[i]);
	fail_msg("nobody said: %s", text);
	return NULL;
}

static void the_verdict_names_them(void **state)
{
	struct made_tasks m = made_tasks();
	const struct verdict_link *l;
	struct all a;

	begin(&a, m.p, (struct select_options){ 0 });
	l = said(&a.verdict, "A worker of the async runtime was blocked by task `node::db::flush` 5 times, for 100 ms together and up "
			     "to 20.0 ms: 75 % of that time is fdatasync under `node::db::commit`. Meanwhile tasks lay in the queue 55 "
			     "times, for 209 ms together, most of them `node::rpc::serve`.");
	assert_string_equal(l->what, "wait");
	assert_string_equal(l->function, "node::db::commit");
	assert_string_equal(l->task, "node::db::flush");
	assert_int_equal(l->to_ns - l->from_ns, 20 * MS);
	assert_true(said(&a.verdict, "A poll that waits keeps its worker")->advice);
	l = said(&a.verdict, "Task `node::rpc::serve` starved: it lay in the runtime's queue for 300 ms, 75 % of the time in which it "
			     "could have run, ");
	assert_string_equal(l->what, "taskqueue");
	assert_string_equal(l->function, "task node::rpc::serve");
	said(&a.verdict, " before each poll, mostly behind polls of `node::db::flush`.");
	l = said(&a.verdict, "The channel from task `node::exec::run` to task `node::rpc::serve` is the bottleneck: `node::rpc::serve` "
			     "awaited it for 1.40 s, 56 % of its time, and `node::exec::run` was busy for 94 % of its own.");
	assert_string_equal(l->what, "await");
	end(&a);
	profile_free(m.p);
}

/* Without waits there is no account, and the verdict is about tasks alone. */
static void the_verdict_without_waits(void **state)
{
	struct made_tasks m = made_tasks();
	struct verdict v;

	verdict_make_without_waits(&v, m.p, &(struct select_options){ 0 });
	assert_int_equal(v.sentences.n, 4);
	/* The made-up recording has waits, and nobody says what they mean. */
	said(&v, "`record -e cpu,wait,task` tells what it did.");
	said(&v, "The channel from task");
	verdict_done(&v);
	profile_free(m.p);
}

/* A task that has time left is no bottleneck, and polls that are short and keep nobody waiting are no blockers. */
static void the_verdict_keeps_quiet(void **state)
{
	struct made_tasks m = made_tasks();
	struct all a;

	profile_count_set_of(m.p, KEY_TASK_AWAIT_NS_OF, made_names[TASKS_EXEC], 1000 * MS);
	profile_count_set_of(m.p, KEY_TASK_QUEUE_NS_OF, made_names[TASKS_RPC], 20 * MS);
	vec_clear(&m.p->marks);
	begin(&a, m.p, (struct select_options){ 0 });
	for (size_t i = 0; i < a.verdict.sentences.n; i++) {
		assert_null(strstr(a.verdict.sentences.v[i], "bottleneck"));
		assert_null(strstr(a.verdict.sentences.v[i], "starved"));
		assert_null(strstr(a.verdict.sentences.v[i], "blocked by task"));
	}
	end(&a);
	profile_free(m.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_verdict_names_them),
		cmocka_unit_test(the_verdict_without_waits),
		cmocka_unit_test(the_verdict_keeps_quiet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
