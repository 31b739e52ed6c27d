#include "analyze/task/taskparts.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"

enum {
	INSTANCE = 1, /* generic: compiled once for each type of future or closure */
	WHOLE = 2,    /* the text is the whole name */
};

/* The first that matches counts. */
static const struct rule {
	const char *text; /* the name begins with it, behind "<" and such */
	const char *and;  /* and has this text later; NULL = no need */
	enum taskpart part;
	unsigned flags;
	const char *pool;
} rules[] = {
	{ "tokio::runtime::task::raw::poll", NULL, TASKPART_POLL, INSTANCE, NULL },
	{ "tokio::runtime::task::harness::", "poll", TASKPART_POLL_IN, INSTANCE, NULL },
	{ "tokio::runtime::task::core::Core", "poll", TASKPART_POLL_IN, INSTANCE, NULL },
	{ "tokio::runtime::blocking::pool::Inner::run", NULL, TASKPART_BLOCKING, 0, NULL },
	{ "tokio::runtime::blocking::pool::Inner>::run", NULL, TASKPART_BLOCKING, 0, NULL },
	{ "tokio::runtime::", "block_on", TASKPART_BLOCK_ON, INSTANCE, NULL },
	{ "tokio::task::local::LocalSet", "block_on", TASKPART_BLOCK_ON, INSTANCE, NULL },
	{ "tokio::runtime::scheduler::multi_thread", "::worker::run", TASKPART_WORKER, 0, NULL },
	{ "tokio::runtime::scheduler::multi_thread", "::worker::Context", TASKPART_WORKER, 0, NULL },
	{ "tokio::runtime::scheduler::multi_thread", "Launch", TASKPART_WORKER, 0, NULL },
	{ "tokio::runtime::scheduler::current_thread", "Context", TASKPART_WORKER, 0, NULL },
	{ "tokio::runtime::thread_pool::worker::", NULL, TASKPART_WORKER, 0, NULL }, /* before 1.22 */
	{ "futures_executor::local_pool::block_on", NULL, TASKPART_BLOCK_ON, INSTANCE, NULL },
	{ "futures_lite::future::block_on", NULL, TASKPART_BLOCK_ON, INSTANCE, NULL },
	{ "async_io::driver::block_on", NULL, TASKPART_BLOCK_ON, INSTANCE, NULL },
	{ "pollster::block_on", NULL, TASKPART_BLOCK_ON, INSTANCE, NULL },
	{ "async_task::raw::RawTask", "run", TASKPART_TASK_RUN, INSTANCE, NULL },
	{ "rayon_core::job::StackJob", "execute", TASKPART_RAYON_JOB, INSTANCE, NULL },
	{ "rayon_core::job::HeapJob", "execute", TASKPART_RAYON_JOB, INSTANCE, NULL },
	{ "rayon_core::job::ArcJob", "execute", TASKPART_RAYON_JOB, INSTANCE, NULL },
	{ "rayon_core::registry::ThreadBuilder", "run", TASKPART_RAYON, 0, NULL },
	{ "rayon_core::registry::WorkerThread", "wait_until", TASKPART_RAYON, 0, NULL },
	{ "rayon_core::registry::main_loop", NULL, TASKPART_RAYON, 0, NULL },
	{ "std::sys_common::backtrace::__rust_begin_short_backtrace", NULL, TASKPART_THREAD, INSTANCE, NULL },
	{ "std::sys::backtrace::__rust_begin_short_backtrace", NULL, TASKPART_THREAD, INSTANCE, NULL },
	{ "std::sys::", "thread_start", TASKPART_THREAD, 0, NULL },
	{ "std::thread::_State_impl", "_M_run", TASKPART_THREAD, 0, NULL },
	{ "std::rt::lang_start", NULL, TASKPART_MAIN, 0, NULL },
	{ "libc_start_", NULL, TASKPART_MAIN, 0, NULL },
	{ "start_thread", NULL, TASKPART_THREAD, WHOLE, NULL },
	{ "clone3", NULL, TASKPART_THREAD, WHOLE, NULL },
	{ "clone", NULL, TASKPART_THREAD, WHOLE, NULL },
	{ "execute_native_thread_routine", NULL, TASKPART_THREAD, WHOLE, NULL },
	{ "runtime.goexit", NULL, TASKPART_GOROUTINE, 0, NULL },
	{ "runtime.mstart", NULL, TASKPART_GO, 0, NULL },
	{ "runtime.mcall", NULL, TASKPART_GO, 0, NULL },
	{ "runtime.systemstack", NULL, TASKPART_GO, 0, NULL },
	{ "runtime.morestack", NULL, TASKPART_GO, 0, NULL },
	{ "runtime.rt0_go", NULL, TASKPART_GO, 0, NULL },
	{ "core::ops::function::FnOnce::call_once{{vtable.shim}}", NULL, TASKPART_BOXED, INSTANCE, NULL },
	{ "alloc::boxed::Box", "FnOnce<Args>>::call_once", TASKPART_BOXED, 0, NULL },
	{ "std::_Function_handler", "_M_invoke", TASKPART_BOXED, INSTANCE, NULL },
	{ "futures_executor::thread_pool::PoolState", "work", TASKPART_LOOP, 0, "futures pool" },
	{ "blocking::Executor", "main_loop", TASKPART_LOOP, 0, "blocking" },
	{ "threadpool::spawn_in_pool", NULL, TASKPART_LOOP, 0, "threadpool" },
	{ "boost::asio::detail::scheduler::", "run", TASKPART_LOOP, 0, "asio" },
	{ "node::(anonymous namespace)::PlatformWorkerThread", NULL, TASKPART_LOOP, 0, "V8 platform" },
	{ "node::PlatformWorkerThread", NULL, TASKPART_LOOP, 0, "V8 platform" },
	{ "gomp_thread_start", NULL, TASKPART_LOOP, WHOLE, "OpenMP" },
	{ "g_thread_pool_thread_proxy", NULL, TASKPART_LOOP, WHOLE, "GLib" },
	{ "uv__queue_work", NULL, TASKPART_LOOP, WHOLE, "libuv" },
	{ "uv__fs_work", NULL, TASKPART_JOB, WHOLE, "libuv" },
	{ "uv__getaddrinfo_work", NULL, TASKPART_JOB, WHOLE, "libuv" },
	{ "uv__getnameinfo_work", NULL, TASKPART_JOB, WHOLE, "libuv" },
	{ "uv__random_work", NULL, TASKPART_JOB, WHOLE, "libuv" },
};

/* Where the name itself begins: behind the signs before a type, what a function of C++ returns, and underscores of C. */
static const char *begin_of(const char *name)
{
	name += strspn(name, "<&*([");
	while (str_starts(name, "mut ") || str_starts(name, "dyn ") || str_starts(name, "void "))
		name += strcspn(name, " ") + 1;
	return name + strspn(name, "_");
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

struct taskpart_of taskpart_of_name(const char *name)
{
	const char *s = begin_of(name);

	for (const struct rule *r = rules; r < rules + ARRAY_LEN(rules); r++) {
		const char *rest;

		/* Most names differ in the first letter. */
		if (*r->text != *s || !str_starts(s, r->text))
			continue;
		rest = s + strlen(r->text);
		if ((!r->and || strstr(rest, r->and)) && !(r->flags & WHOLE && is_word(*rest)))
			return (struct taskpart_of){ r->part, r->pool, r->flags & INSTANCE };
	}
	/* `<a::f::{closure#0} as core::ops::function::FnOnce<()>>::call_once::{shim:vtable#0}` */
	if (strstr(name, "::{shim:vtable"))
		return (struct taskpart_of){ TASKPART_BOXED, NULL, true };
	return (struct taskpart_of){ 0 };
}

bool taskpart_is_go_wrapper(const char *name)
{
	static const char *const begins[] = { "sync.(*WaitGroup).Go", "golang.org/x/sync/errgroup.", "testing.tRunner",
					      "github.com/sourcegraph/conc" };
	const char *last = strrchr(name, '.');

	for (size_t i = 0; i < ARRAY_LEN(begins); i++)
		if (str_starts(name, begins[i]))
			return true;
	/* `go f(x)`: the compiler's closure is called as the function that it stands in, and has no other frame. */
	return !strcmp(name, "runtime.main") || (last && str_starts(last, ".gowrap"));
}

bool taskpart_is_go_runtime(const char *name)
{
	return str_starts(name, "runtime.");
}
