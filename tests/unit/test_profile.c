#include "test.h"

#include "profile/profile.h"

static void frames_and_stacks_are_interned(void **state)
{
	struct profile *p = profile_new();
	uint32_t m = profile_add_module(p, &(struct profile_module){ .path = profile_string(p, "/a") });
	uint32_t f = profile_frame(p, m, FRAME_USER, 0x1000), g = profile_frame(p, m, FRAME_USER, 0x1001);
	uint32_t s = profile_stack(p, profile_stack(p, 0, f), g);

	assert_int_not_equal(f, g);
	assert_int_equal(profile_frame(p, m, FRAME_USER, 0x1000), f);
	assert_int_not_equal(profile_frame(p, m, FRAME_KERNEL, 0x1000), f);
	assert_int_equal(profile_stack(p, profile_stack(p, 0, f), g), s);
	assert_int_not_equal(profile_stack(p, 0, g), s);
	profile_free(p);
}

static void a_marker_says_why_a_stack_was_cut(void **state)
{
	struct profile *p = profile_new();
	uint32_t reason = 0, cut = profile_stack(p, 0, profile_truncation_frame(p, "no table"));
	uint32_t f = profile_named_frame(p, PROFILE_NONE, FRAME_USER, "main");

	assert_true(profile_stack_truncated(p, profile_stack(p, cut, f), &reason));
	assert_string_equal(profile_str(p, reason), "no table");
	assert_false(profile_stack_truncated(p, profile_stack(p, 0, f), NULL));
	assert_false(profile_stack_truncated(p, 0, NULL));
	profile_free(p);
}

static void counters_add_up(void **state)
{
	struct profile *p = profile_new();

	profile_count(p, "lost", 2);
	profile_count(p, "lost", 3);
	profile_count_set(p, "cpu", 7);
	assert_int_equal(profile_counter(p, "lost"), 5);
	assert_int_equal(profile_counter(p, "cpu"), 7);
	assert_int_equal(profile_counter(p, "none"), 0);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_and_stacks_are_interned),
		cmocka_unit_test(a_marker_says_why_a_stack_was_cut),
		cmocka_unit_test(counters_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
