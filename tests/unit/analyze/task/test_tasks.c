/* test_tasks.c - types of tasks, long polls and chains of a profile whose figures are known (tasks.h). */
#include "test.h"

#include "analyze/select.h"
#include "analyze/task/blockers.h"
#include "analyze/task/taskchains.h"
#include "analyze/task/taskhealth.h"
#include "analyze/task/tasks.h"
#include "judged.h"
#include "tasks.h"

static const struct tasks_type *type_of(const struct tasks *t, enum tasks_types which)
{
	uint32_t i = tasks_find(t, made_names[which]);

	assert_int_not_equal(i, TASKS_NONE);
	return &t->types.v[i];
}

static void each_type_has_its_sums(void **state)
{
	struct made_tasks m = made_tasks();
	const struct tasks_type *y;
	struct tasks t;

	assert_true(tasks_make(&t, m.p, &(struct select_options){ 0 }, 0));
	assert_true(t.counted);
	assert_int_equal(t.types.n, TASKS_TYPES);
	assert_int_equal(t.seen, 7);
	assert_int_equal(t.spawned, 3);
	assert_int_equal(t.alive, 5);
	assert_int_equal(t.polls, 2816);
	assert_int_equal(t.poll_ns, 1131 * MS);
	assert_int_equal(t.queue_ns, 351 * MS);
	assert_int_equal(t.await_ns, 4050 * MS);
	assert_int_equal(t.workers, 3);
	assert_int_equal(t.version, 1043000);
	/* By polled and queued time. */
	assert_string_equal(t.types.v[0].name, "node::exec::run");
	assert_string_equal(t.types.v[1].name, "node::rpc::serve");
	assert_string_equal(t.types.v[4].name, "node::tick");
	y = type_of(&t, TASKS_RPC);
	assert_int_equal(y->seen, 3);
	assert_int_equal(y->finished, 1);
	assert_int_equal(y->alive, 2);
	assert_int_equal(y->polls, 1000);
	assert_int_equal(y->longest_ns, 8 * MS / 10);
	assert_int_equal(tasks_wall_ns(y), 2500 * MS);
	assert_int_equal(y->not_ended_ns, 100 * MS);
	assert_int_equal(y->longest_queue_ns, 5 * MS);
	assert_false(y->blocking);
	assert_true(type_of(&t, TASKS_READ)->blocking);
	y = type_of(&t, TASKS_FLUSH);
	assert_int_equal(y->long_polls, 5);
	assert_int_equal(y->longest_ns, 20 * MS);
	assert_int_equal(tasks_find(&t, "node::none"), TASKS_NONE);
	tasks_done(&t);
	profile_free(m.p);
}

static void wakers_are_told_apart(void **state)
{
	struct made_tasks m = made_tasks();
	const struct tasks_waker *w;
	const struct tasks_type *y;
	struct tasks t;

	assert_true(tasks_make(&t, m.p, &(struct select_options){ 0 }, 0));
	y = type_of(&t, TASKS_RPC);
	assert_int_equal(y->wakers.n, 3);
	w = &y->wakers.v[0];
	assert_int_equal(w->kind, WAKEKIND_CHANNEL);
	assert_string_equal(w->function, "node::exec::publish");
	assert_ptr_equal(&t.types.v[w->type], type_of(&t, TASKS_EXEC));
	assert_int_equal(w->thread, m.worker1);
	assert_int_equal(w->ns, 1400 * MS);
	assert_int_equal(w->count, 700);
	assert_int_equal(w->longest_ns, 50 * MS);
	w = &y->wakers.v[1];
	assert_int_equal(w->kind, WAKEKIND_JOIN);
	assert_ptr_equal(&t.types.v[w->type], type_of(&t, TASKS_READ));
	assert_int_equal(w->thread, m.pool);
	assert_int_equal(w->ns, 470 * MS);
	assert_int_equal(y->wakers.v[2].kind, WAKEKIND_IO);
	assert_int_equal(y->wakers.v[2].type, TASKS_NONE);
	assert_string_equal(y->wakers.v[2].function, "");
	y = type_of(&t, TASKS_TICK);
	assert_int_equal(y->wakers.n, 1);
	assert_int_equal(y->wakers.v[0].kind, WAKEKIND_TIMER);
	assert_int_equal(y->not_ended_ns, 90 * MS);
	tasks_done(&t);
	profile_free(m.p);
}

static void queues_and_places(void **state)
{
	struct made_tasks m = made_tasks();
	const struct tasks_type *y;
	struct tasks t;

	assert_true(tasks_make(&t, m.p, &(struct select_options){ 0 }, 0));
	y = type_of(&t, TASKS_RPC);
	assert_int_equal(y->behind.n, 3);
	assert_ptr_equal(&t.types.v[y->behind.v[0].type], type_of(&t, TASKS_FLUSH));
	assert_int_equal(y->behind.v[0].ns, 200 * MS);
	assert_int_equal(y->behind.v[0].count, 50);
	assert_int_equal(y->behind.v[1].ns, 80 * MS);
	assert_int_equal(y->behind.v[2].type, TASKS_NONE);
	assert_int_equal(y->places.n, 1);
	assert_string_equal(y->places.v[0].function, "node::rpc::accept");
	assert_int_equal(y->places.v[0].count, 2);
	y = type_of(&t, TASKS_READ);
	assert_string_equal(y->places.v[0].function, "node::rpc::serve::{{closure}}");
	tasks_done(&t);
	profile_free(m.p);
}

/* What polls did, by the stacks of their threads. */
static void polls_are_split(void **state)
{
	struct made_tasks m = made_tasks();
	struct tasks t;
	struct all a;

	begin(&a, m.p, (struct select_options){ 0 });
	assert_true(tasks_make(&t, m.p, &a.o, 0));
	assert_int_equal(type_of(&t, TASKS_EXEC)->by_cause[CAUSE_CPU], 900 * MS);
	assert_int_equal(type_of(&t, TASKS_FLUSH)->by_cause[CAUSE_CPU], 25 * MS);
	assert_int_equal(type_of(&t, TASKS_FLUSH)->by_cause[CAUSE_DISK_WRITE], 75 * MS);
	assert_int_equal(type_of(&t, TASKS_READ)->by_cause[CAUSE_DISK_READ], 28 * MS);
	tasks_done(&t);
	a.o.from_ns = 120 * MS;
	a.o.to_ns = 200 * MS;
	assert_true(tasks_make(&t, m.p, &a.o, 0));
	assert_int_equal(type_of(&t, TASKS_FLUSH)->by_cause[CAUSE_DISK_WRITE], 10 * MS);
	tasks_done(&t);
	end(&a);
	profile_free(m.p);
}

/* Within a range, of a thread and in a window the samples count, as the counters are of all. */
static void parts_are_summed_from_samples(void **state)
{
	struct made_tasks m = made_tasks();
	const char *const worker[] = { "122", NULL };
	struct tasks t;

	assert_true(tasks_make(&t, m.p, &(struct select_options){ .from_ns = 100 * MS, .to_ns = 200 * MS }, 0));
	assert_false(t.counted);
	assert_int_equal(t.duration_ns, 100 * MS);
	assert_int_equal(type_of(&t, TASKS_EXEC)->polls, 200);
	assert_int_equal(type_of(&t, TASKS_EXEC)->poll_ns, 100 * MS);
	assert_int_equal(type_of(&t, TASKS_FLUSH)->polls, 1);
	assert_int_equal(type_of(&t, TASKS_FLUSH)->longest_ns, 20 * MS);
	assert_int_equal(type_of(&t, TASKS_FLUSH)->long_polls, 1);
	assert_int_equal(type_of(&t, TASKS_RPC)->queue_ns, 48 * MS);
	assert_int_equal(type_of(&t, TASKS_RPC)->await_ns, 100 * MS);
	assert_int_equal(type_of(&t, TASKS_READ)->polls, 0);
	tasks_done(&t);

	assert_true(tasks_make(&t, m.p, &(struct select_options){ .threads = worker }, 0));
	assert_int_equal(type_of(&t, TASKS_EXEC)->polls, 0);
	assert_int_equal(type_of(&t, TASKS_RPC)->poll_ns, 100 * MS);
	assert_int_equal(t.workers, 1);
	tasks_done(&t);

	profile_count_set_of(m.p, KEY_TASK_POLLS_OF, "node::exec::run", 5000);
	assert_true(tasks_make(&t, m.p, &(struct select_options){ 0 }, TASKS_WINDOW));
	assert_int_equal(type_of(&t, TASKS_EXEC)->polls, 1800);
	assert_int_equal(type_of(&t, TASKS_EXEC)->alive, 1);
	tasks_done(&t);
	profile_free(m.p);
}

static void nothing_without_tasks(void **state)
{
	struct waiting w = waiting_make();
	struct tasks t;

	assert_false(tasks_make(&t, w.s.p, &(struct select_options){ 0 }, 0));
	tasks_done(&t);
	profile_free(w.s.p);
}

/* --- long polls --- */

static void long_polls_are_explained(void **state)
{
	struct made_tasks m = made_tasks();
	const struct blockers_row *r;
	struct blockers b;
	struct tasks t;
	struct all a;

	begin(&a, m.p, (struct select_options){ 0 });
	assert_true(tasks_make(&t, m.p, &a.o, 0));
	blockers_make(&b, m.p, &a.o, &t);
	assert_true(b.waits);
	assert_int_equal(b.polls.n, 5);
	assert_int_equal(b.rows.n, 1);
	assert_int_equal(b.ns, 100 * MS);
	assert_int_equal(b.least_ns, MS);
	r = &b.rows.v[0];
	assert_ptr_equal(&t.types.v[r->type], type_of(&t, TASKS_FLUSH));
	assert_string_equal(r->function, "node::db::commit");
	assert_string_equal(r->operation, "fdatasync");
	assert_int_equal(r->cause, CAUSE_DISK_WRITE);
	assert_int_equal(r->count, 5);
	assert_int_equal(r->by_cause[CAUSE_DISK_WRITE], 75 * MS);
	assert_int_equal(r->by_cause[CAUSE_CPU], 25 * MS);
	assert_int_equal(r->queued, 55);
	assert_int_equal(r->queued_ns, 209 * MS);
	assert_int_equal(r->victims.n, 2);
	assert_ptr_equal(&t.types.v[r->victims.v[0].type], type_of(&t, TASKS_RPC));
	assert_int_equal(r->victims.v[0].ns, 200 * MS);
	assert_int_equal(r->victims.v[1].count, 5);
	assert_int_equal(b.polls.v[r->longest].end_ns - b.polls.v[r->longest].start_ns, 20 * MS);
	for (size_t i = 0; i < b.polls.n; i++) {
		assert_int_equal(b.polls.v[i].row, 0);
		assert_int_equal(b.polls.v[i].queued, 11);
		assert_int_equal(b.polls.v[i].thread, m.worker2);
	}
	blockers_done(&b);
	tasks_done(&t);
	end(&a);
	profile_free(m.p);
}

/* Two places of one type are two rows; the longer one is first, and a poll without any sample was on the CPU. */
static void long_polls_are_told_apart(void **state)
{
	struct made_tasks m = made_tasks();
	struct blockers b;
	struct tasks t;
	struct all a;

	profile_add_mark(m.p, &(struct profile_mark){ .start_ns = 20 * MS, .end_ns = 22 * MS, .thread = m.pool,
						      .name = profile_string(m.p, made_names[TASKS_FLUSH]),
						      .kind = profile_string(m.p, "long poll") });
	profile_add_mark(m.p, &(struct profile_mark){ .start_ns = 0, .end_ns = 300 * MS, .thread = m.worker1,
						      .name = profile_string(m.p, made_names[TASKS_EXEC]),
						      .kind = profile_string(m.p, "long poll") });
	/* A job of the pool for blocking calls blocks no worker. */
	profile_add_mark(m.p, &(struct profile_mark){ .start_ns = 300 * MS, .end_ns = 330 * MS, .thread = m.pool,
						      .name = profile_string(m.p, made_names[TASKS_READ]),
						      .kind = profile_string(m.p, "long poll") });
	begin(&a, m.p, (struct select_options){ 0 });
	assert_true(tasks_make(&t, m.p, &a.o, 0));
	blockers_make(&b, m.p, &a.o, &t);
	assert_int_equal(b.rows.n, 3);
	assert_string_equal(b.rows.v[0].function, "node::exec::execute");
	assert_int_equal(b.rows.v[0].cause, CAUSE_CPU);
	assert_int_equal(b.rows.v[0].by_cause[CAUSE_CPU], 300 * MS);
	assert_int_equal(b.polls.v[0].row, 0);
	assert_string_equal(b.rows.v[1].function, "node::db::commit");
	assert_string_equal(b.rows.v[2].function, "");
	assert_int_equal(b.rows.v[2].by_cause[CAUSE_CPU], 2 * MS);
	assert_int_equal(b.polls.v[b.rows.v[2].longest].row, 2);
	/* Of a range only its own. */
	blockers_done(&b);
	a.o.from_ns = 500 * MS;
	blockers_make(&b, m.p, &a.o, &t);
	assert_int_equal(b.polls.n, 3);
	assert_int_equal(b.queued, 33);
	blockers_done(&b);
	tasks_done(&t);
	end(&a);
	profile_free(m.p);
}

/* Functions of a dependency are one blocker: that of the program's own code which calls them. */
static void long_polls_are_of_own_code(void **state)
{
	struct made_tasks m = made_tasks();
	struct sample *s = &m.w.s;
	struct blockers b;
	struct tasks t;
	struct all a;

	vec_clear(&m.p->marks);
	for (unsigned i = 0; i < 2; i++) {
		s->now_ns = (695 + 10 * i) * MS;
		sample_add(s, m.worker2, sample_stack(s, TASKS_POLL ";node::rpc::serve::{{closure}};node::rpc::check;k256::lincomb;k256::%s",
						      i ? "double" : "add"), 4 - i);
		profile_add_mark(m.p, &(struct profile_mark){ .start_ns = (695 + 10 * i) * MS, .end_ns = (699 + 9 * i) * MS,
							      .thread = m.worker2, .name = profile_string(m.p, made_names[TASKS_RPC]),
							      .kind = profile_string(m.p, "long poll") });
	}
	begin(&a, m.p, (struct select_options){ 0 });
	assert_true(tasks_make(&t, m.p, &a.o, 0));
	blockers_make(&b, m.p, &a.o, &t);
	assert_int_equal(b.rows.n, 1);
	assert_string_equal(b.rows.v[0].function, "node::rpc::check");
	assert_string_equal(b.rows.v[0].leaf, "k256::add");
	assert_int_equal(b.rows.v[0].ns, 7 * MS);
	assert_int_equal(b.rows.v[0].by_cause[CAUSE_CPU], 7 * MS);
	blockers_done(&b);
	tasks_done(&t);
	end(&a);
	profile_free(m.p);
}

/* A thread that lost its CPU in a short poll is nobody's fault; in a long one it is told beside what the poll did. */
static void polls_without_a_cpu(void **state)
{
	struct made_tasks m = made_tasks();
	struct blockers b;
	struct tasks t;
	struct all a;

	vec_clear(&m.p->marks);
	for (unsigned i = 0; i < 2; i++)
		profile_add_mark(m.p, &(struct profile_mark){ .start_ns = (600 + 20 * i) * MS, .end_ns = (609 + 20 * i) * MS,
							      .thread = m.worker2, .name = profile_string(m.p, made_names[TASKS_RPC]),
							      .kind = profile_string(m.p, "long poll") });
	/* 8.5 of 9 ms; then 4 of 9 ms. The sum of short waits of the runtime is not the poll's. */
	waiting_add(&m.w, m.w.queue, m.worker2, m.serve, 600 * MS, 17 * MS / 2, 1);
	waiting_add(&m.w, m.w.queue, m.worker2, m.serve, 620 * MS, 4 * MS, 1);
	waiting_add(&m.w, m.w.wait, m.worker2, m.w.park, 620 * MS, 5 * MS, 100);
	begin(&a, m.p, (struct select_options){ 0 });
	assert_true(tasks_make(&t, m.p, &a.o, 0));
	blockers_make(&b, m.p, &a.o, &t);
	assert_int_equal(b.rows.n, 2);
	assert_int_equal(b.rows.v[0].ns, 9 * MS);
	for (size_t i = 0; i < 2; i++) {
		const struct blockers_row *r = &b.rows.v[i];

		if (r->cause == CAUSE_QUEUE) {
			assert_string_equal(r->function, "");
			assert_int_equal(r->by_cause[CAUSE_QUEUE], 17 * MS / 2);
		} else {
			assert_string_equal(r->function, "node::rpc::answer");
			assert_int_equal(r->cause, CAUSE_CPU);
			assert_int_equal(r->by_cause[CAUSE_QUEUE], 4 * MS);
			assert_int_equal(r->by_cause[CAUSE_CPU], 5 * MS);
		}
	}
	assert_int_not_equal(b.rows.v[0].cause, b.rows.v[1].cause);
	for (size_t i = 0; i < a.verdict.sentences.n; i++)
		assert_null(strstr(a.verdict.sentences.v[i], "blocked by task"));
	blockers_done(&b);
	tasks_done(&t);
	end(&a);
	profile_free(m.p);
}

/* --- chains --- */

static void chains_are_followed(void **state)
{
	struct made_tasks m = made_tasks();
	const struct taskchain *x;
	struct taskchains c;
	struct tasks t;
	struct all a;

	begin(&a, m.p, (struct select_options){ 0 });
	assert_true(tasks_make(&t, m.p, &a.o, 0));
	taskchains_make(&c, m.p, &a.o, &t);
	assert_int_equal(c.list.n, 3);
	/* Task 2 awaited exec, which computed. */
	x = &c.list.v[0];
	assert_int_equal(x->ns, 50 * MS);
	assert_int_equal(x->link_count, 1);
	assert_ptr_equal(&t.types.v[x->end_type], type_of(&t, TASKS_EXEC));
	assert_int_equal(x->end_cause, CAUSE_CPU);
	/* Task 3 awaited the read, which waited for the disk. */
	x = &c.list.v[1];
	assert_int_equal(x->ns, 32 * MS);
	assert_int_equal(x->link_count, 1);
	assert_int_equal(x->links[0].kind, WAKEKIND_JOIN);
	assert_int_equal(x->end_cause, CAUSE_DISK_READ);
	/* And task 1 awaited task 3. */
	x = &c.list.v[2];
	assert_int_equal(x->ns, 30 * MS);
	assert_int_equal(x->link_count, 2);
	assert_int_equal(x->links[0].kind, WAKEKIND_CHANNEL);
	assert_string_equal(x->links[0].function, "node::rpc::share");
	assert_int_equal(x->links[1].kind, WAKEKIND_JOIN);
	assert_ptr_equal(&t.types.v[x->end_type], type_of(&t, TASKS_READ));
	assert_int_equal(x->end_thread, m.pool);
	assert_int_equal(x->end_cause, CAUSE_DISK_READ);
	assert_string_equal(x->end_function, "node::db::load");
	taskchains_done(&c);
	tasks_done(&t);
	end(&a);
	profile_free(m.p);
}

/* Two tasks that wake each other are followed as far as their awaits reach back, and no further. */
static void chains_end(void **state)
{
	struct made_tasks m = made_tasks();
	struct taskchains c;
	struct tasks t;

	vec_clear(&m.p->taskwakes);
	for (uint32_t i = 1; i < 100; i++)
		made_wake(&m, TASKS_RPC, 1 + i % 2, 5 * i, 500, 0, m.worker2, TASKS_RPC, 2 - i % 2, m.by_task);
	assert_true(tasks_make(&t, m.p, &(struct select_options){ 0 }, 0));
	taskchains_make(&c, m.p, &(struct select_options){ 0 }, &t);
	assert_true(c.list.n > 0);
	for (size_t i = 0; i < c.list.n; i++)
		assert_in_range(c.list.v[i].link_count, 1, TASKCHAINS_LINKS);
	taskchains_done(&c);
	tasks_done(&t);
	profile_free(m.p);
}

/* --- health --- */

static void health_is_measured(void **state)
{
	struct made_tasks m = made_tasks();
	struct taskhealth h;

	assert_true(taskhealth_make(&h, m.p, &(struct select_options){ 0 }));
	assert_float_equal(h.queue.mean, 1.3, 1e-6);
	assert_float_equal(h.queue.most, 4, 1e-6);
	assert_int_equal(h.queue.most_at_ns, 110 * MS);
	assert_float_equal(h.busy.mean, 1.1, 1e-6);
	assert_float_equal(h.polls.mean, 2800, 1e-3);
	assert_int_equal(h.longest_poll_ns, 20 * MS);
	assert_int_equal(h.poll.count, 2816);
	assert_in_range(h.poll.p50_ns, 1 << 18, 1 << 19);
	assert_true(taskhealth_make(&h, m.p, &(struct select_options){ .from_ns = 0, .to_ns = 100 * MS }));
	assert_float_equal(h.queue.most, 1, 1e-6);
	profile_free(m.p);
}

/* --- kinds of wake-ups --- */

static void kinds_by_stack(void **state)
{
	static const struct {
		const char *stack;
		enum wakekind kind;
		const char *function;
	} cases[] = {
		{ "node::main;tokio::runtime::io::driver::Driver::turn;" TASKS_WAKE, WAKEKIND_IO, "" },
		{ "node::f;tokio::time::timeout::Timeout<T>::poll;node::g;" TASKS_WAKE, WAKEKIND_OTHER, "node::g" },
		{ "node::f;tokio::sync::mpsc::unbounded::UnboundedSender<T>::send;" TASKS_WAKE, WAKEKIND_CHANNEL, "node::f" },
		{ "node::f;tokio::sync::mpsc::chan::Rx<T,S>::recv;tokio::sync::batch_semaphore::Semaphore::add_permits_locked;" TASKS_WAKE,
		  WAKEKIND_ROOM, "node::f" },
		{ "node::f;tokio::sync::batch_semaphore::Semaphore::add_permits_locked;tokio::util::wake_list::WakeList::wake_all;" TASKS_WAKE,
		  WAKEKIND_LOCK, "node::f" },
		{ "node::f;tokio::sync::oneshot::Sender<T>::send;core::task::wake::Waker::wake_by_ref;" TASKS_WAKE, WAKEKIND_ONESHOT,
		  "node::f" },
		{ "node::f;futures_channel::mpsc::queue::Queue<T>::push;futures_task::waker::wake_arc_raw;" TASKS_WAKE, WAKEKIND_CHANNEL,
		  "node::f" },
		{ "node::f;hyper::client::dispatch::go;" TASKS_WAKE, WAKEKIND_OTHER, "node::f" },
		{ "tokio::runtime::task::raw::poll;hyper::client::dispatch::go;" TASKS_WAKE, WAKEKIND_OTHER, "hyper::client::dispatch::go" },
		{ "tokio::runtime::scheduler::defer::Defer::wake;" TASKS_WAKE, WAKEKIND_YIELD, "" },
		{ "start_thread;" TASKS_WORKER ";tokio::runtime::scheduler::multi_thread::worker::Context::park_internal;" TASKS_WAKE,
		  WAKEKIND_DRIVER, "" },
		{ "clone3;start_thread;tokio::runtime::task::raw::poll;" TASKS_WAKE, WAKEKIND_OTHER, "" },
		{ "node::f;tokio::sync::watch::big_notify::BigNotify::notify_waiters;" TASKS_WAKE, WAKEKIND_NOTIFY, "node::f" },
		{ "node::f;i:tokio::sync::mpsc::unbounded::UnboundedSender<T>::send;i:core::task::wake::Waker::wake;" TASKS_WAKE,
		  WAKEKIND_CHANNEL, "node::f" },
	};
	struct sample s = sample_empty();

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *function = NULL;

		assert_int_equal(wakekind_of_stack(s.p, sample_stack(&s, "%s", cases[i].stack), 0, &function), cases[i].kind);
		assert_string_equal(function, cases[i].function);
	}
	assert_int_equal(wakekind_of_stack(s.p, 0, 0, NULL), WAKEKIND_OTHER);
	for (int i = 0; i < WAKEKIND_COUNT; i++)
		assert_true(*wakekind_key(i) && *wakekind_name(i));
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_type_has_its_sums),
		cmocka_unit_test(wakers_are_told_apart),
		cmocka_unit_test(queues_and_places),
		cmocka_unit_test(polls_are_split),
		cmocka_unit_test(parts_are_summed_from_samples),
		cmocka_unit_test(nothing_without_tasks),
		cmocka_unit_test(long_polls_are_explained),
		cmocka_unit_test(long_polls_are_told_apart),
		cmocka_unit_test(long_polls_are_of_own_code),
		cmocka_unit_test(polls_without_a_cpu),
		cmocka_unit_test(chains_are_followed),
		cmocka_unit_test(chains_end),
		cmocka_unit_test(health_is_measured),
		cmocka_unit_test(kinds_by_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
