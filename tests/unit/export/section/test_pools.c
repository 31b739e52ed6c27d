/* test_pools.c - what the threads of pools ran: as lines, as JSON, and as roots of a call tree. */
#include "test.h"

#include "analyze/select.h"
#include "analyze/task/poolwork.h"
#include "base/json.h"
#include "export/section/section.h"
#include "exporting.h"
#include "waiting.h"

#define STARTED "l:__clone3;l:start_thread;std::sys::backtrace::__rust_begin_short_backtrace;"
#define POOL STARTED "tokio::runtime::blocking::pool::Inner::run;tokio::runtime::task::raw::poll;"
#define WORKER POOL "tokio::runtime::scheduler::multi_thread::worker::run;"
#define SLEEPS ";l:__futex_abstimed_wait;k:entry_SYSCALL_64_after_hwframe;k:__x64_sys_futex;k:futex_wait_queue;k:schedule"

/* Two workers and a thread of the blocking pool; threads that are called alike, and one that is not. */
static struct waiting make_pools(void)
{
	struct waiting w = waiting_empty();
	struct sample *s = &w.s;
	uint32_t a = builder_thread(s->p, 0, 201, "tokio-rt-worker"), b = builder_thread(s->p, 0, 202, "tokio-rt-worker");
	uint32_t c = builder_thread(s->p, 0, 203, "tokio-rt-worker"), d = builder_thread(s->p, 0, 204, "job-1");
	uint32_t e = builder_thread(s->p, 0, 205, "job-2"), f = builder_thread(s->p, 0, 206, "watcher");
	uint32_t serve = sample_stack(s, WORKER "tokio::runtime::task::raw::poll;app::serve::{{closure}};app::handle");

	sample_add(s, a, serve, 30);
	sample_add(s, b, serve, 30);
	sample_add(s, b, sample_stack(s, WORKER "tokio::runtime::task::raw::poll;<app::Node<N> as core::future::future::Future>::poll"), 20);
	sample_add(s, b, sample_stack(s, WORKER "tokio::runtime::time::Driver::park"), 5);
	sample_add(s, c, sample_stack(s, POOL "app::read::{{closure}}"), 10);
	sample_add(s, d, sample_stack(s, STARTED "app::index::{{closure}}"), 3);
	sample_add(s, e, sample_stack(s, STARTED "app::index::{{closure}}"), 2);
	sample_add(s, f, sample_stack(s, STARTED "app::watch::{{closure}}"), 50);
	sample_add(s, s->main, sample_stack(s, "_start;main;app::main"), 50);
	waiting_add(&w, w.wait, a, sample_stack(s, WORKER "tokio::runtime::task::raw::poll;app::serve::{{closure}};"
			"parking_lot::raw_mutex::RawMutex::lock_slow" SLEEPS), 0, 7 * MS, 3);
	waiting_add(&w, w.queue, a, serve, 0, 2 * MS, 1);
	return w;
}

static struct buf lines_of(const struct profile *p, struct export_options o)
{
	struct selection selection;
	struct patterns patterns = { 0 };
	struct causes causes;
	struct buf out = { 0 };

	patterns_init(&patterns);
	patterns_add_builtin(&patterns);
	causes_init(&causes, p, &patterns);
	assert_int_equal(selection_make(p, &(struct select_options){ .causes = &causes }, &selection, NULL), 0);
	section_pools.text(&(struct export_job){ .profile = p, .selection = &selection, .options = o }, &out);
	buf_add(&out, "", 0);
	selection_done(&selection);
	causes_done(&causes);
	patterns_done(&patterns);
	return out;
}

static void units_have_their_time(void **state)
{
	struct waiting w = make_pools();
	_cleanup_(buf_done) struct buf all = lines_of(w.s.p, (struct export_options){ 0 });
	static const unsigned widths[] = { 120, 80, 72, 60, 46 };

	assert_string_equal(all.data,
		"\nWhat the threads of pools ran, % of 100 ms on CPU\n"
		"          on CPU    queue     lock     disk    other  unit of work\n"
		" 85.0 %  85.0 ms  2.00 ms  7.00 ms        -        -  tokio: 2 threads, tokio-rt-worker\n"
		" 60.0 %  60.0 ms  2.00 ms  7.00 ms        -        -    app::serve\n"
		" 20.0 %  20.0 ms        -        -        -        -    app::Node\n"
		"  5.0 %  5.00 ms        -        -        -        -    [runtime]\n"
		" 10.0 %  10.0 ms        -        -        -        -  tokio blocking: 1 thread, tokio-rt-worker\n"
		" 10.0 %  10.0 ms        -        -        -        -    app::read\n"
		"  5.0 %  5.00 ms        -        -        -        -  threads: 2 threads, job-*\n"
		"  5.0 %  5.00 ms        -        -        -        -    app::index\n");
	for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
		_cleanup_(buf_done) struct buf cut = lines_of(w.s.p, (struct export_options){ .columns = widths[i], .limit = 1 });

		assert_non_null(strstr(cut.data, "    and 2 more\n"));
		assert_non_null(strstr(cut.data, widths[i] < 72 ? "9.00 ms    app::serve\n" : "7.00 ms        -        -    app::serve\n"));
		for (const char *s = cut.data; *s; s += strcspn(s, "\n") + 1)
			assert_true(strcspn(s, "\n") <= MAX(widths[i], 49u)); /* the title */
	}
	profile_free(w.s.p);
}

static void threads_can_be_chosen(void **state)
{
	struct waiting w = make_pools();
	static const char *const threads[] = { "job*", NULL };
	struct poolwork work;

	assert_true(poolwork_make(&work, w.s.p, &(struct select_options){ .threads = threads }));
	assert_int_equal(work.pools.n, 1);
	assert_int_equal(work.rows.n, 1);
	assert_int_equal(work.cpu_ns, 5 * MS);
	assert_int_equal(work.named_ns, 5 * MS);
	assert_int_equal(work.rows.v[0].threads, 2);
	poolwork_done(&work);
	profile_free(w.s.p);
}

static void as_json(void **state)
{
	struct waiting w = make_pools();
	_cleanup_(buf_done) struct buf out = export_all(w.s.p, "json", (struct export_options){ 0 });

	assert_non_null(strstr(out.data, "\"pool_work\":{\"cpu_ns\":100000000,\"named_cpu_ns\":95000000,"));
	assert_non_null(strstr(out.data, "{\"kind\":\"task\",\"name\":\"app::serve\",\"named\":true,\"threads\":2,\"samples\":60,\"waits\":3,"
			"\"cpu_ns\":60000000,\"queue_ns\":2000000,"));
	assert_non_null(strstr(out.data, "{\"kind\":\"runtime\",\"name\":\"[runtime]\",\"named\":false,"));
	profile_free(w.s.p);
}

/* A root for each unit, with the stack from there on; stacks of no unit stay below their thread. */
static void as_roots(void **state)
{
	struct waiting w = make_pools();
	_cleanup_(buf_done) struct buf out = export_all(w.s.p, "folded", (struct export_options){ .group = CALLTREE_BY_TASK });
	_cleanup_(buf_done) struct buf up = export_all(w.s.p, "folded", (struct export_options){ .group = CALLTREE_BY_TASK, .reverse = true });

	assert_string_equal(out.data,
		"blocking app::read;app::read::{{closure}} 10\n"
		"main;_start;main;app::main 50\n"
		"runtime tokio;tokio::runtime::scheduler::multi_thread::worker::run;tokio::runtime::time::Driver::park 5\n"
		"task app::Node;<app::Node<N> as core::future::future::Future>::poll 20\n"
		"task app::serve;app::serve::{{closure}};app::handle 60\n"
		"thread app::index;app::index::{{closure}} 5\n"
		"thread app::watch;app::watch::{{closure}} 50\n");
	assert_non_null(strstr(up.data, "app::handle;app::serve::{{closure}};task app::serve 60\n"));
	profile_free(w.s.p);
}

/* A program without a pool has no such section. */
static void no_pool_no_lines(void **state)
{
	struct sample s = sample_make();
	_cleanup_(buf_done) struct buf out = lines_of(s.p, (struct export_options){ 0 });

	assert_string_equal(out.data, "");
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_have_their_time),
		cmocka_unit_test(threads_can_be_chosen),
		cmocka_unit_test(as_json),
		cmocka_unit_test(as_roots),
		cmocka_unit_test(no_pool_no_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
