#include "test.h"

#include "base/buf.h"
#include "profile/thinning.h"

static void assert_advice(const struct thinning_cost *costs, size_t n, double total, double limit, const char *expected)
{
	struct buf b = { 0 };

	thinning_advice(&b, costs, n, total, limit);
	assert_string_equal(b.data, expected);
	buf_done(&b);
}

static void the_fewest_collectors_are_left_out(void **state)
{
	const struct thinning_cost costs[] = { { "cpu", 0.5 }, { "wait", 4 }, { "io", 9 }, { "fault", 0 } };

	assert_advice(costs, 4, 14, 5, "To keep 5 %, record without io (the rest costs 5.00 %), or allow more (--max-overhead 15%)");
	assert_advice(costs, 4, 14, 3, "To keep 3 %, record without io and wait (the rest costs 1.00 %), or allow more "
				       "(--max-overhead 15%)");
}

/* Where what is left would be nothing, or too dear by itself, there is nothing to leave out. */
static void the_last_collector_is_not_left_out(void **state)
{
	const struct thinning_cost costs[] = { { "wait", 4 }, { "cpu", 0.5 } };

	assert_advice(costs, 2, 5.2, 0.1, "To keep 0.1 %, allow more (--max-overhead 6%)");
	assert_advice(costs, 1, 4.2, 3, "To keep 3 %, allow more (--max-overhead 5%)");
	assert_advice(NULL, 0, 4.2, 3, "To keep 3 %, allow more (--max-overhead 5%)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fewest_collectors_are_left_out),
		cmocka_unit_test(the_last_collector_is_not_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
