/*
 * tasks.h - a profile of async tasks whose figures are known: what `record -e cpu,wait,task` would write in one second.
 *
 *	type               tasks          polls   polled   queued   awaited   woken by
 *	node::exec::run    1               1,800   900 ms    40 ms     60 ms   I/O
 *	node::rpc::serve   3, 1 finished   1,000   100 ms   300 ms  2,100 ms   messages of exec 1,400 ms, a join of read 470 ms,
 *	                                                                       I/O 130 ms; 100 ms not ended
 *	node::db::flush    1                   5   100 ms     0 ms    900 ms   a timer 830 ms; 70 ms not ended
 *	node::db::read     1, finished         1    30 ms     2 ms      0 ms   (in the blocking pool)
 *	node::tick         1                  10     1 ms     9 ms    990 ms   a timer 900 ms; 90 ms not ended
 *
 * exec runs on worker 1 and the others on worker 2. Each of the five polls of flush takes 20 ms, from 110 + 200 i ms on:
 * 5 ms on the CPU in node::db::encode, then 15 ms in fdatasync below node::db::commit; meanwhile tasks of rpc lie in the
 * queue ten times for 4 ms, and a tick for 1.8 ms.
 *
 * A block lasts from 305 to 340 ms. Task 1 of rpc awaited a message of task 3 from 305 to 335 ms and was polled from 336 ms
 * on; task 3 awaited the read (task 8) from 298 to 330 ms and was polled from 331 ms on; the read waited for the disk from
 * 300 to 328 ms. So 23 ms of the block are the disk, 2 ms the runtime's queue and 10 ms the CPU.
 */
#pragma once

#include "profile/keys.h"
#include "waiting.h"

#define TASKS_WORKER                                                                                                     \
	"clone3;start_thread;std::sys::unix::thread::Thread::new::thread_start;tokio::runtime::blocking::pool::Inner::run;" \
	"tokio::runtime::scheduler::multi_thread::worker::run;"                                                           \
	"tokio::runtime::scheduler::multi_thread::worker::Context::run"
#define TASKS_POLL                                                                                                       \
	TASKS_WORKER ";tokio::runtime::scheduler::multi_thread::worker::Context::run_task;tokio::runtime::task::raw::poll"
#define TASKS_BLOCKING                                                                                                   \
	"clone3;start_thread;std::sys::unix::thread::Thread::new::thread_start;tokio::runtime::blocking::pool::Inner::run;" \
	"tokio::runtime::task::raw::poll;<tokio::runtime::blocking::task::BlockingTask<T> as core::future::future::Future>::poll"
#define TASKS_WAKE "tokio::runtime::task::waker::wake_by_val;tokio::runtime::task::raw::schedule"

enum tasks_types { TASKS_EXEC, TASKS_RPC, TASKS_FLUSH, TASKS_READ, TASKS_TICK, TASKS_TYPES };

struct made_tasks {
	struct waiting w;
	struct profile *p;                      /* the same as that of w */
	uint32_t poll, await, queue, spawn;     /* events */
	uint32_t worker1, worker2, pool;        /* threads */
	uint32_t type[TASKS_TYPES];             /* stacks of one frame */
	uint32_t by_exec, by_task, by_join, by_io, by_timer; /* stacks of wakers */
	uint32_t exec, serve, encode, commit, load; /* stacks of polls: on the CPU, and of waits */
};

static const char *const made_names[TASKS_TYPES] = {
	[TASKS_EXEC] = "node::exec::run", [TASKS_RPC] = "node::rpc::serve", [TASKS_FLUSH] = "node::db::flush",
	[TASKS_READ] = "node::db::read",  [TASKS_TICK] = "node::tick",
};

static inline uint32_t made_frame(struct profile *p, enum tasks_types type)
{
	char name[64];

	snprintf(name, sizeof(name), "task %s", made_names[type]);
	return profile_named_frame(p, PROFILE_NONE, FRAME_USER, name);
}

/* The frames of a stack below another one. */
static inline uint32_t made_below(struct profile *p, uint32_t parent, uint32_t stack)
{
	if (!stack)
		return parent;
	parent = made_below(p, parent, p->stacks.v[stack].parent);
	return profile_stack(p, parent, p->stacks.v[stack].frame);
}

static inline void made_add(struct made_tasks *m, uint32_t event, uint32_t thread, uint32_t stack, uint64_t at_ns,
			    uint64_t ns, uint32_t count)
{
	waiting_add(&m->w, event, thread, stack, at_ns, ns, count);
}

static inline void made_stacks(struct made_tasks *m)
{
	struct sample *s = &m->w.s;

	for (int i = 0; i < TASKS_TYPES; i++)
		m->type[i] = profile_stack(m->p, 0, made_frame(m->p, i));
	m->exec = sample_stack(s, TASKS_POLL ";node::exec::run::{{closure}};node::exec::execute");
	m->serve = sample_stack(s, TASKS_POLL ";node::rpc::serve::{{closure}};node::rpc::answer");
	m->encode = sample_stack(s, TASKS_POLL ";node::db::flush::{{closure}};node::db::encode");
	m->commit = sample_stack(s, TASKS_POLL ";node::db::flush::{{closure}};node::db::commit;fdatasync;k:do_syscall_64;"
					       "k:__x64_sys_fdatasync;k:ext4_sync_file;k:jbd2_log_wait_commit;k:schedule");
	m->load = sample_stack(s, TASKS_BLOCKING ";node::db::read::{{closure}};node::db::load;pread64;k:do_syscall_64;"
						 "k:__x64_sys_pread64;k:ext4_file_read_iter;k:filemap_read;k:folio_wait_bit_common;"
						 "k:io_schedule;k:schedule");
	m->by_exec = sample_stack(s, TASKS_POLL ";node::exec::run::{{closure}};node::exec::publish;"
						"tokio::sync::mpsc::chan::Tx<T,S>::send;tokio::sync::task::atomic_waker::AtomicWaker::wake;"
						TASKS_WAKE);
	m->by_task = sample_stack(s, TASKS_POLL ";node::rpc::serve::{{closure}};node::rpc::share;"
						"tokio::sync::mpsc::chan::Tx<T,S>::send;" TASKS_WAKE);
	m->by_join = sample_stack(s, "clone3;start_thread;std::sys::unix::thread::Thread::new::thread_start;"
				     "tokio::runtime::blocking::pool::Inner::run;tokio::runtime::task::raw::poll;"
				     "tokio::runtime::task::harness::Harness<T,S>::complete;"
				     "tokio::runtime::task::core::Trailer::wake_join;" TASKS_WAKE);
	m->by_io = sample_stack(s, TASKS_WORKER ";tokio::runtime::scheduler::multi_thread::worker::Context::park_timeout;"
						"tokio::runtime::driver::Driver::park_timeout;tokio::runtime::io::driver::Driver::turn;"
						"tokio::runtime::io::scheduled_io::ScheduledIo::wake;tokio::util::wake_list::WakeList::wake_all;"
						TASKS_WAKE);
	m->by_timer = sample_stack(s, TASKS_WORKER ";tokio::runtime::scheduler::multi_thread::worker::Context::park_timeout;"
						   "tokio::runtime::time::Driver::park_internal;"
						   "tokio::runtime::time::<impl tokio::runtime::time::handle::Handle>::process_at_time;"
						   TASKS_WAKE);
}

/* What the threads did, as -e cpu,wait tells it. */
static inline void made_threads(struct made_tasks *m)
{
	struct sample *s = &m->w.s;

	sample_add(s, m->worker1, m->exec, 900);
	for (unsigned i = 0; i < 5; i++) {
		s->now_ns = (110 + 200 * i) * MS;
		sample_add(s, m->worker2, m->encode, 5);
		waiting_woken(&m->w, m->worker2, m->commit, (115 + 200 * i) * MS, 15 * MS, PROFILE_NONE, "swapper/0", m->w.disk);
	}
	s->now_ns = 331 * MS;
	sample_add(s, m->worker2, m->serve, 4);
	s->now_ns = 336 * MS;
	sample_add(s, m->worker2, m->serve, 4);
	s->now_ns = 600 * MS;
	sample_add(s, m->worker2, m->serve, 92);
	waiting_woken(&m->w, m->pool, m->load, 300 * MS, 28 * MS, PROFILE_NONE, "swapper/0", m->w.disk);
	s->now_ns = 328 * MS;
	sample_add(s, m->pool, sample_stack(s, TASKS_BLOCKING ";node::db::read::{{closure}};node::db::load"), 2);
	waiting_account(&m->w, m->worker1, 900 * MS, 0, 100 * MS);
	waiting_account(&m->w, m->worker2, 125 * MS, 0, 875 * MS);
	waiting_account(&m->w, m->pool, 2 * MS, 0, 998 * MS);
	waiting_add(&m->w, m->w.wait, m->worker1, m->w.park, 900 * MS, 100 * MS, 1);
	/* The rest of worker 2 is idle, the longest part of it from 711 ms on. */
	waiting_add(&m->w, m->w.wait, m->worker2, m->w.park, 0, 110 * MS, 1);
	waiting_add(&m->w, m->w.wait, m->worker2, m->w.park, 730 * MS, 180 * MS, 1);
	waiting_add(&m->w, m->w.wait, m->worker2, m->w.park, 930 * MS, 70 * MS, 1);
	waiting_add(&m->w, m->w.wait, m->worker2, m->w.park, 340 * MS, 170 * MS, 1);
	waiting_add(&m->w, m->w.wait, m->worker2, m->w.park, 130 * MS, 175 * MS, 1);
}

static inline void made_samples(struct made_tasks *m)
{
	uint32_t idle = profile_named_frame(m->p, PROFILE_NONE, FRAME_USER, "[idle worker]");
	uint32_t not_ended = profile_named_frame(m->p, PROFILE_NONE, FRAME_USER, "[not ended]");
	uint32_t behind_flush = profile_stack(m->p, m->type[TASKS_RPC], made_frame(m->p, TASKS_FLUSH));
	uint32_t behind_exec = profile_stack(m->p, m->type[TASKS_RPC], made_frame(m->p, TASKS_EXEC));
	uint32_t ticks = profile_stack(m->p, m->type[TASKS_TICK], made_frame(m->p, TASKS_FLUSH));
	uint32_t by_exec = made_below(m->p, m->type[TASKS_RPC], m->by_exec);

	for (unsigned i = 0; i < 90; i++)
		made_add(m, m->poll, m->worker1, m->type[TASKS_EXEC], i * 10 * MS, 10 * MS, 20);
	for (unsigned i = 0; i < 10; i++)
		made_add(m, m->poll, m->worker2, m->type[TASKS_RPC], i * 100 * MS, 10 * MS, 100);
	for (unsigned i = 0; i < 10; i++)
		made_add(m, m->poll, m->worker2, m->type[TASKS_TICK], (i * 100 + 50) * MS, MS / 10, 1);
	for (unsigned i = 0; i < 5; i++) {
		uint64_t end = (130 + 200 * i) * MS;

		made_add(m, m->poll, m->worker2, m->type[TASKS_FLUSH], end - 20 * MS, 20 * MS, 1);
		for (unsigned k = 0; k < 10; k++)
			made_add(m, m->queue, m->worker2, behind_flush, end + k * MS / 100, 4 * MS, 1);
		made_add(m, m->queue, m->worker2, ticks, end, 18 * MS / 10, 1);
	}
	made_add(m, m->poll, m->pool, m->type[TASKS_READ], 300 * MS, 30 * MS, 1);
	for (unsigned i = 0; i < 10; i++)
		made_add(m, m->queue, m->worker1, behind_exec, i * 90 * MS, 8 * MS, 45);
	made_add(m, m->queue, m->worker2, profile_stack(m->p, m->type[TASKS_RPC], idle), 500 * MS, 20 * MS, 500);
	made_add(m, m->queue, m->worker1, profile_stack(m->p, m->type[TASKS_EXEC], idle), 500 * MS, 40 * MS, 1800);
	made_add(m, m->queue, m->pool, profile_stack(m->p, m->type[TASKS_READ], idle), 300 * MS, 2 * MS, 1);
	for (unsigned i = 0; i < 14; i++)
		made_add(m, m->await, m->worker1, by_exec, i * 70 * MS, 100 * MS, 50);
	made_add(m, m->await, m->pool, made_below(m->p, m->type[TASKS_RPC], m->by_join), 330 * MS, 470 * MS, 40);
	made_add(m, m->await, m->worker2, made_below(m->p, m->type[TASKS_RPC], m->by_io), 400 * MS, 130 * MS, 200);
	made_add(m, m->await, m->worker2, profile_stack(m->p, m->type[TASKS_RPC], not_ended), 1000 * MS, 100 * MS, 2);
	made_add(m, m->await, m->worker2, made_below(m->p, m->type[TASKS_EXEC], m->by_io), 500 * MS, 60 * MS, 30);
	made_add(m, m->await, m->worker1, made_below(m->p, m->type[TASKS_FLUSH], m->by_timer), 910 * MS, 830 * MS, 5);
	made_add(m, m->await, m->worker2, profile_stack(m->p, m->type[TASKS_FLUSH], not_ended), 1000 * MS, 70 * MS, 1);
	made_add(m, m->await, m->worker1, made_below(m->p, m->type[TASKS_TICK], m->by_timer), 950 * MS, 900 * MS, 9);
	made_add(m, m->await, m->worker2, profile_stack(m->p, m->type[TASKS_TICK], not_ended), 1000 * MS, 90 * MS, 1);
	made_add(m, m->spawn, m->worker2,
		 profile_stack(m->p, sample_stack(&m->w.s, TASKS_POLL ";node::rpc::accept;tokio::task::spawn::spawn"),
			       made_frame(m->p, TASKS_RPC)), 10 * MS, 2, 2);
	made_add(m, m->spawn, m->worker2,
		 profile_stack(m->p, sample_stack(&m->w.s, TASKS_POLL ";node::rpc::serve::{{closure}};"
							   "tokio::runtime::blocking::pool::spawn_blocking"),
			       made_frame(m->p, TASKS_READ)), 298 * MS, 1, 1);
}

static inline void made_counters(struct made_tasks *m)
{
	static const struct {
		uint64_t spawned, finished, alive, polls, wakes, poll, longest, queue, await; /* times in 100 us */
	} of[TASKS_TYPES] = {
		[TASKS_EXEC] = { 0, 0, 1, 1800, 30, 9000, 9, 400, 600 },
		[TASKS_RPC] = { 2, 1, 2, 1000, 940, 1000, 8, 3000, 21000 },
		[TASKS_FLUSH] = { 0, 0, 1, 5, 5, 1000, 200, 0, 9000 },
		[TASKS_READ] = { 1, 1, 0, 1, 0, 300, 300, 20, 0 },
		[TASKS_TICK] = { 0, 0, 1, 10, 9, 10, 1, 90, 9900 },
	};

	for (int i = 0; i < TASKS_TYPES; i++) {
		const char *name = made_names[i];

		profile_count_set_of(m->p, KEY_TASK_SPAWNED_OF, name, of[i].spawned);
		profile_count_set_of(m->p, KEY_TASK_FINISHED_OF, name, of[i].finished);
		profile_count_set_of(m->p, KEY_TASK_ALIVE_OF, name, of[i].alive);
		profile_count_set_of(m->p, KEY_TASK_POLLS_OF, name, of[i].polls);
		profile_count_set_of(m->p, KEY_TASK_WAKES_OF, name, of[i].wakes);
		profile_count_set_of(m->p, KEY_TASK_POLL_NS_OF, name, of[i].poll * MS / 10);
		profile_count_set_of(m->p, KEY_TASK_POLL_MAX_NS_OF, name, of[i].longest * MS / 10);
		profile_count_set_of(m->p, KEY_TASK_QUEUE_NS_OF, name, of[i].queue * MS / 10);
		profile_count_set_of(m->p, KEY_TASK_AWAIT_NS_OF, name, of[i].await * MS / 10);
	}
	profile_count_set_of(m->p, KEY_TASK_BLOCKING_OF, made_names[TASKS_READ], 1);
	profile_count_set(m->p, KEY_TASK_LONG_POLL_NS, MS);
	profile_count_set(m->p, KEY_TASK_VTABLES, 7);
	profile_count_set(m->p, KEY_TASK_VERSION, 1043000);
	profile_histogram(m->p, KEY_TASK_POLL_LATENCY)->counts[18] = 2811;
	profile_histogram(m->p, KEY_TASK_POLL_LATENCY)->counts[24] = 5;
	profile_histogram(m->p, KEY_TASK_QUEUE_LATENCY)->counts[14] = 2800;
	profile_histogram(m->p, KEY_TASK_AWAIT_LATENCY)->counts[20] = 984;
}

/* Points each 10 ms, with what was since the one before: four tasks in queues and both workers busy while flush blocks one of
 * them, else one task and worker 1; 28 polls. */
static inline void made_series(struct made_tasks *m)
{
	uint32_t queue = profile_series(m->p, KEY_TASK_QUEUE), polls = profile_series(m->p, KEY_TASK_POLLS);
	uint32_t longest = profile_series(m->p, KEY_TASK_LONGEST_POLL), busy = profile_series(m->p, KEY_TASK_BUSY);

	for (unsigned i = 0; i < 100; i++) {
		bool blocked = i % 20 == 11 || i % 20 == 12;

		profile_add_point(m->p, queue, (i + 1) * 10 * MS, (blocked ? 40 : 10) * MS);
		profile_add_point(m->p, polls, (i + 1) * 10 * MS, 28);
		profile_add_point(m->p, longest, (i + 1) * 10 * MS, i % 20 == 12 ? 20 * MS : MS / 2);
		profile_add_point(m->p, busy, (i + 1) * 10 * MS, (blocked ? 20 : 10) * MS);
	}
}

static inline void made_wake(struct made_tasks *m, enum tasks_types type, uint32_t task, uint64_t at_ms, uint64_t await_ms,
			     uint64_t queue_ms, uint32_t waker, int waker_type, uint32_t waker_task, uint32_t stack)
{
	profile_add_taskwake(m->p, &(struct profile_taskwake){
		.time_ns = at_ms * MS, .await_ns = await_ms * MS, .queue_ns = queue_ms * MS,
		.type = profile_string(m->p, made_names[type]), .task = task,
		.thread = type == TASKS_EXEC ? m->worker1 : m->worker2, .waker = waker,
		.waker_type = waker_type < 0 ? 0 : profile_string(m->p, made_names[waker_type]), .waker_task = waker_task,
		.waker_stack = stack });
}

static inline struct made_tasks made_tasks(void)
{
	struct made_tasks m = { .w = waiting_empty() };
	struct profile *p = m.p = m.w.s.p;

	for (size_t i = 0; i < p->threads.n; i++)
		p->threads.v[i].start_ns = p->duration_ns; /* not part of this story */
	m.worker1 = builder_thread(p, 0, 121, "tokio-rt-worker");
	m.worker2 = builder_thread(p, 0, 122, "tokio-rt-worker");
	m.pool = builder_thread(p, 0, 123, "tokio-rt-worker");
	m.poll = profile_add_event(p, "poll", "ns", "time in polls of tasks", 0);
	m.await = profile_add_event(p, "await", "ns", "time tasks awaited, by who ended it", 0);
	m.queue = profile_add_event(p, "taskqueue", "ns", "time tasks lay in the queue of their runtime", 0);
	m.spawn = profile_add_event(p, "spawn", "tasks", "tasks by where they were spawned", 0);
	made_stacks(&m);
	made_threads(&m);
	made_samples(&m);
	made_counters(&m);
	made_series(&m);
	for (unsigned i = 0; i < 5; i++) {
		profile_add_mark(p, &(struct profile_mark){ .start_ns = (110 + 200 * i) * MS, .end_ns = (130 + 200 * i) * MS,
							    .name = profile_string(p, made_names[TASKS_FLUSH]),
							    .kind = profile_string(p, "long poll"), .thread = m.worker2 });
		made_wake(&m, TASKS_FLUSH, 5, 110 + 200 * i, i ? 180 : 110, 0, m.worker1, -1, 0, m.by_timer);
	}
	made_wake(&m, TASKS_RPC, 3, 330, 32, 1, m.pool, TASKS_READ, 8, m.by_join);
	made_wake(&m, TASKS_RPC, 1, 335, 30, 1, m.worker2, TASKS_RPC, 3, m.by_task);
	made_wake(&m, TASKS_RPC, 2, 400, 50, 5, m.worker1, TASKS_EXEC, 4, m.by_exec);
	return m;
}

/* The block of the story, on the thread that ended it. */
static inline void made_block(struct made_tasks *m)
{
	profile_add_mark(m->p, &(struct profile_mark){ .start_ns = 305 * MS, .end_ns = 340 * MS,
						       .name = profile_string(m->p, "block 7"),
						       .kind = profile_string(m->p, "block"), .thread = m->worker2,
						       .block = { .known = BLOCK_NUMBER, .number = 7 } });
}
