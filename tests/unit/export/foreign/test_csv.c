/* test_csv.c - tables and samples as comma-separated values, and samples as JSON lines. */
#include "test.h"

#include <errno.h>

#include "base/err.h"
#include "exporting.h"
#include "golden.h"

static void golden(void **state)
{
	static const struct {
		enum export_view view;
		const char *file;
	} tables[] = {
		{ EXPORT_VIEW_ALL, "sample.csv" },
		{ EXPORT_VIEW_MODULES, "sample-modules.csv" },
		{ EXPORT_VIEW_THREADS, "sample-threads.csv" },
		{ EXPORT_VIEW_CRATES, "sample-crates.csv" },
		{ EXPORT_VIEW_TREE, "sample-tree.csv" },
	};
	struct sample s = sample_make();

	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		struct buf b = export_all(s.p, "csv", (struct export_options){ .view = tables[i].view, .limit = 3, .default_limit = true });

		golden_check(tables[i].file, b.data, b.n);
		buf_done(&b);
	}
	profile_free(s.p);
}

/* One sample of each of its stacks, so that the files stay small. */
static struct sample few(void)
{
	struct sample s = sample_empty();

	sample_add(&s, s.main, sample_stack(&s, "_start;main;write;k:ksys_write"), 1);
	sample_add(&s, s.worker, sample_stack(&s, "clone3;a\\;b;outer;i:inner"), 2);
	sample_add(&s, s.worker, sample_stack(&s, "!no table;?;node::callback"), 1);
	sample_add(&s, s.other, 0, 1);
	profile_add_mark(s.p, &(struct profile_mark){ 1000000, 2000000, profile_string(s.p, "block 7"), profile_string(s.p, "block"),
						      PROFILE_NONE, { .number = 7, .known = BLOCK_NUMBER } });
	return s;
}

static void samples(void **state)
{
	struct sample s = few();
	struct buf b = export_all(s.p, "csv-samples", (struct export_options){ .every_event = true });

	golden_check("few.samples.csv", b.data, b.n);
	buf_done(&b);
	b = export_all(s.p, "jsonl", (struct export_options){ .every_event = true });
	golden_check("few.jsonl", b.data, b.n);
	buf_done(&b);
	profile_free(s.p);
}

/* Counts the fields of a line as RFC 4180 has them. */
static const char *count_fields(const char *s, size_t *ret)
{
	bool quoted = false;

	for (*ret = 1; *s && (quoted || *s != '\r'); s++) {
		if (*s == '"')
			quoted = !quoted;
		*ret += *s == ',' && !quoted;
	}
	assert_string_not_equal(s, "");
	assert_int_equal(s[1], '\n');
	return s + 2;
}

static void hostile_names(void **state)
{
	static const char *const formats[] = { "csv", "csv-samples" };

	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		struct sample s = export_hostile();
		size_t columns, n;
		struct buf b;
		const char *line;

		sample_add(&s, s.main, sample_stack(&s, "=cmd|'/c calc'!A0,\"x\""), 1);
		sample_add(&s, s.main, sample_stack(&s, "@sum"), 1);
		b = export_all(s.p, formats[i], (struct export_options){ .every_event = true });
		for (line = count_fields(b.data, &columns); *line; line = count_fields(line, &n), assert_int_equal(n, columns))
			;
		if (!i)
			assert_non_null(strstr(b.data, "\n\"'=cmd|'/c calc'!A0,\"\"x\"\"\","));
		else
			assert_non_null(strstr(b.data, ",@sum,"));
		buf_done(&b);
		profile_free(s.p);
	}
}

static void limits_and_views_without_a_table(void **state)
{
	struct sample s = sample_make();
	struct selection sel;
	struct err err = { 0 };
	struct buf b = export_all(s.p, "csv", (struct export_options){ .limit = 2 });
	size_t lines = 0;

	for (size_t i = 0; i < b.n; i++)
		lines += b.data[i] == '\n';
	assert_int_equal(lines, 3);
	b.n = 0;
	assert_int_equal(selection_make(s.p, &(struct select_options){ 0 }, &sel, NULL), 0);
	assert_int_equal(export_find("csv")->write(&(struct export_job){ s.p, &sel, .options = { .view = EXPORT_VIEW_MARKS } }, &b, &err),
			 -ENOTSUP);
	selection_done(&sel);
	buf_done(&b);
	assert_string_equal(export_find_path("x.samples.csv")->name, "csv-samples");
	assert_string_equal(export_find_path("x.csv")->name, "csv");
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(samples),
		cmocka_unit_test(hostile_names),
		cmocka_unit_test(limits_and_views_without_a_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
