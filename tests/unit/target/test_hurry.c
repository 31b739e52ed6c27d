/* When a recorder is starved, and not merely on a busy machine. */
#include "test.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/hurry.h"

static void starved(void **state)
{
	const uint64_t second = 1000000000;

	assert_false(hurry_needed(0, 0));
	assert_false(hurry_needed(second / 100, second / 100)); /* too short to tell */
	assert_false(hurry_needed(second, 0));
	assert_false(hurry_needed(second, second * 3 / 4));
	assert_true(hurry_needed(second, second * 85 / 100));
	assert_true(hurry_needed(40 * second, 40 * second));
}

static pid_t child_that_waits(void)
{
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A program that we started is recorded as it would run without us. */
static void a_target_keeps_its_priority(void **state)
{
	pid_t helper = child_that_waits(), target = child_that_waits(), late;
	int status;

	hurry_spare(target);
	if (hurry_raise()) {
		assert_int_equal(sched_getscheduler(helper), SCHED_RR);
		assert_int_equal(sched_getscheduler(target), SCHED_OTHER);
		late = fork();
		if (!late) {
			hurry_leave();
			_exit(sched_getscheduler(0) == SCHED_OTHER ? 0 : 1);
		}
		assert_int_equal(waitpid(late, &status, 0), late);
		assert_int_equal(status, 0);
		hurry_leave();
	}
	end_child(helper);
	end_child(target);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(starved), cmocka_unit_test(a_target_keeps_its_priority) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
