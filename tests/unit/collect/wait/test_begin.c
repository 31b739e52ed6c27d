/* A thread that was watched before the recording began, when it begins. */
#include "test.h"

#include "collect/wait/begin.h"

static struct shared_thread thread_in(enum shared_state state, uint64_t since_ns)
{
	return (struct shared_thread){ .account = { .state = state, .since_ns = since_ns }, .stack = 7, .left_ns = 100, .blocked_ns = 30,
				       .queue_ns = 20, .throttled_ns = 10, .waker_stack = 5, .kernel_run_ns = 1, .has_kernel = 1 };
}

/* The wait goes on, with its stack: what of it is in the recording begins with that. */
static void a_wait_is_cut_at_the_beginning(void **state)
{
	static const enum shared_state states[] = { STATE_BLOCKED, STATE_READY };

	for (int i = 0; i < 2; i++) {
		struct shared_thread t = thread_in(states[i], 150);

		begin_thread(&t, 1000);
		assert_int_equal(t.account.state, states[i]);
		assert_int_equal(t.account.since_ns, 1000);
		assert_int_equal(t.left_ns, 1000);
		assert_int_equal(t.stack, 7);
		assert_int_equal(t.blocked_ns + t.queue_ns + t.throttled_ns, 0);
		assert_int_equal(t.waker_stack, 0);
		assert_int_equal(t.kernel_run_ns, 1);
	}
}

static void a_wait_that_was_over_is_none(void **state)
{
	struct shared_thread t = thread_in(STATE_RUNNING, 150);

	begin_thread(&t, 1000);
	assert_int_equal(t.account.since_ns, 1000);
	assert_int_equal(t.left_ns, 0);
	assert_int_equal(t.blocked_ns + t.queue_ns, 0);
}

static void what_came_later_stays(void **state)
{
	struct shared_thread t = thread_in(STATE_READY, 1000), was = t;

	begin_thread(&t, 1000);
	assert_memory_equal(&t, &was, sizeof(t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_is_cut_at_the_beginning),
		cmocka_unit_test(a_wait_that_was_over_is_none),
		cmocka_unit_test(what_came_later_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
