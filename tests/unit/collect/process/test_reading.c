/*
 * test_reading.c - one look at a process does for all records of a reading, and what a reading has told of.
 */
#include "test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/process/processes.h"
#include "profile/profile.h"

static void no_announce(void *context, uint32_t module)
{
}

static void no_table(void *context, uint32_t module, const struct unwind_table *table)
{
}

static void no_mappings(void *context, pid_t pid, uint64_t born, const struct shared_mapping *list, uint32_t count)
{
}

static void no_gone(void *context, pid_t pid, uint64_t born)
{
}

static const struct processes_sink sink = { .announce = no_announce, .table = no_table, .mappings = no_mappings, .gone = no_gone };

struct one {
	struct profile *profile;
	struct processes *ps;
	pid_t child;
};

static pid_t wait_forever(void)
{
	pid_t child = fork();

	if (!child)
		for (;;)
			pause();
	return child;
}

static int set_up(void **state)
{
	static struct one one;

	one = (struct one){ .profile = profile_new(), .child = wait_forever() };
	one.ps = processes_new(one.profile, false);
	processes_set_sink(one.ps, &sink, NULL);
	processes_set_start(one.ps, clock_mono_ns());
	assert_int_equal(processes_add(one.ps, one.child, true, NULL), 0);
	*state = &one;
	return 0;
}

static void end_child(struct one *one)
{
	if (one->child)
		kill(one->child, SIGKILL);
	if (one->child)
		waitpid(one->child, NULL, 0);
}

static int tear_down(void **state)
{
	struct one *one = *state;

	processes_free(one->ps);
	profile_free(one->profile);
	return 0;
}

/* The process ends between two records of a reading: they were written before, so the first look was right for both. Records of
 * the next reading may be a stranger's. */
static void one_look_does_for_a_reading(void **state)
{
	struct one *one = *state;

	processes_begin_reading(one->ps);
	assert_true(processes_still(one->ps, one->child));
	end_child(one);
	assert_true(processes_still(one->ps, one->child));
	assert_false(processes_end_reading(one->ps));
	processes_begin_reading(one->ps);
	assert_false(processes_still(one->ps, one->child));
	assert_false(processes_end_reading(one->ps));
}

/* Readers that do not say where a reading begins have a look for each record. */
static void without_a_reading_each_is_looked_at(void **state)
{
	struct one *one = *state;

	processes_begin_reading(one->ps);
	assert_true(processes_still(one->ps, one->child));
	processes_end_reading(one->ps);
	assert_true(processes_still(one->ps, one->child));
	end_child(one);
	assert_false(processes_still(one->ps, one->child));
}

/* Names can wait; processes and mappings cannot. */
static void names_are_no_news(void **state)
{
	struct one *one = *state;
	pid_t other = wait_forever();

	processes_thread(one->ps, one->child, one->child, "before", clock_mono_ns());
	processes_begin_reading(one->ps);
	processes_rename(one->ps, one->child, one->child, "after");
	processes_thread_exit(one->ps, one->child, one->child, clock_mono_ns());
	assert_false(processes_end_reading(one->ps));
	processes_begin_reading(one->ps);
	processes_fork(one->ps, one->child, other, clock_mono_ns());
	assert_true(processes_end_reading(one->ps));
	processes_begin_reading(one->ps);
	processes_exec(one->ps, other, clock_mono_ns());
	assert_true(processes_end_reading(one->ps));
	processes_begin_reading(one->ps);
	processes_dirty_all(one->ps);
	assert_true(processes_end_reading(one->ps));
	processes_begin_reading(one->ps);
	assert_false(processes_end_reading(one->ps));
	end_child(&(struct one){ .child = other });
	end_child(one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_look_does_for_a_reading, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_reading_each_is_looked_at, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_are_no_news, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
