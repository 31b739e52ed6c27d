/* Ticks of the time-stamp counter as CLOCK_MONOTONIC. */
#include "test.h"

#include "base/clock.h"
#include "collect/task/taskclock.h"

static void linear(void **state)
{
	struct taskclock c = { 0 };

	taskclock_add(&c, (struct taskclock_pair){ 1000, 500 });
	taskclock_add(&c, (struct taskclock_pair){ 3000, 1500 });
	taskclock_add(&c, (struct taskclock_pair){ 4000, 2500 });
	assert_int_equal(taskclock_ns(&c, 1000), 500);
	assert_int_equal(taskclock_ns(&c, 2000), 1000);
	assert_int_equal(taskclock_ns(&c, 3000), 1500);
	assert_int_equal(taskclock_ns(&c, 3500), 2000); /* the second part is twice as fast */
	assert_int_equal(taskclock_ns(&c, 5000), 3500); /* after the last: by the rate before it */
	assert_int_equal(taskclock_ns(&c, 800), 400);
	assert_int_equal(taskclock_ns(&c, 0), 0); /* never below zero */
	assert_int_equal(taskclock_span(&c, 2000), 3000);
	/* What does not rise is left out. */
	taskclock_add(&c, (struct taskclock_pair){ 4000, 2600 });
	taskclock_add(&c, (struct taskclock_pair){ 4100, 2500 });
	assert_int_equal(c.n, 3);
}

/* More pairs than there is room for: times stay right, and never fall. */
static void thinned(void **state)
{
	struct taskclock c = { 0 };
	uint64_t last = 0;

	for (uint64_t i = 1; i < 5 * TASKCLOCK_PAIRS; i++)
		taskclock_add(&c, (struct taskclock_pair){ 2500 * i + i % 3, 1000 * i });
	assert_in_range(c.n, TASKCLOCK_PAIRS / 2, TASKCLOCK_PAIRS);
	assert_int_equal(c.pairs[0].ns, 1000); /* the first stays */
	for (uint64_t t = 2500; t < 5 * 2500 * TASKCLOCK_PAIRS; t += 777) {
		uint64_t ns = taskclock_ns(&c, t);

		assert_in_range(ns, t * 2 / 5 - 3, t * 2 / 5 + 3);
		assert_true(ns >= last);
		last = ns;
	}
}

/* The clocks of this machine: a moment between two readings of the one is between them by the other. */
static void real(void **state)
{
	struct taskclock c = { 0 };
	struct err *none = NULL;

	if (taskclock_check(none) < 0)
		skip();
	taskclock_take(&c);
	for (int i = 0; i < 20; i++) {
		uint64_t before = clock_mono_ns(), ticks = taskclock_ticks(), after = clock_mono_ns(), until = after + 1000000, ns;

		while (clock_mono_ns() < until)
			;
		taskclock_take(&c);
		ns = taskclock_ns(&c, ticks);
		assert_in_range(ns, before - 2000, after + 2000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linear),
		cmocka_unit_test(thinned),
		cmocka_unit_test(real),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
