/* test_threadrole.c - threads whose names the kernel has cut, told apart by their functions. */
#include "test.h"

#include "analyze/select.h"
#include "analyze/tree/threadrole.h"
#include "sample.h"

#define STARTED "clone3;start_thread;std::sys::thread::unix::Thread::new::thread_start;" \
		"<alloc::boxed::Box<F> as core::ops::function::FnOnce<Args>>::call_once;" \
		"core::ops::function::FnOnce::call_once{{vtable.shim}};std::sys::backtrace::__rust_begin_short_backtrace;"
#define CLOSURE "ethrex_blockchain::Blockchain::execute_block_pipeline::{{closure}}::{{closure}};"

static const char *name_of(const struct sample *s, uint32_t thread)
{
	return profile_str(s->p, s->p->threads.v[thread].name);
}

/* A thread with samples of some stacks. */
static uint32_t add_thread(struct sample *s, unsigned tid, const char *name, const char *stack, unsigned n)
{
	uint32_t thread = builder_thread(s->p, 0, tid, name);

	sample_add(s, thread, sample_stack(s, "%s", stack), n);
	return thread;
}

static void cut_names_get_their_function(void **state)
{
	struct sample s = sample_empty();
	uint32_t warmer = add_thread(&s, 201, "block_executor_", STARTED CLOSURE "ethrex_levm::LEVM::warm_block;rayon::iter::run", 5);
	uint32_t execution = add_thread(&s, 202, "block_executor_", STARTED CLOSURE "<ethrex_vm::Evm>::execute_block_pipeline;op_sload", 5);
	uint32_t merkle = add_thread(&s, 203, "block_executor_", STARTED CLOSURE "ethrex_blockchain::Blockchain::handle_merkleization;x", 8);
	uint32_t again = add_thread(&s, 204, "block_executor_", STARTED CLOSURE "ethrex_blockchain::Blockchain::handle_merkleization;y", 1);
	uint32_t unseen = builder_thread(s.p, 0, 205, "block_executor_");
	uint32_t whole = add_thread(&s, 206, "block_executor", STARTED "ethrex_rpc::start_block_executor::{{closure}};a::b", 5);
	const char *const kernels[] = { "block_executor_", NULL }, *const one[] = { "*merkle*", NULL };
	_cleanup_free_ uint8_t *picked = NULL;

	/* Most of it is in that function, not all. */
	sample_add(&s, merkle, sample_stack(&s, STARTED CLOSURE "std::time::Instant::now"), 3);
	threadrole_tell_apart(s.p);
	assert_string_equal(name_of(&s, warmer), "block_executor_ (warm_block)");
	assert_string_equal(name_of(&s, execution), "block_executor_ (execute_block_pipeline)");
	assert_string_equal(name_of(&s, merkle), "block_executor_ (handle_merkleization)");
	assert_int_equal(s.p->threads.v[merkle].name, s.p->threads.v[again].name);
	assert_string_equal(name_of(&s, unseen), "block_executor_");
	assert_string_equal(name_of(&s, whole), "block_executor");
	/* --thread takes both names. */
	assert_int_equal(select_threads(s.p, &(struct select_options){ .threads = kernels }, &picked, NULL), 0);
	assert_true(picked[warmer] && picked[merkle] && picked[unseen] && !picked[whole]);
	free(picked);
	assert_int_equal(select_threads(s.p, &(struct select_options){ .threads = one }, &picked, NULL), 0);
	assert_true(!picked[warmer] && picked[merkle] && picked[again] && !picked[unseen]);
	profile_free(s.p);
}

/* Workers of one kind stay one, whatever each of them did. */
static void workers_of_a_kind_stay_one(void **state)
{
	struct sample s = sample_empty();
	uint32_t threads[8];
	size_t n = 0;

	threads[n++] = add_thread(&s, 201, "tokio-runtime-w", STARTED "tokio::runtime::blocking::pool::Inner::run;app::rpc", 5);
	threads[n++] = add_thread(&s, 202, "tokio-runtime-w", STARTED "tokio::runtime::blocking::pool::Inner::run;app::p2p", 5);
	threads[n++] = add_thread(&s, 203, "pool-worker-lon", STARTED "app::Pool::start::{{closure}};app::task_a", 5);
	threads[n++] = add_thread(&s, 204, "pool-worker-lon", STARTED "app::Pool::start::{{closure}};app::task_b", 5);
	for (size_t i = 2; i < 4; i++) /* half of the time they wait for work, within the closure */
		sample_add(&s, threads[i], sample_stack(&s, STARTED "app::Pool::start::{{closure}};std::sync::mpmc::recv"), 5);
	/* Cut stacks say nothing; names that differ need no help. */
	threads[n++] = add_thread(&s, 205, "cut-stacks-of-a", STARTED "app::one;x", 5);
	threads[n++] = add_thread(&s, 206, "cut-stacks-of-b", STARTED "app::two;x", 5);
	threadrole_tell_apart(s.p);
	for (size_t i = 0; i < n; i++)
		if (s.p->threads.v[threads[i]].comm)
			fail_msg("thread %zu is called %s", i, name_of(&s, threads[i]));
	profile_free(s.p);
}

/* A C program's threads begin with its main thread's name. */
static void threads_of_c_programs(void **state)
{
	struct sample s = sample_empty();
	uint32_t first = add_thread(&s, 201, "long-named-prog", "_start;__libc_start_main;main;loop", 5);
	uint32_t second = add_thread(&s, 202, "long-named-prog", "clone3;start_thread;write_back(void *);flush", 5);

	threadrole_tell_apart(s.p);
	assert_string_equal(name_of(&s, first), "long-named-prog (main)");
	assert_string_equal(name_of(&s, second), "long-named-prog (write_back)");
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_names_get_their_function),
		cmocka_unit_test(workers_of_a_kind_stay_one),
		cmocka_unit_test(threads_of_c_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
