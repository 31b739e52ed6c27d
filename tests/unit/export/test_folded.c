#include "test.h"

#include "exporting.h"
#include "golden.h"

static void golden(void **state)
{
	struct sample s = sample_make();
	struct buf b = export_all(s.p, "folded", (struct export_options){ .group = CALLTREE_BY_NAME });

	golden_check("sample.folded", b.data, b.n);
	buf_done(&b);
	b = export_all(s.p, "folded", (struct export_options){ .mark_inlined = true, .reverse = true,
							      .weigh = EXPORT_WEIGH_VALUE });
	golden_check("sample-reverse.folded", b.data, b.n);
	buf_done(&b);
	profile_free(s.p);
}

static void empty_and_single(void **state)
{
	struct profile *none = profile_new();
	struct sample s = sample_empty();
	struct buf b = export_all(none, "folded", (struct export_options){ 0 });

	assert_string_equal(b.data, "");
	buf_done(&b);
	profile_free(none);
	sample_add(&s, s.main, sample_stack(&s, "main"), 1);
	b = export_all(s.p, "folded", (struct export_options){ 0 });
	assert_string_equal(b.data, "main 1\n");
	buf_done(&b);
	profile_free(s.p);
}

/* Whatever the names are, a line is fields between semicolons and a number. */
static void hostile_names_stay_in_their_field(void **state)
{
	struct sample s = export_hostile();
	struct buf b = export_all(s.p, "folded", (struct export_options){ .group = CALLTREE_BY_NAME });
	size_t lines = 0, separators = 0;

	for (size_t i = 0; i < b.n; i++) {
		lines += b.data[i] == '\n';
		separators += b.data[i] == ';';
		assert_true((unsigned char)b.data[i] >= 0x20 || b.data[i] == '\n');
	}
	assert_int_equal(lines, 2);
	assert_int_equal(separators, 13 + 1);
	assert_non_null(strstr(b.data, "main;a:b;c\xef\xbf\xbd" "d 99;"));
	buf_done(&b);
	profile_free(s.p);
}

static void the_value_where_samples_are_not_alike(void **state)
{
	struct sample s = sample_empty();
	struct buf b;

	sample_add(&s, s.main, sample_stack(&s, "a"), 1);
	profile_add_sample(s.p, &(struct profile_sample){ .value = 5 * SAMPLE_PERIOD_NS, .thread = s.main,
							  .stack = sample_stack(&s, "b"), .event = s.cpu });
	b = export_all(s.p, "folded", (struct export_options){ 0 });
	assert_string_equal(b.data, "a 1000000\nb 5000000\n");
	buf_done(&b);
	b = export_all(s.p, "folded", (struct export_options){ .weigh = EXPORT_WEIGH_SAMPLES });
	assert_string_equal(b.data, "a 1\nb 1\n");
	buf_done(&b);
	profile_free(s.p);
}

static void deep_stacks(void **state)
{
	struct sample s = export_deep(4000);
	struct buf b = export_all(s.p, "folded", (struct export_options){ 0 });

	assert_int_equal(b.n, 4000 * strlen("recurse;") - 1 + strlen(" 3\n"));
	buf_done(&b);
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(empty_and_single),
		cmocka_unit_test(hostile_names_stay_in_their_field),
		cmocka_unit_test(the_value_where_samples_are_not_alike),
		cmocka_unit_test(deep_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
