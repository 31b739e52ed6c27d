/* test_cause.c - why a stack waits: the kernel's functions, the patterns, and their file. */
#include "test.h"

#include <errno.h>

#include "analyze/tree/ownfunction.h"
#include "analyze/wait/cause.h"
#include "base/err.h"
#include "profile/kernelname.h"
#include "waiting.h"

static enum kernel_wait kernel(const char *const *names)
{
	struct kernel_reader r = { 0 };

	for (; *names; names++)
		kernel_read(&r, *names);
	return kernel_wait_of(&r);
}

/* Innermost first, as kernels of several ages have them. */
static void the_kernel_tells_kinds_of_waits(void **state)
{
	static const struct {
		enum kernel_wait wait;
		const char *names[12];
	} waits[] = {
		{ KERNEL_FUTEX,
		  { "__schedule", "schedule", "futex_wait_queue_me", "futex_wait", "do_futex" } },
		{ KERNEL_FUTEX, { "__schedule", "schedule", "futex_do_wait", "__futex_wait", "futex_wait" } },
		{ KERNEL_LOCK, { "schedule", "rt_mutex_schedule", "futex_lock_pi", "do_futex" } },
		{ KERNEL_EPOLL,
		  { "schedule", "schedule_hrtimeout_range_clock", "ep_poll", "do_epoll_wait" } },
		{ KERNEL_POLL, { "schedule", "schedule_hrtimeout_range", "do_sys_poll.constprop.0" } },
		{ KERNEL_SLEEP, { "schedule", "do_nanosleep", "hrtimer_nanosleep", "common_nsleep" } },
		{ KERNEL_PIPE, { "schedule", "pipe_read", "vfs_read", "ksys_read" } },
		{ KERNEL_PIPE, { "schedule", "anon_pipe_write", "vfs_write", "ksys_write" } },
		{ KERNEL_PROCESS, { "schedule", "do_wait", "kernel_wait4", "__x64_sys_wait4" } },
		{ KERNEL_FAULT, { "io_schedule", "folio_wait_bit_common", "filemap_read_folio", "filemap_fault",
				  "__do_fault", "asm_exc_page_fault" } },
		{ KERNEL_PIPE, { "schedule", "do_wait_intr_irq", "eventfd_read", "vfs_read", "ksys_read" } },
		{ KERNEL_FAULT,
		  { "io_schedule", "folio_wait_bit_common", "filemap_fault", "__do_fault", "handle_mm_fault",
		    "do_user_addr_fault", "asm_exc_page_fault" } },
		{ KERNEL_FAULT,
		  { "io_schedule", "folio_wait_bit_common", "__xfs_filemap_fault", "do_fault" } },
		{ KERNEL_FAULT,
		  { "io_schedule", "folio_wait_bit_common", "strange_fs_map", "exc_page_fault" } },
		{ KERNEL_DISK_READ,
		  { "io_schedule", "folio_wait_bit_common", "filemap_update_page", "filemap_get_pages",
		    "filemap_read", "ext4_file_read_iter", "vfs_read" } },
		{ KERNEL_DISK_READ,
		  { "io_schedule", "__wait_on_buffer", "ext4_bread", "ext4_lookup", "path_openat" } },
		{ KERNEL_DISK_READ,
		  { "io_schedule", "blk_mq_get_tag", "__blk_mq_alloc_requests", "strange" } },
		{ KERNEL_DISK_WRITE,
		  { "io_schedule", "folio_wait_bit_common", "folio_wait_writeback",
		    "__filemap_fdatawait_range", "ext4_sync_file" } },
		{ KERNEL_DISK_WRITE,
		  { "schedule", "jbd2_log_wait_commit", "ext4_fsync_journal", "ext4_sync_file" } },
		{ KERNEL_DISK_WRITE,
		  { "io_schedule_timeout", "balance_dirty_pages", "generic_perform_write" } },
		{ KERNEL_DISK_WRITE,
		  { "io_schedule", "submit_bio_wait", "blkdev_issue_flush", "ext4_sync_file" } },
		{ KERNEL_DISK_WRITE,
		  { "io_schedule", "bit_wait_io", "out_of_line_wait_on_bit", "f2fs_x", "ksys_write" } },
		{ KERNEL_RECLAIM,
		  { "io_schedule", "folio_wait_writeback_x", "shrink_folio_list", "try_to_free_pages",
		    "__alloc_pages", "do_anonymous_page", "asm_exc_page_fault" } },
		{ KERNEL_RECLAIM,
		  { "schedule_timeout", "wait_for_completion", "__flush_work", "__lru_add_drain_all",
		    "generic_fadvise", "ksys_fadvise64_64" } },
		{ KERNEL_LOCK,
		  { "schedule", "rwsem_down_read_slowpath", "down_read", "do_user_addr_fault",
		    "asm_exc_page_fault" } },
		{ KERNEL_NETWORK,
		  { "schedule_timeout", "wait_woken", "sk_wait_data", "tcp_recvmsg_locked" } },
		{ KERNEL_NETWORK,
		  { "schedule_timeout", "unix_stream_data_wait", "unix_stream_read_generic" } },
		{ KERNEL_ACCEPT, { "schedule", "inet_csk_accept", "inet_accept", "do_accept" } },
		{ KERNEL_SIGNAL, { "schedule", "do_sigtimedwait", "__x64_sys_rt_sigtimedwait" } },
		{ KERNEL_QUEUE, { "preempt_schedule_common", "__cond_resched", "strange" } },
		{ KERNEL_UNKNOWN, { "schedule", "some_driver_wait", "vfs_ioctl" } },
		{ KERNEL_UNKNOWN, { NULL } },
	};

	for (size_t i = 0; i < ARRAY_LEN(waits); i++)
		if (kernel(waits[i].names) != waits[i].wait)
			fail_msg("case %zu (%s) is %s, not %s", i, waits[i].names[0],
				 kernel_wait_key(kernel(waits[i].names)), kernel_wait_key(waits[i].wait));
}

static enum kernel_interrupt interrupt(const char *const *names)
{
	struct interrupt_reader r = { 0 };

	for (; *names; names++)
		interrupt_read(&r, kernelname_of(*names));
	return interrupt_of(&r);
}

static void interrupts_wake_and_not_who_ran(void **state)
{
	static const struct {
		enum kernel_interrupt kind;
		const char *names[12];
	} wakes[] = {
		{ INTERRUPT_TIMER,
		  { "try_to_wake_up", "hrtimer_wakeup", "__hrtimer_run_queues", "hrtimer_interrupt",
		    "asm_sysvec_apic_timer_interrupt", "tcp_sendmsg" } },
		{ INTERRUPT_DISK,
		  { "try_to_wake_up", "wake_page_function", "folio_end_read", "bio_endio",
		    "blk_mq_end_request", "__irq_exit_rcu", "common_interrupt" } },
		{ INTERRUPT_NETWORK,
		  { "__wake_up_sync_key", "sock_def_readable", "tcp_data_queue", "tcp_v4_rcv",
		    "net_rx_action", "handle_softirqs", "__irq_exit_rcu" } },
		{ INTERRUPT_NETWORK,
		  { "sock_def_readable", "tcp_v4_rcv", "net_rx_action", "run_ksoftirqd" } },
		{ INTERRUPT_OTHER, { "try_to_wake_up", "strange_driver", "asm_common_interrupt" } },
		/* What is sent to the same machine is received in the sender's own system call. */
		{ INTERRUPT_NONE,
		  { "sock_def_readable", "tcp_v4_rcv", "net_rx_action", "do_softirq", "__local_bh_enable_ip",
		    "__dev_queue_xmit", "tcp_sendmsg" } },
		{ INTERRUPT_NONE, { "try_to_wake_up", "wake_up_q", "futex_wake", "do_futex" } },
		/* A disk's or a timer's softirq, and packets from elsewhere, are no doing of the task that turned softirqs on. */
		{ INTERRUPT_DISK,
		  { "try_to_wake_up", "wake_page_function", "bio_endio", "blk_complete_reqs", "handle_softirqs", "do_softirq",
		    "__local_bh_enable_ip", "__dev_queue_xmit", "tcp_sendmsg" } },
		{ INTERRUPT_TIMER,
		  { "try_to_wake_up", "process_timeout", "call_timer_fn", "__do_softirq", "do_softirq.part.0",
		    "__local_bh_enable_ip", "ep_poll" } },
		{ INTERRUPT_NETWORK,
		  { "sock_def_readable", "tcp_v4_rcv", "net_rx_action", "handle_softirqs", "do_softirq",
		    "__local_bh_enable_ip", "ext4_file_write_iter" } },
		{ INTERRUPT_DISK,
		  { "try_to_wake_up", "bio_endio", "nvme_irq", "irq_thread_fn", "irq_thread", "kthread" } },
	};

	for (size_t i = 0; i < ARRAY_LEN(wakes); i++)
		if (interrupt(wakes[i].names) != wakes[i].kind)
			fail_msg("case %zu (%s) is %d", i, wakes[i].names[1], interrupt(wakes[i].names));
}

struct table {
	struct patterns patterns;
	struct causes causes;
};

static void begin(struct table *t, const struct profile *p, const char *mine)
{
	struct err err = { 0 };

	patterns_init(&t->patterns);
	if (mine && patterns_add(&t->patterns, "mine", mine, &err))
		fail_msg("%s", err.text);
	patterns_add_builtin(&t->patterns);
	assert_true(t->patterns.list.n > 50);
	causes_init(&t->causes, p, &t->patterns);
}

static void end(struct table *t)
{
	causes_done(&t->causes);
	patterns_done(&t->patterns);
}

#define FUTEX "k:entry_SYSCALL_64;k:do_syscall_64;k:do_futex;k:futex_wait;k:schedule"
#define EPOLL "k:do_syscall_64;k:do_epoll_wait;k:ep_poll;k:schedule"

static void user_code_tells_what_it_means(void **state)
{
	struct sample s = sample_empty();
	struct table t;
	const struct {
		enum cause cause;
		const char *pattern;
		uint32_t stack;
	} stacks[] = {
		{ CAUSE_IDLE, "tokio worker without a task",
		  sample_stack(&s, "tokio::runtime::scheduler::multi_thread::worker::run;"
				   "<tokio::runtime::scheduler::multi_thread::worker::Context>::park_internal;"
				   "<parking_lot::condvar::Condvar>::wait_until_internal;" FUTEX) },
		{ CAUSE_IDLE, "tokio worker without a task",
		  sample_stack(&s, "tokio::runtime::scheduler::multi_thread::worker::Context::park;"
				   "tokio::runtime::io::driver::Driver::turn;mio::poll::Poll::poll;epoll_wait;" EPOLL) },
		/* A task on a worker wants a lock: that is no idle worker. */
		{ CAUSE_LOCK, "mutex",
		  sample_stack(&s, "tokio::runtime::scheduler::multi_thread::worker::run;"
				   "tokio::runtime::task::harness::poll_future;app::handle;"
				   "parking_lot::raw_mutex::RawMutex::lock_slow;" FUTEX) },
		{ CAUSE_IDLE, "tokio blocking thread without a task",
		  sample_stack(&s, "tokio::runtime::blocking::pool::Inner::run;"
				   "std::sys::sync::condvar::futex::Condvar::wait_timeout;" FUTEX) },
		{ CAUSE_PARK, "condition variable",
		  sample_stack(&s, "tokio::runtime::blocking::pool::Inner::run;tokio::runtime::task::raw::poll;"
				   "app::work;std::sys::sync::condvar::futex::Condvar::wait;" FUTEX) },
		/* Inlined into the start of its thread, it is still nobody's work. */
		{ CAUSE_IDLE, "pool thread without work",
		  sample_stack(&s, "__clone3;start_thread;std::sys::backtrace::__rust_begin_short_backtrace;"
				   "parking_lot::condvar::Condvar::wait_until_internal;syscall;" FUTEX) },
		{ CAUSE_PARK, "tokio block_on in a worker",
		  sample_stack(&s, "__clone3;tokio::runtime::task::raw::poll;"
				   "tokio::runtime::park::CachedParkThread::park;"
				   "parking_lot::condvar::Condvar::wait_until_internal;syscall;" FUTEX) },
		{ CAUSE_IDLE, "tokio block_on",
		  sample_stack(&s, "main;app::main;tokio::runtime::park::CachedParkThread::park;"
				   "parking_lot::condvar::Condvar::wait_until_internal;syscall;" FUTEX) },
		{ CAUSE_IDLE, "rayon worker without a job",
		  sample_stack(&s, "rayon_core::registry::ThreadBuilder::run;"
				   "rayon_core::registry::WorkerThread::wait_until_cold;"
				   "rayon_core::sleep::Sleep::sleep;" FUTEX) },
		{ CAUSE_PARK, "rayon waits for a part",
		  sample_stack(&s, "rayon_core::join::join_context::{{closure}};"
				   "rayon_core::registry::WorkerThread::wait_until_cold;"
				   "rayon_core::sleep::Sleep::sleep;" FUTEX) },
		/* Threads of Go: what a goroutine waits for is nowhere on their stacks. */
		{ CAUSE_IDLE, "Go thread without a goroutine",
		  sample_stack(&s, "runtime.mcall;runtime.park_m;runtime.schedule;runtime.findRunnable;runtime.stopm;"
				   "runtime.mPark;runtime.notesleep;runtime.futexsleep;runtime.futex;" FUTEX) },
		{ CAUSE_IDLE, "Go thread without a goroutine",
		  sample_stack(&s, "runtime.mstart;runtime.mstart1;runtime.templateThread;runtime.notesleep;runtime.futex;" FUTEX) },
		{ CAUSE_IDLE, "Go network poller",
		  sample_stack(&s, "runtime.mcall;runtime.schedule;runtime.findRunnable;runtime.netpoll;runtime.epollwait;" EPOLL) },
		{ CAUSE_IDLE, "Go runtime monitor",
		  sample_stack(&s, "runtime.mstart1;runtime.sysmon;runtime.usleep;k:do_nanosleep;k:schedule") },
		{ CAUSE_LOCK, "Go runtime lock",
		  sample_stack(&s, "runtime.goexit;main.work;runtime.chansend1;runtime.chansend;runtime.lock;runtime.lockWithRank;"
				   "runtime.lock2;runtime.futexsleep;runtime.futex;" FUTEX) },
		{ CAUSE_PARK, "Go stops the world",
		  sample_stack(&s, "runtime.gcStart;runtime.systemstack;runtime.stopTheWorldWithSema;runtime.notetsleep;"
				   "runtime.futexsleep;runtime.futex;" FUTEX) },
		{ CAUSE_IDLE, "Go thread stopped by the garbage collector",
		  sample_stack(&s, "runtime.mcall;runtime.schedule;runtime.gcstopm;runtime.stopm;runtime.mPark;runtime.futex;" FUTEX) },
		{ CAUSE_PARK, "Go GC assist",
		  sample_stack(&s, "main.work;runtime.mallocgc;runtime.gcAssistAlloc;runtime.systemstack;runtime.gcAssistAlloc.func1;"
				   "runtime.usleep;k:do_nanosleep;k:schedule") },
		{ CAUSE_IDLE, "Go thread of a goroutine that waits",
		  sample_stack(&s, "runtime.mcall;runtime.schedule;runtime.stoplockedm;runtime.mPark;runtime.futex;" FUTEX) },
		{ CAUSE_IDLE, "event loop",
		  sample_stack(&s, "main;uv_run;uv__io_poll;epoll_pwait;" EPOLL) },
		{ CAUSE_IDLE, "waits for events",
		  sample_stack(&s, "main;app::loop;epoll_wait;" EPOLL) },
		{ CAUSE_IDLE, "joins a thread",
		  sample_stack(&s, "main;std::thread::JoinInner<T>::join;__pthread_clockjoin_ex;" FUTEX) },
		{ CAUSE_LOCK, "reader-writer lock, to write",
		  sample_stack(&s, "app::set;parking_lot::raw_rwlock::RawRwLock::lock_exclusive_slow;" FUTEX) },
		{ CAUSE_LOCK, "reader-writer lock, to read",
		  sample_stack(&s, "app::get;std::sys::sync::rwlock::futex::RwLock::read_contended;" FUTEX) },
		{ CAUSE_LOCK, "mutex",
		  sample_stack(&s, "app_get;pthread_mutex_lock;__lll_lock_wait;" FUTEX) },
		{ CAUSE_PARK, "condition variable",
		  sample_stack(&s, "app_get;pthread_cond_wait;__futex_abstimed_wait_common64;" FUTEX) },
		/* Woken, it must take the mutex again: that is the lock's time. */
		{ CAUSE_LOCK, "mutex after a condition",
		  sample_stack(&s, "app_get;pthread_cond_wait;__pthread_mutex_cond_lock;__lll_lock_wait;" FUTEX) },
		{ CAUSE_PARK, "receive from an empty channel",
		  sample_stack(&s, "app::run;crossbeam_channel::channel::Receiver<T>::recv;std::thread::park;" FUTEX) },
		{ CAUSE_PARK, "send into a full channel",
		  sample_stack(&s, "app::run;crossbeam_channel::flavors::array::Channel<T>::send;std::thread::park;" FUTEX) },
		{ CAUSE_LOCK, "row or table lock of PostgreSQL",
		  sample_stack(&s, "main;PostmasterMain;PostgresMain;heap_update;XactLockTableWait;LockAcquireExtended;ProcSleep;WaitLatch;"
				   "WaitEventSetWait;epoll_wait;" EPOLL) },
		{ CAUSE_IDLE, "waits for events",
		  sample_stack(&s, "main;PostmasterMain;PostgresMain;pq_getbyte;WaitEventSetWait;epoll_wait;" EPOLL) },
		{ CAUSE_IDLE, "PostgreSQL waits for connections",
		  sample_stack(&s, "main;PostmasterMain;select;k:__x64_sys_pselect6;k:do_select;k:poll_schedule_timeout;k:schedule") },
		{ CAUSE_LOCK, "database write lock",
		  sample_stack(&s, "app::put;mdbx_txn_begin_ex;pthread_mutex_lock;" FUTEX) },
		{ CAUSE_DISK_WRITE, "commit waits for the disk",
		  sample_stack(&s, "app::put;mdbx_txn_commit;fdatasync;k:ext4_sync_file;k:schedule") },
		{ CAUSE_DISK_WRITE, "sync",
		  sample_stack(&s, "app::put;fdatasync;k:ext4_sync_file;k:schedule") },
		{ CAUSE_FAULT, "page fault from disk",
		  sample_stack(&s, "app::scan;k:asm_exc_page_fault;k:filemap_fault;k:io_schedule") },
		{ CAUSE_PARK, "woken by another thread", sample_stack(&s, "app::mystery;syscall;" FUTEX) },
		{ CAUSE_QUEUE, NULL, sample_stack(&s, "k:[preempted]") },
		{ CAUSE_UNKNOWN, NULL, sample_stack(&s, "k:[waiting since before the recording]") },
		{ CAUSE_UNKNOWN, NULL, 0 },
		{ CAUSE_UNKNOWN, NULL, sample_stack(&s, "app::x;ioctl;k:vfs_ioctl;k:schedule") },
	};

	begin(&t, s.p, NULL);
	for (size_t i = 0; i < ARRAY_LEN(stacks); i++) {
		const struct pattern *p = causes_pattern(&t.causes, stacks[i].stack);

		if (causes_of_stack(&t.causes, stacks[i].stack) != stacks[i].cause)
			fail_msg("case %zu is %s by '%s'", i,
				 cause_name(causes_of_stack(&t.causes, stacks[i].stack)), p ? p->name : "");
		if (stacks[i].pattern ? !p || strcmp(p->name, stacks[i].pattern) : p != NULL)
			fail_msg("case %zu is by '%s'", i, p ? p->name : "none");
	}
	end(&t);
	profile_free(s.p);
}

/* Addresses of the kernel without names: only what user code says is known, and nothing is made up. */
static void without_kernel_symbols_unknown_is_said(void **state)
{
	struct sample s = sample_empty();
	uint32_t inner = profile_frame(s.p, s.kernel, FRAME_KERNEL, 0xffffffff81000000);
	struct table t;
	uint32_t park = profile_stack(s.p, sample_stack(&s, "app::wait;pthread_cond_wait"), inner);
	uint32_t fsync = profile_stack(s.p, sample_stack(&s, "app::put;fdatasync"), inner);
	uint32_t loop = profile_stack(s.p, sample_stack(&s, "app::run;epoll_wait"), inner);
	uint32_t other = profile_stack(s.p, sample_stack(&s, "mdbx_cursor_get;memcpy"), inner);

	begin(&t, s.p, NULL);
	assert_int_equal(causes_of_stack(&t.causes, park), CAUSE_PARK);
	assert_int_equal(causes_of_stack(&t.causes, fsync), CAUSE_DISK_WRITE);
	assert_int_equal(causes_of_stack(&t.causes, loop), CAUSE_IDLE);
	assert_int_equal(causes_of_stack(&t.causes, other), CAUSE_UNKNOWN);
	end(&t);
	profile_free(s.p);
}

static void a_users_patterns_come_first(void **state)
{
	struct sample s = sample_empty();
	struct table t;
	uint32_t mine = sample_stack(&s, "app::queue#1::pop;pthread_cond_wait;" FUTEX);
	uint32_t other = sample_stack(&s, "app::other;pthread_cond_wait;" FUTEX);
	uint32_t excepted = sample_stack(&s, "app::urgent;app::queue#1::pop;pthread_cond_wait;" FUTEX);

	begin(&t, s.p,
	      "  # a comment, and an empty line\n\n"
	      "[my queue] # comments go anywhere\r\n"
	      "waits = futex, epoll\t# also here\n"
	      "user=app::queue[#]1  # a # in the middle of a word is none\n"
	      "user = app::pool\n"
	      "unless = urgent\n"
	      "cause = idle\n"
	      "means = A worker\n"
	      "means = without work.");
	assert_int_equal(causes_of_stack(&t.causes, mine), CAUSE_IDLE);
	assert_string_equal(causes_pattern(&t.causes, mine)->means, "A worker without work.");
	assert_int_equal(causes_of_stack(&t.causes, other), CAUSE_PARK);
	assert_int_equal(causes_of_stack(&t.causes, excepted), CAUSE_PARK);
	end(&t);
	profile_free(s.p);
}

#define THREAD "clone3;start_thread;std::sys::backtrace::__rust_begin_short_backtrace;"
#define TREE   THREAD "reth_engine_tree::tree::EngineApiTreeHandler<N,P,T,V,C>::run;"
#define BLOCK  TREE "reth_engine_tree::tree::EngineApiTreeHandler<N,P,T,V,C>::on_new_payload;" \
		    "reth_engine_tree::tree::payload_validator::BasicEngineValidator<P>::validate_block_with_state;"
#define RECV   "crossbeam_channel::channel::Receiver<T>::recv;std::thread::park;syscall;" FUTEX
#define ONESHOT "reth_tasks::lazy::LazyHandle<T>::get;tokio::sync::oneshot::Receiver<T>::blocking_recv;" \
		"tokio::runtime::park::CachedParkThread::block_on;tokio::runtime::park::Inner::park;syscall;" FUTEX
#define ETHREX THREAD "ethrex_rpc::rpc::start_block_executor::{{closure}};"
#define SCOPE  "std::thread::scoped::scope;std::thread::park;syscall;" FUTEX

/* Of a stripped program a named function close above the nameless ones says more; further away it does not. */
static void nameless_functions_are_passed_over(void **state)
{
	struct sample s = sample_empty();
	uint32_t close = sample_stack(&s, "main;XactLockTableWait;?;WaitLatch;" EPOLL);
	uint32_t far = sample_stack(&s, "main;XactLockTableWait;?;?;?;WaitLatch;" EPOLL);
	struct idents idents;
	uint32_t named, nameless;

	idents_init(&idents, s.p, 0);
	named = ownfunction_of_stack(&idents, close);
	nameless = ownfunction_of_stack(&idents, far);
	assert_string_equal(idents.list.v[named].name, "XactLockTableWait");
	assert_int_equal(idents.list.v[nameless].kind, IDENT_UNNAMED);
	idents_done(&idents);
	profile_free(s.p);
}

/* A wait for a child is idle where the child is recorded, too, as of su and of a shell; else it is a wait like others. */
static void waits_for_a_recorded_child_are_idle(void **state)
{
	struct waiting w = waiting_empty();
	struct profile *p = w.s.p;
	uint32_t stack = sample_stack(&w.s, "main;wait4;k:__x64_sys_wait4;k:kernel_wait4;k:do_wait;k:schedule");
	uint32_t ends = sample_stack(&w.s, "main;k:__x64_sys_exit;k:do_exit;k:schedule");
	uint32_t su = profile_add_process(p, &(struct profile_process){ .pid = 9000 }), thread = builder_thread(p, su, 9000, "su");
	struct table t;

	begin(&t, p, NULL);
	assert_int_equal(causes_of_wait(&t.causes, thread, stack, 0, 5 * MS).cause, CAUSE_PIPE);
	profile_add_process(p, &(struct profile_process){ .pid = 9001, .parent_pid = 9000 });
	causes_grow(&t.causes);
	assert_int_equal(causes_of_wait(&t.causes, thread, stack, 0, 5 * MS).cause, CAUSE_IDLE);
	assert_int_equal(causes_of_wait(&t.causes, thread, ends, 0, 5 * MS).cause, CAUSE_PIPE);
	assert_int_equal(causes_of_wait(&t.causes, w.engine, stack, 0, 5 * MS).cause, CAUSE_PIPE);
	/* One of several threads may be kept from work. */
	builder_thread(p, su, 9002, "worker");
	causes_grow(&t.causes);
	assert_int_equal(causes_of_wait(&t.causes, thread, stack, 0, 5 * MS).cause, CAUSE_PIPE);
	end(&t);
	profile_free(p);
}

/* Inside of a function that is a block no wait is idle; the same functions outside of it are. */
static void waits_inside_a_block_are_not_idle(void **state)
{
	struct waiting w = waiting_empty();
	struct sample *s = &w.s;
	struct table t;
	const struct {
		enum cause cause;
		const char *pattern;
		uint32_t thread, stack;
	} waits[] = {
		{ CAUSE_PARK, "waits for another thread's result", w.engine, sample_stack(s, BLOCK ONESHOT) },
		{ CAUSE_PARK, "receive from an empty channel", w.engine, sample_stack(s, BLOCK RECV) },
		{ CAUSE_IDLE, "receive from an empty channel", w.engine, sample_stack(s, TREE RECV) },
		{ CAUSE_IDLE, "tokio block_on", w.engine, sample_stack(s, TREE ONESHOT) },
		{ CAUSE_PARK, "persistence back-pressure", w.engine,
		  sample_stack(s, TREE "reth_engine_tree::tree::EngineApiTreeHandler<N,P,T,V,C>::wait_for_persistence_event;" RECV) },
		{ CAUSE_LOCK, "mutex", w.engine,
		  sample_stack(s, TREE "std::sys::sync::mutex::futex::Mutex::lock_contended;syscall;" FUTEX) },
		{ CAUSE_PARK, "joins the threads of its work", w.writer,
		  sample_stack(s, ETHREX "ethrex_blockchain::Blockchain::add_block_pipeline_inner;" SCOPE) },
		{ CAUSE_IDLE, "joins a thread", w.writer, sample_stack(s, ETHREX SCOPE) },
		{ CAUSE_IDLE, "tokio block_on", w.writer,
		  sample_stack(s, ETHREX "tokio::sync::mpsc::chan::Rx<T>::blocking_recv;tokio::runtime::park::Inner::park;syscall;" FUTEX) },
		/* Of this thread no work is known. */
		{ CAUSE_PARK, "receive from an empty channel", w.rpc, sample_stack(s, THREAD "app::serve;" RECV) },
	};

	for (size_t i = 0; i < ARRAY_LEN(waits); i++)
		waiting_add(&w, w.wait, waits[i].thread, waits[i].stack, i * 10 * MS, 5 * MS, i % 2 ? 3 : 1);
	begin(&t, s->p, NULL);
	for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
		struct causes_wait found = causes_of_sample(&t.causes, &s->p->samples.v[i]);

		if (found.cause != waits[i].cause || strcmp(found.pattern ? found.pattern->name : "none", waits[i].pattern))
			fail_msg("case %zu is %s by '%s'", i, cause_name(found.cause), found.pattern ? found.pattern->name : "none");
	}
	end(&t);
	profile_free(s->p);
}

/* The same by spans of the thread, where no name says so. */
static void waits_within_a_span_are_not_idle(void **state)
{
	struct waiting w = waiting_empty();
	struct sample *s = &w.s;
	uint32_t join = sample_stack(s, THREAD "app::handle;" SCOPE), recv = sample_stack(s, THREAD "app::handle;" RECV);
	struct table t;
	const struct {
		enum cause cause;
		uint32_t thread, stack;
		unsigned begin_ms, ms, count;
	} waits[] = {
		{ CAUSE_PARK, w.engine, join, 110, 50, 1 },    /* within the span from 100 to 200 */
		{ CAUSE_PARK, w.engine, join, 140, 100, 1 },   /* within two spans that overlap */
		{ CAUSE_IDLE, w.engine, join, 90, 50, 1 },     /* it began before */
		{ CAUSE_IDLE, w.engine, join, 300, 50, 1 },    /* after them */
		{ CAUSE_IDLE, w.engine, join, 110, 50, 7 },    /* a sum has no time of its own */
		{ CAUSE_IDLE, w.writer, join, 110, 50, 1 },    /* another thread */
		{ CAUSE_IDLE, w.engine, w.park, 110, 50, 1 },  /* a runtime's worker has nothing to do */
		{ CAUSE_PARK, w.engine, recv, 110, 50, 1 },
		{ CAUSE_IDLE, w.engine, recv, 300, 50, 1 },
		{ CAUSE_PARK, w.engine, recv, 300, 50, 7 },
		{ CAUSE_PARK, w.writer, recv, 300, 50, 1 },    /* whose work is not known */
	};

	for (size_t i = 0; i < ARRAY_LEN(waits); i++)
		waiting_add(&w, w.wait, waits[i].thread, waits[i].stack, waits[i].begin_ms * MS, waits[i].ms * MS, waits[i].count);
	for (unsigned i = 0; i < 3; i++)
		profile_add_mark(s->p, &(struct profile_mark){ .start_ns = (i == 1 ? 150 : 100) * MS, .end_ns = (i == 1 ? 250 : 200) * MS,
							       .thread = i == 2 ? PROFILE_NONE : w.engine,
							       .kind = profile_string(s->p, "block") });
	begin(&t, s->p, NULL);
	for (size_t i = 0; i < ARRAY_LEN(waits); i++)
		if (causes_of(&t.causes, &s->p->samples.v[i]) != waits[i].cause)
			fail_msg("case %zu is %s", i, cause_name(causes_of(&t.causes, &s->p->samples.v[i])));
	end(&t);
	profile_free(s->p);
}

static void mistakes_name_their_line(void **state)
{
	static const struct {
		const char *text, *words;
	} mistakes[] = {
		{ "user = x", "f:1: a [name] must come before 'user'" },
		{ "[a]\ncause = idle\n\n[b]\nuser = x\n", "f:4: no cause = line in pattern 'b'" },
		{ "[a]\nuser = (\ncause = idle", "f:2: '(' is not a regular expression" },
		{ "[a]\nuser = x\nuser = y)(\ncause = idle", "f:3: 'y)(' is not a regular expression" },
		{ "[a]\ncause = tired", "f:2: there is no cause 'tired'" },
		{ "[a]\ncause = cpu", "f:2: there is no cause 'cpu'" },
		{ "[a]\nwaits = futex disc", "f:2: there is no kind of wait 'disc'" },
		{ "[a]\ncolour = red", "f:2: keys are waits, user," },
		{ "[a]\nown = some", "f:2: own can only be none, not 'some'" },
		{ "[a]\ncause =", "f:2: nothing after = for 'cause'" },
		{ "[a", "f:1: no ] at the end of '[a'" },
		{ "[ ]", "f:1: a pattern needs a name" },
		{ "[a]\nnonsense\n", "f:2: neither [name] nor key = value: 'nonsense'" },
		{ "[a]\nand = x\ncause = idle", "f:1: and = needs a user = line" },
		{ "\x7f\x45LF\x01", "f:1: neither [name]" },
		{ "[a]\nwork = x\ncause = idle", "f:1: work = says nothing of a wait" },
		{ "[a]\nwork = (", "f:2: '(' is not a regular expression" },
		{ "[a]\nidle = inside\ncause = park", "f:2: idle can only be outside or child, not 'inside'" },
	};

	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		struct err err = { 0 };
		struct patterns t;

		patterns_init(&t);
		assert_int_equal(patterns_add(&t, "f", mistakes[i].text, &err), -EINVAL);
		if (!strstr(err.text, mistakes[i].words))
			fail_msg("case %zu says: %s", i, err.text);
		assert_int_equal(t.list.n, 0);
		patterns_done(&t);
	}
}

static void too_many_patterns_end_with_a_sentence(void **state)
{
	struct buf_text {
		char text[300 * 24];
	} *b = calloc(1, sizeof(*b));
	struct err err = { 0 };
	struct patterns t;
	size_t n = 0;

	for (int i = 0; i < 300; i++)
		n += snprintf(b->text + n, sizeof(b->text) - n, "[p%d]\ncause=idle\n", i);
	patterns_init(&t);
	assert_int_equal(patterns_add(&t, "f", b->text, &err), -EINVAL);
	assert_non_null(strstr(err.text, "too many patterns"));
	assert_int_equal(t.list.n, 0);
	patterns_done(&t);
	free(b);
}

/* Every cause has a pattern that says something, and patterns whose cause can be helped say how. */
static void the_table_is_complete(void **state)
{
	bool seen[CAUSE_COUNT] = { 0 };
	struct patterns t;

	patterns_init(&t);
	patterns_add_builtin(&t);
	for (size_t i = 0; i < t.list.n; i++) {
		const struct pattern *p = &t.list.v[i];

		seen[p->cause] = true;
		if (!*p->means)
			fail_msg("'%s' means nothing", p->name);
		for (size_t k = 0; k < i; k++)
			if (!strcmp(p->name, t.list.v[k].name))
				fail_msg("'%s' is there twice", p->name);
	}
	for (int c = CAUSE_QUEUE; c < CAUSE_COUNT; c++)
		if (!seen[c])
			fail_msg("no pattern of %s", cause_name(c));
	patterns_done(&t);
}

static void the_scheduler_is_trimmed(void **state)
{
	struct waiting w = waiting_empty();
	const struct profile *p = w.s.p;
	uint32_t stack = cause_trim(p, w.fsync), only = sample_stack(&w.s, "k:schedule;k:__schedule");

	assert_string_equal(cause_frame_name(p, p->stacks.v[stack].frame), "jbd2_log_wait_commit");
	assert_int_equal(cause_trim(p, w.preempted), w.preempted);
	assert_int_equal(cause_trim(p, only), only);
	profile_free(w.s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernel_tells_kinds_of_waits),
		cmocka_unit_test(interrupts_wake_and_not_who_ran),
		cmocka_unit_test(user_code_tells_what_it_means),
		cmocka_unit_test(without_kernel_symbols_unknown_is_said),
		cmocka_unit_test(a_users_patterns_come_first),
		cmocka_unit_test(nameless_functions_are_passed_over),
		cmocka_unit_test(waits_for_a_recorded_child_are_idle),
		cmocka_unit_test(waits_inside_a_block_are_not_idle),
		cmocka_unit_test(waits_within_a_span_are_not_idle),
		cmocka_unit_test(mistakes_name_their_line),
		cmocka_unit_test(too_many_patterns_end_with_a_sentence),
		cmocka_unit_test(the_table_is_complete),
		cmocka_unit_test(the_scheduler_is_trimmed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
