/*
 * waiting.h - profiles with waits, whose account is known: a writer that syncs, two threads that want its
 * lock, a worker that has nothing to do, and one that only computes.
 */
#pragma once

#include "analyze/wait/cause.h"
#include "sample.h"

#define MS 1000000ULL

struct waiting {
	struct sample s;
	uint32_t wait, queue;                     /* events */
	uint32_t writer, rpc, engine, idle, busy; /* threads */
	uint32_t fsync, lock, park, preempted;    /* stacks */
	uint32_t unlocks, timer, disk;            /* stacks of wakers */
};

static inline void waiting_add(struct waiting *w, uint32_t event, uint32_t thread, uint32_t stack,
			       uint64_t at_ns, uint64_t ns, uint32_t count)
{
	profile_add_sample(w->s.p, &(struct profile_sample){ .time_ns = at_ns,
							     .value = ns,
							     .thread = thread,
							     .stack = stack,
							     .event = event,
							     .count = count });
}

/* A long wait, with what ended it. */
static inline void waiting_woken(struct waiting *w, uint32_t thread, uint32_t stack, uint64_t at_ns,
				 uint64_t ns, uint32_t waker, const char *waker_name, uint32_t waker_stack)
{
	waiting_add(w, w->wait, thread, stack, at_ns, ns, 1);
	profile_add_wake(w->s.p, &(struct profile_wake){
		.time_ns = at_ns, .blocked_ns = ns, .thread = thread, .stack = stack, .waker = waker,
		.waker_name = profile_string(w->s.p, waker_name), .waker_stack = waker_stack });
}

static inline void waiting_account(struct waiting *w, uint32_t thread, uint64_t run_ns, uint64_t queue_ns,
				   uint64_t blocked_ns)
{
	struct profile_thread *t = &w->s.p->threads.v[thread];

	t->run_ns = run_ns;
	t->queue_ns = queue_ns;
	t->blocked_ns = blocked_ns;
}

static inline struct waiting waiting_empty(void)
{
	struct waiting w = { .s = sample_empty() };
	struct sample *s = &w.s;
	struct profile *p = s->p;

	p->duration_ns = 1000 * MS;
	w.wait = profile_add_event(p, "wait", "ns", "time blocked, from leaving the CPU to being woken", 0);
	w.queue = profile_add_event(p, "queue", "ns", "time ready to run, but without a CPU", 0);
	w.writer = builder_thread(p, 0, 110, "persistence");
	w.rpc = builder_thread(p, 0, 111, "rpc-1");
	w.engine = builder_thread(p, 0, 112, "engine");
	w.idle = builder_thread(p, 0, 113, "tokio-rt-worker");
	w.busy = builder_thread(p, 0, 114, "busy");
	w.fsync = sample_stack(s, "clone3;start_thread;reth::persist;mdbx_txn_commit;fdatasync;"
				  "k:entry_SYSCALL_64_after_hwframe;k:do_syscall_64;k:__x64_sys_fdatasync;"
				  "k:ext4_sync_file;k:jbd2_log_wait_commit;k:schedule;k:__schedule;"
				  "k:__traceiter_sched_switch;k:bpf_trace_run4");
	w.lock = sample_stack(s, "clone3;start_thread;reth::rpc::call;reth::Cache::get;"
				 "std::sys::sync::mutex::futex::Mutex::lock_contended;syscall;"
				 "k:entry_SYSCALL_64_after_hwframe;k:do_syscall_64;k:__x64_sys_futex;k:do_futex;"
				 "k:futex_wait;k:__futex_wait;k:futex_do_wait;k:schedule;k:__schedule");
	w.park = sample_stack(s, "clone3;start_thread;tokio::runtime::scheduler::multi_thread::worker::run;"
				 "tokio::runtime::scheduler::multi_thread::worker::Context::park;"
				 "parking_lot::condvar::Condvar::wait_until_internal;syscall;k:do_syscall_64;"
				 "k:do_futex;k:futex_wait_queue;k:schedule");
	w.preempted = sample_stack(s, "k:[preempted]");
	w.unlocks = sample_stack(s, "clone3;start_thread;reth::persist;reth::Cache::insert;"
				    "std::sys::sync::mutex::futex::Mutex::wake;syscall;k:do_syscall_64;k:do_futex;"
				    "k:futex_wake;k:wake_up_q;k:try_to_wake_up");
	w.timer = sample_stack(s, "_start;main;node::unlucky;k:asm_sysvec_apic_timer_interrupt;"
				  "k:sysvec_apic_timer_interrupt;k:__sysvec_apic_timer_interrupt;"
				  "k:hrtimer_interrupt;k:__hrtimer_run_queues;k:hrtimer_wakeup;k:try_to_wake_up");
	w.disk = sample_stack(s, "_start;main;node::unlucky;k:asm_common_interrupt;k:common_interrupt;"
				 "k:__irq_exit_rcu;k:handle_softirqs;k:blk_complete_reqs;k:blk_mq_end_request;"
				 "k:bio_endio;k:folio_end_writeback;k:folio_wake_bit;k:try_to_wake_up");
	return w;
}

/*
 * One second. persistence: 200 ms on the CPU, 700 in fdatasync, 20 in the queue, 80 missing.
 * rpc-1: 100 on the CPU, 900 waiting for its lock, of which the first 700 while it syncs.
 * engine: 300 on the CPU, 690 sleeping, 10 in the queue. tokio: 1 on the CPU, 999 idle. busy: all on the CPU.
 */
static inline struct waiting waiting_make(void)
{
	struct waiting w = waiting_empty();
	struct sample *s = &w.s;
	uint32_t insert = sample_stack(s, "clone3;start_thread;reth::persist;reth::Cache::insert");
	uint32_t compute = sample_stack(s, "clone3;start_thread;reth::compute");
	uint32_t nap = sample_stack(s, "clone3;start_thread;reth::tick;std::thread::sleep;clock_nanosleep;"
				       "k:do_syscall_64;k:common_nsleep;k:hrtimer_nanosleep;k:do_nanosleep;"
				       "k:schedule;k:__schedule");

	for (unsigned i = 0; i < 7; i++)
		waiting_woken(&w, w.writer, w.fsync, i * 100 * MS, 100 * MS, PROFILE_NONE, "swapper/0",
			      w.disk);
	waiting_add(&w, w.queue, w.writer, w.preempted, 705 * MS, 20 * MS, 4);
	waiting_woken(&w, w.rpc, w.lock, 0, 800 * MS, w.writer, "persistence", w.unlocks);
	waiting_add(&w, w.wait, w.rpc, w.lock, 810 * MS, 100 * MS, 250);
	for (unsigned i = 0; i < 69; i++) {
		waiting_woken(&w, w.engine, nap, i * 14 * MS, 10 * MS, w.busy, "busy", w.timer);
	}
	waiting_add(&w, w.queue, w.engine, w.preempted, 990 * MS, 10 * MS, 1);
	waiting_add(&w, w.wait, w.idle, w.park, 0, 999 * MS, 1);
	s->now_ns = 700 * MS;
	sample_add(s, w.writer, insert, 200);
	s->now_ns = 0;
	sample_add(s, w.busy, compute, 1000);
	s->now_ns = 0;
	sample_add(s, w.engine, compute, 300);
	waiting_account(&w, w.writer, 200 * MS, 20 * MS, 700 * MS);
	waiting_account(&w, w.rpc, 100 * MS, 0, 900 * MS);
	waiting_account(&w, w.engine, 300 * MS, 10 * MS, 690 * MS);
	waiting_account(&w, w.idle, 1 * MS, 0, 999 * MS);
	waiting_account(&w, w.busy, 1000 * MS, 0, 0);
	for (uint32_t i = s->main; i <= s->other; i++)
		s->p->threads.v[i].start_ns = s->p->duration_ns; /* not part of this story */
	return w;
}
