/* Who leaves out what to keep the budget of an agent. */
#include "test.h"

#include "base/mem.h"
#include "cmd/agent/levels.h"
#include "fleet/agent/agentconf.h"

static void expect_what(const char *what, unsigned level, const char *want)
{
	const struct agentconf_target t = { .what = (char *)what };
	_cleanup_free_ char *got = levels_what(&t, level);

	assert_string_equal(got, want);
}

static void test_what(void **state)
{
	expect_what("cpu,wait,mem", 0, "cpu,wait,mem");
	expect_what("cpu,wait,mem", 1, "cpu,mem");
	expect_what("wait,cpu,io,mem,fault", 1, "cpu,mem");
	expect_what("wait,cpu,io,mem,fault", LEVELS - 1, "cpu,mem");
	expect_what("wait,io,fault", 0, "wait,io,fault");
	/* Something is always recorded. */
	expect_what("wait,io,fault", 1, "cpu");
	expect_what("wait", 3, "cpu");
	expect_what("mem", 3, "mem");
}

static void test_hz(void **state)
{
	const struct agentconf_target t = { .hz = 99 }, slow = { .hz = 1 };

	assert_int_equal(levels_hz(&t, 0), 99);
	assert_int_equal(levels_hz(&t, 1), 99);
	assert_int_equal(levels_hz(&t, 2), 49);
	assert_int_equal(levels_hz(&t, 3), 24);
	for (unsigned i = 0; i < LEVELS; i++)
		assert_int_equal(levels_hz(&slow, i), 1);
}

/* The dearest goes first, and when it has nothing left to leave out the next one. */
static void test_down(void **state)
{
	double rates[] = { 0.002, 0.006, 0.004 };
	unsigned levels[] = { 0, 0, 0 };
	int step;

	for (int i = 0; i < LEVELS - 1; i++) {
		assert_int_equal(levels_decide(rates, levels, 3, 0.01, 0, 0, &step), 1);
		assert_int_equal(step, 1);
		levels[1]++;
	}
	for (int i = 0; i < LEVELS - 1; i++) {
		assert_int_equal(levels_decide(rates, levels, 3, 0.01, 0, 1, &step), 2);
		assert_int_equal(step, 1);
		levels[2]++;
	}
	levels[0] = LEVELS - 1;
	/* Never below the last level, whatever it costs; and more is not recorded either. */
	assert_int_equal(levels_decide(rates, levels, 3, 0.01, 0, 1, &step), -1);
	/* Nothing is allowed at all: the rest of the agent takes it. */
	levels[0] = 0;
	assert_int_equal(levels_decide(rates, levels, 3, -0.5, 0, 1, &step), 0);
	assert_int_equal(step, 1);
}

/* What is within the budget stays as it is; what leaves half of it free may grow, the cheapest first, after a while. */
static void test_up(void **state)
{
	double rates[] = { 0.003, 0.001, 0.0005 };
	unsigned levels[] = { 1, 2, 0 };
	int step;

	assert_int_equal(levels_decide(rates, levels, 3, 0.01, 0, 0, &step), -1);
	assert_int_equal(levels_decide(rates, levels, 3, 0.01, 0, 1, &step), 1);
	assert_int_equal(step, -1);
	levels[1] = 0;
	assert_int_equal(levels_decide(rates, levels, 3, 0.01, 0, 1, &step), 0);
	assert_int_equal(step, -1);
	/* Half of the budget is taken: no room. */
	assert_int_equal(levels_decide(rates, levels, 3, 0.009, 0, 1, &step), -1);
	levels[0] = 0;
	assert_int_equal(levels_decide(rates, levels, 3, 0.01, 0, 1, &step), -1);
	assert_int_equal(levels_decide(rates, levels, 0, 0.01, 0, 1, &step), -1);
}

/* A recorder whose rate is not known yet is neither counted nor chosen. */
static void test_unknown(void **state)
{
	const double none[] = { -1, -1 }, one[] = { -1, 0.02 }, little[] = { -1, 0.001 };
	unsigned levels[] = { 1, 1 };
	int step;

	assert_int_equal(levels_decide(none, levels, 2, 0.01, 0, 1, &step), -1);
	assert_int_equal(levels_decide(none, levels, 2, -1, 0, 1, &step), -1);
	assert_int_equal(levels_decide(one, levels, 2, 0.01, 0, 1, &step), 1);
	assert_int_equal(step, 1);
	assert_int_equal(levels_decide(little, levels, 2, 0.01, 0, 1, &step), 1);
	assert_int_equal(step, -1);
	levels[1] = LEVELS - 1;
	assert_int_equal(levels_decide(one, levels, 2, 0.01, 0, 1, &step), -1);
}

/* Waits that would take more than there is are not begun with, and not begun again. */
static void test_foreseen(void **state)
{
	const struct agentconf_target waits = { .what = "cpu,wait,mem" }, plain = { .what = "cpu,mem" };
	const double rates[] = { 0.001, 0.002 };
	const unsigned first[] = { 1, 1 }, rate[] = { 1, 2 };
	double much = 0.008 / levels_wait_rate(1); /* switches a second that cost 0.8 % */
	int step;

	assert_int_equal(levels_first(&waits, 0.01, much), 0);
	assert_int_equal(levels_first(&waits, 0.007, much), 1);
	assert_int_equal(levels_first(&plain, 0.007, much), 0);
	assert_int_equal(levels_first(&waits, -0.1, 0), 1);
	assert_int_equal(levels_decide(rates, first, 2, 0.01, much / 2, 1, &step), 0);
	assert_int_equal(step, -1);
	assert_int_equal(levels_decide(rates, first, 2, 0.01, much, 1, &step), -1);
	/* The rate is not foreseen by switches. */
	assert_int_equal(levels_decide(rates, rate, 2, 0.01, much, 1, &step), 1);
	assert_int_equal(step, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what), cmocka_unit_test(test_hz), cmocka_unit_test(test_down),
		cmocka_unit_test(test_up),   cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_foreseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
