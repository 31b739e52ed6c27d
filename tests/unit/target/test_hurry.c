/* When a recorder is starved, and not merely on a busy machine. */
#include "test.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(starved) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
