/* test_tasktype.c - the unit of work of a stack: tasks, jobs, goroutines, and their names. */
#include "test.h"

#include "analyze/task/tasktype.h"
#include "base/text/taskname.h"
#include "sample.h"

#define STARTED "__clone3;start_thread;<std::sys::thread::unix::Thread>::new::thread_start;" \
		"core::ops::function::FnOnce::call_once{{vtable.shim}};std::sys::backtrace::__rust_begin_short_backtrace;"
#define POOL STARTED "tokio::runtime::blocking::pool::Inner::run;"
#define WORKER POOL "tokio::runtime::task::raw::poll;tokio::runtime::scheduler::multi_thread::worker::run;" \
	"tokio::runtime::scheduler::multi_thread::worker::Context::run_task;"
#define RAYON STARTED "rayon_core::registry::ThreadBuilder::run;rayon_core::registry::WorkerThread::wait_until_cold;"
#define JOB "<rayon_core::job::StackJob<L,F,R> as rayon_core::job::Job>::execute;"

static void functions_have_names(void **state)
{
	static const struct {
		const char *function, *name; /* NULL: it is a wrapper */
		enum taskname_rank rank;
	} cases[] = {
		{ "<anvil::service::NodeService<N> as core::future::future::Future>::poll", "anvil::service::NodeService", TASKNAME_UNIT },
		{ "axum::serve::handle_connection::{{closure}}::{{closure}}", "axum::serve::handle_connection", TASKNAME_UNIT },
		{ "anvil::eth::api::EthApi<foundry_primitives::network::FoundryNetwork>::mine_one::{{closure}}",
		  "anvil::eth::api::EthApi::mine_one", TASKNAME_UNIT },
		{ "a::serve::{closure#0}::{closure#3}", "a::serve::{closure#3}", TASKNAME_UNIT },
		{ "<a::Node<b::Net>>::run::<c::D>::{closure#0}", "a::Node::run", TASKNAME_UNIT },
		{ "<<a::Node as b::Runs>::run::{closure#0} as core::future::future::Future>::poll", "a::Node::run", TASKNAME_UNIT },
		{ "a::m::<impl b::Trait for c::Type<T>>::go", "c::Type::go", TASKNAME_FUNCTION },
		{ "<a::B as tower_service::Service<R>>::call", "a::B::call", TASKNAME_FUNCTION },
		{ "<hyper::proto::h1::dispatch::Dispatcher<D,Bs,I,T>>::poll_loop", "hyper::proto::h1::dispatch::Dispatcher::poll_loop",
		  TASKNAME_FUNCTION },
		{ "<core::pin::Pin<P> as core::future::future::Future>::poll", NULL, TASKNAME_NOTHING },
		{ "<tracing::instrument::Instrumented<T> as core::future::future::Future>::poll", NULL, TASKNAME_NOTHING },
		{ "<futures_util::future::future::map::Map<Fut,F> as core::future::future::Future>::poll", NULL, TASKNAME_NOTHING },
		{ "<F as futures_core::future::TryFuture>::try_poll", NULL, TASKNAME_NOTHING },
		{ "<core::panic::unwind_safe::AssertUnwindSafe<F> as core::ops::function::FnOnce<()>>::call_once", NULL, TASKNAME_NOTHING },
		{ "std::panicking::try::do_call", NULL, TASKNAME_NOTHING },
		{ "rayon::iter::plumbing::bridge_producer_consumer::helper", NULL, TASKNAME_NOTHING },
		{ "alloc::vec::Vec<T,A>::retain::{{closure}}", "alloc::vec::Vec::retain", TASKNAME_LIBRARY },
		{ "tokio::sync::batch_semaphore::Semaphore::add_permits_locked", "tokio::sync::batch_semaphore::Semaphore::add_permits_locked",
		  TASKNAME_LIBRARY },
		{ "main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator", TASKNAME_FUNCTION },
		{ "void node::(anonymous namespace)::Work(int)", "node::(anonymous namespace)::Work", TASKNAME_FUNCTION },
		{ "", NULL, TASKNAME_NOTHING },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_free_ char *name = taskname_of_function(cases[i].function);

		if (!name != !cases[i].name || (name && strcmp(name, cases[i].name)))
			fail_msg("%s: %s", cases[i].function, name ? name : "(none)");
		if (taskname_rank(cases[i].function) != cases[i].rank)
			fail_msg("%s: rank %d", cases[i].function, taskname_rank(cases[i].function));
	}
}

static void types_have_names(void **state)
{
	static const struct {
		const char *type, *name;
	} cases[] = {
		{ "tracing::instrument::Instrumented<a::serve::{{closure}}>", "a::serve" },
		{ "futures_util::future::map::Map<core::pin::Pin<alloc::boxed::Box<b::C<D>>>, e::f::{{closure}}>", "e::f" },
		{ "futures_util::future::map::Map<core::pin::Pin<alloc::boxed::Box<b::C<D>>>, fn(u8) -> u8>", "b::C" },
		{ "core::pin::Pin<alloc::boxed::Box<dyn core::future::future::Future<Output = ()> + core::marker::Send>>", NULL },
		{ "futures_util::future::abortable::Abortable<futures_util::future::select::Select<a::B, u64>>", "a::B" },
		{ "tokio::runtime::blocking::task::BlockingTask<a::read::{closure#1}>", "a::read::{closure#1}" },
		{ "a::Node<tracing::Span>", "a::Node" },
		{ "T", NULL },
		{ "", NULL },
		{ "alloc::vec::Vec<<<<<((((", NULL },
	};
	_cleanup_free_ char *v0 = taskname_of_arguments("tokio::runtime::task::raw::poll::<truth::reader::{closure#0}, "
			"alloc::sync::Arc<tokio::runtime::scheduler::multi_thread::handle::Handle>>");
	_cleanup_free_ char *thread = taskname_of_arguments("std::sys::backtrace::__rust_begin_short_backtrace::<"
			"<std::thread::Builder>::spawn_unchecked_<truth::main::{closure#2}, ()>::{closure#1}, ()>");
	_cleanup_free_ char *job = taskname_of_arguments("<rayon_core::job::StackJob<rayon_core::latch::SpinLatch, "
			"rayon_core::join::join_context::call_b<(), rayon::iter::plumbing::bridge_producer_consumer::helper<"
			"rayon::slice::IterProducer<data::Row>, rayon::iter::for_each::ForEachConsumer<truth::sum::{closure#0}>>::"
			"{closure#1}>::{closure#0}, ()> as rayon_core::job::Job>::execute");
	_cleanup_free_ char *old = taskname_of_arguments("tokio::runtime::task::raw::poll");

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_free_ char *name = taskname_of_type(cases[i].type);

		if (!name != !cases[i].name || (name && strcmp(name, cases[i].name)))
			fail_msg("%s: %s", cases[i].type, name ? name : "(none)");
	}
	assert_string_equal(v0, "truth::reader");
	assert_string_equal(thread, "truth::main::{closure#2}");
	assert_string_equal(job, "truth::sum");
	assert_null(old);
}

/* A stack, and "pool: kind name" of its unit. */
static void expect(const struct sample *s, const struct tasktypes *t, uint32_t stack, const char *want, const char *about)
{
	const struct tasktype *x = &t->list.v[tasktypes_of(t, stack)];
	_cleanup_free_ char *is = mem_printf("%s: %s %s", x->pool, tasktype_kind_name(x->kind), x->name);

	if (strcmp(is, want))
		fail_msg("%s\nis   %s\nwant %s", about, is, want);
	(void)s;
}

static void stacks_have_units(void **state)
{
	static const struct {
		const char *stack, *unit;
	} cases[] = {
		{ WORKER "tokio::runtime::task::raw::poll;tokio::runtime::task::harness::Harness<T,S>::poll;"
		  "tokio::runtime::task::core::Core<T,S>::poll;<tracing::instrument::Instrumented<T> as core::future::future::Future>::poll;"
		  "<anvil::service::NodeService<N> as core::future::future::Future>::poll;anvil::fees", "tokio: task anvil::service::NodeService" },
		{ WORKER "tokio::runtime::task::raw::poll;i:tokio::runtime::task::core::Core<T,S>::poll;i:std::panicking::try;"
		  "i:app::serve::{{closure}};app::inner::{{closure}}", "tokio: task app::serve" },
		{ WORKER "tokio::runtime::context::runtime::x", "tokio: runtime [runtime]" },
		{ POOL "tokio::runtime::task::raw::poll;app::mine_one::{{closure}};x", "tokio blocking: blocking app::mine_one" },
		/* A job that blocks on a future, and a task that does, stay what they are. */
		{ POOL "tokio::runtime::task::raw::poll;app::job::{{closure}};tokio::runtime::handle::Handle::block_on;app::inner::{{closure}}",
		  "tokio blocking: blocking app::job" },
		{ POOL "parking_lot::condvar::Condvar::wait_until_internal;syscall", "tokio blocking: runtime [runtime]" },
		{ "_start;__libc_start_main;main;app::main;tokio::runtime::runtime::Runtime::block_on;"
		  "tokio::runtime::park::CachedParkThread::block_on;app::main::{{closure}};x", "block_on: block_on app::main" },
		/* A runtime of one thread polls tasks there; and a LocalSet does within the future. */
		{ "main;app::main;tokio::runtime::runtime::Runtime::block_on;tokio::runtime::scheduler::current_thread::Context::run_task;"
		  "tokio::runtime::task::raw::poll;app::local::{{closure}};x", "tokio: task app::local" },
		{ "main;app::main;tokio::runtime::runtime::Runtime::block_on;app::main::{{closure}};tokio::task::local::LocalSet::tick;"
		  "tokio::runtime::task::raw::poll;app::local::{{closure}};x", "tokio: task app::local" },
		{ RAYON JOB "rayon_core::join::join_context::{{closure}};rayon::iter::plumbing::bridge_producer_consumer::helper;"
		  "core::iter::traits::iterator::Iterator::for_each;app::sum::{{closure}};x", "rayon: rayon app::sum" },
		/* While it waits for a part of its job, a worker runs another one. */
		{ RAYON JOB "app::sum::{{closure}};rayon_core::join::join_context::{{closure}};rayon_core::registry::WorkerThread::wait_until_cold;"
		  JOB "app::hash::{{closure}}", "rayon: rayon app::hash" },
		{ RAYON "crossbeam_deque::Stealer<T>::steal", "rayon: runtime [runtime]" },
		{ STARTED "app::watch::{{closure}};app::loop", "threads: thread app::watch" },
		{ STARTED "crossbeam_utils::thread::ScopedThreadBuilder::spawn::{{closure}};app::scoped::{{closure}}", "threads: thread app::scoped" },
		{ STARTED "threadpool::spawn_in_pool::{{closure}};<F as threadpool::FnBox>::call_box;app::job::{{closure}}",
		  "threadpool: job app::job" },
		/* A pool of the program's own: closures out of a queue. */
		{ STARTED "app::Pool::start::{{closure}};core::ops::function::FnOnce::call_once{{vtable.shim}};app::index::{{closure}};x",
		  "threads: job app::index" },
		{ STARTED "<app::Pool>::start::{closure#0};<app::index::{closure#1} as core::ops::function::FnOnce<()>>::call_once::{shim:vtable#0};"
		  "app::index::{closure#1}", "threads: job app::index::{closure#1}" },
		{ STARTED "app::Pool::start::{{closure}};std::sync::mpmc::recv", "threads: thread app::Pool::start" },
		{ "l:__clone3;l:start_thread;bioProcessBackgroundJobs;l:read", "threads: thread bioProcessBackgroundJobs" },
		{ "l:__clone3;l:start_thread;execute_native_thread_routine;std::thread::_State_impl<std::thread::_Invoker<std::tuple<int> > >::_M_run();"
		  "void std::__invoke_impl<void, void (*)(int)>(std::__invoke_other, int);app::work(int)", "threads: thread app::work" },
		{ "l:__clone3;l:start_thread;worker;uv__fs_work;l:read", "libuv: job uv__fs_work" },
		{ "l:__clone3;l:start_thread;worker;uv__queue_work;node::crypto::HashJob::DoThreadPoolWork()", "libuv: job node::crypto::HashJob::DoThreadPoolWork" },
		{ "l:__clone3;l:start_thread;node::(anonymous namespace)::PlatformWorkerThread(void*);v8::internal::Job::Run()",
		  "V8 platform: job v8::internal::Job::Run" },
		{ "runtime.goexit;net/http.(*conn).serve;main.handler;runtime.mcall", "Go: goroutine net/http.(*conn).serve" },
		{ "runtime.goexit;runtime.main;main.main;x", "Go: goroutine main.main" },
		{ "runtime.goexit;a/bundler.(*scanner).maybeParseFile.gowrap1;a/bundler.parseFile;x", "Go: goroutine a/bundler.parseFile" },
		{ "runtime.goexit;sync.(*WaitGroup).Go.func1;main.work.func2;x", "Go: goroutine main.work.func2" },
		{ "runtime.goexit;runtime.gcBgMarkWorker;runtime.systemstack;runtime.gcDrain", "Go: runtime [runtime]" },
		{ "runtime.mstart;runtime.schedule;runtime.findRunnable", "Go: runtime [runtime]" },
		{ "_start;__libc_start_main;main;app::main;x", ":  " },
		{ "_start;main;std::rt::lang_start::{{closure}};std::sys::backtrace::__rust_begin_short_backtrace;app::main;x", ":  " },
		{ "l:__clone3;l:start_thread;l:read;k:ksys_read", ":  " },
		{ "!no table;?;app::callback", ":  " },
		{ "clone_of_sheep;x", ":  " },
	};
	struct sample s = sample_empty();
	uint32_t stacks[ARRAY_LEN(cases)];
	struct tasktypes t;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		stacks[i] = sample_stack(&s, "%s", cases[i].stack);
	tasktypes_init(&t, s.p);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		expect(&s, &t, stacks[i], cases[i].unit, cases[i].stack);
	assert_int_equal(tasktypes_of(&t, 0), 0);
	/* Stacks that came later are of no type until the table has grown. */
	stacks[0] = sample_stack(&s, WORKER "tokio::runtime::task::raw::poll;app::late::{{closure}}");
	assert_int_equal(tasktypes_of(&t, stacks[0]), 0);
	tasktypes_grow(&t);
	expect(&s, &t, stacks[0], "tokio: task app::late", "late");
	tasktypes_done(&t);
	profile_free(s.p);
}

/* A frame of the instance of a generic function. */
static uint32_t instance(struct sample *s, uint32_t parent, const char *name, const char *linkage)
{
	uint32_t frame = profile_frame(s->p, s->node, FRAME_USER, 0x20000 + s->p->frames.n);
	const struct profile_function f = { .name = profile_string(s->p, name), .linkage = profile_string(s->p, linkage), .module = s->node };
	const struct profile_line line = { .function = profile_function(s->p, &f) };

	profile_set_lines(s->p, frame, &line, 1);
	return profile_stack(s->p, parent, frame);
}

/* Without inlined frames, stacks of one raw::poll begin with whatever its future calls. */
static void an_instance_is_one_type(void **state)
{
	static const char poll[] = "tokio::runtime::task::raw::poll";
	struct sample s = sample_empty();
	uint32_t a = instance(&s, sample_stack(&s, WORKER), poll, "_ZN4poll17haaE"), b = instance(&s, sample_stack(&s, WORKER), poll, "_ZN4poll17hbbE");
	uint32_t boxed = instance(&s, sample_stack(&s, WORKER), poll, "_ZN4poll17hccE");
	uint32_t job = instance(&s, sample_stack(&s, STARTED), poll, "_ZN4poll17hddE");
	uint32_t begin = instance(&s, 0, "std::sys::backtrace::__rust_begin_short_backtrace", "_ZN5begin17heeE"), launch, v0;
	uint32_t service = sample_below(&s, a, "<app::Service<N> as core::future::future::Future>::poll;app::x");
	uint32_t sent = sample_below(&s, a, "futures_channel::oneshot::Sender<T>::send;mio::waker::Waker::wake;write");
	uint32_t made = sample_below(&s, b, "app::make_entry;app::y"), inserted = sample_below(&s, b, "hashbrown::map::HashMap<K,V,S,A>::insert");
	uint32_t one = sample_below(&s, boxed, "app::one::{{closure}}"), two = sample_below(&s, boxed, "app::two::{{closure}};a;b");
	uint32_t neither = sample_below(&s, boxed, "core::ptr::drop_in_place<T>"), parked, idle, mined = sample_below(&s, job, "app::mine::{{closure}};c");
	struct tasktypes t;

	parked = sample_below(&s, job, "tokio::runtime::park::CachedParkThread::park;parking_lot::condvar::Condvar::wait_until_internal;syscall");
	launch = instance(&s, instance(&s, begin, poll, "_ZN4poll17hffE"), poll, "_ZN4poll17haaE");
	idle = sample_below(&s, begin, "parking_lot::condvar::Condvar::wait_until_internal;syscall");
	v0 = instance(&s, sample_stack(&s, WORKER), "tokio::runtime::task::raw::poll::<app::named::{closure#0}, alloc::sync::Arc<S>>", "_RNvPoll");
	tasktypes_init(&t, s.p);
	expect(&s, &t, service, "tokio: task app::Service", "its future");
	expect(&s, &t, sent, "tokio: task app::Service", "a callee of the future, inlined");
	expect(&s, &t, a, "tokio: task app::Service", "raw::poll itself");
	expect(&s, &t, made, "tokio: task app::make_entry", "a function is better than nothing");
	expect(&s, &t, inserted, "tokio: task app::make_entry", "and names the rest");
	expect(&s, &t, one, "tokio: task app::one", "two futures in boxes");
	expect(&s, &t, two, "tokio: task app::two", "two futures in boxes");
	expect(&s, &t, neither, "tokio: task app::two", "most of the stacks are that one's");
	expect(&s, &t, mined, "tokio blocking: blocking app::mine", "a job");
	expect(&s, &t, parked, "tokio blocking: blocking app::mine", "the same one, parked");
	expect(&s, &t, launch, "tokio: task app::Service", "a task below the worker, whose loop was inlined");
	expect(&s, &t, idle, "tokio blocking: runtime [runtime]", "a pool without its loop's name");
	expect(&s, &t, v0, "tokio: task app::named", "the name of raw::poll itself");
	tasktypes_done(&t);
	profile_free(s.p);
}

static void an_empty_profile_has_none(void **state)
{
	struct profile *p = profile_new();
	struct tasktypes t;

	tasktypes_init(&t, p);
	assert_int_equal(t.list.n, 1);
	assert_int_equal(tasktypes_of(&t, 0), 0);
	assert_false(tasktypes_may_begin(&t, 0));
	tasktypes_done(&t);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_have_names),
		cmocka_unit_test(types_have_names),
		cmocka_unit_test(stacks_have_units),
		cmocka_unit_test(an_instance_is_one_type),
		cmocka_unit_test(an_empty_profile_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
