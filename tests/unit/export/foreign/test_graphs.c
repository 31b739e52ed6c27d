/* test_graphs.c - call graphs for callgrind_annotate and Graphviz: sums, recursion, names that want to break out. */
#include "test.h"

#include "exporting.h"
#include "golden.h"

static void golden(void **state)
{
	struct sample s = sample_make();
	struct buf b = export_all(s.p, "callgrind", (struct export_options){ .every_event = true });

	golden_check("sample.callgrind", b.data, b.n);
	buf_done(&b);
	b = export_all(s.p, "dot", (struct export_options){ .limit = 30, .default_limit = true });
	golden_check("sample.dot", b.data, b.n);
	buf_done(&b);
	profile_free(s.p);
}

/* a, b, a, b: only the outermost call of each costs, so that calls to a function add up to its samples. */
static void recursion_counts_once(void **state)
{
	struct sample s = sample_empty();
	struct buf b;

	sample_add(&s, s.main, sample_stack(&s, "a;b;a;b"), 3);
	b = export_all(s.p, "callgrind", (struct export_options){ 0 });
	/* [all] calls a, and a calls b, with all of it; b calls a with nothing more. */
	assert_non_null(strstr(b.data, "fn=(1) [all]\ncob=(2)\ncfi=(1)\ncfn=(3)\ncalls=3 0\n0 3000000\n"));
	assert_non_null(strstr(b.data, "fn=(2) b\n0 3000000\ncob=(2)\ncfi=(1)\ncfn=(3) a\ncalls=3 0\n0 0\n"));
	assert_non_null(strstr(b.data, "fn=(3)\ncob=(2)\ncfi=(1)\ncfn=(2)\ncalls=6 0\n0 3000000\n"));
	assert_non_null(strstr(b.data, "\ntotals: 3000000\n"));
	buf_done(&b);
	profile_free(s.p);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* No name ends its line or its string. */
static void hostile_names(void **state)
{
	struct sample s = export_hostile();
	struct buf b = export_all(s.p, "callgrind", (struct export_options){ .every_event = true });

	assert_int_equal(count(b.data, "\ntotals: "), 1);
	for (size_t i = 0; i < b.n; i++)
		assert_true((unsigned char)b.data[i] >= 0x20 || b.data[i] == '\n');
	buf_done(&b);
	b = export_all(s.p, "dot", (struct export_options){ 0 });
	for (size_t i = 0, in = 0; i < b.n; i++) {
		assert_true((unsigned char)b.data[i] >= 0x20 || b.data[i] == '\n' || b.data[i] == '\t');
		if (b.data[i] == '\\')
			i++;
		else if (b.data[i] == '"')
			in = !in;
		else if (b.data[i] == '\n')
			assert_false(in);
	}
	buf_done(&b);
	profile_free(s.p);
}

/* Where functions are left out, calls through them are dotted, and the legend says so. */
static void limits(void **state)
{
	struct sample s = sample_make();
	struct buf b = export_all(s.p, "dot", (struct export_options){ .limit = 4 });

	assert_int_equal(count(b.data, ", tooltip=\"") - count(b.data, " -> "), 4);
	assert_true(count(b.data, "style=dotted") > 0);
	assert_non_null(strstr(b.data, "4 of 1"));
	buf_done(&b);
	profile_free(s.p);
}

static void deep_and_empty(void **state)
{
	struct sample s = export_deep(4000), none = sample_empty();
	struct buf b = export_all(s.p, "callgrind", (struct export_options){ 0 });

	assert_non_null(strstr(b.data, "\ntotals: 3000000\n"));
	buf_done(&b);
	b = export_all(s.p, "dot", (struct export_options){ 0 });
	assert_int_equal(count(b.data, " -> "), 1);
	buf_done(&b);
	b = export_all(none.p, "callgrind", (struct export_options){ 0 });
	assert_non_null(strstr(b.data, "events: samples\n"));
	buf_done(&b);
	b = export_all(none.p, "dot", (struct export_options){ 0 });
	assert_non_null(strstr(b.data, "0 of 0 functions"));
	buf_done(&b);
	profile_free(none.p);
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(recursion_counts_once),
		cmocka_unit_test(hostile_names),
		cmocka_unit_test(limits),
		cmocka_unit_test(deep_and_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
