#include "test.h"

#include "exporting.h"
#include "export/report/cleantext.h"
#include "export/section/section.h"
#include "golden.h"
#include "jsonmembers.h"

static void golden(void **state)
{
	struct sample s = sample_make();
	struct buf b = export_all(s.p, "text", (struct export_options){ .limit = 30 });

	golden_check("sample.txt", b.data, b.n);
	buf_done(&b);
	b = export_all(s.p, "text", (struct export_options){ .limit = 5, .columns = 80, .colour = true,
							    .order = TOP_BY_TOTAL });
	golden_check("sample-terminal.txt", b.data, b.n);
	buf_done(&b);
	b = export_all(s.p, "json", (struct export_options){ 0 });
	golden_check("sample.json", b.data, b.n);
	buf_done(&b);
	profile_free(s.p);
}

static void lines_fit_a_terminal(void **state)
{
	struct sample s = sample_make();
	struct buf b = export_all(s.p, "text", (struct export_options){ .columns = 90 });
	char *rest = strstr(b.data, "\nBy ");

	for (char *line = strtok_r(rest, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		assert_true(cleantext_columns(line) <= 90);
	buf_done(&b);
	profile_free(s.p);
}

static void hostile_names_do_nothing_to_a_terminal(void **state)
{
	struct sample s = export_hostile();
	struct buf b = export_all(s.p, "text", (struct export_options){ .columns = 80 });

	for (const char *c = b.data; *c; c++)
		assert_true((unsigned char)*c >= 0x20 || *c == '\n');
	assert_null(strstr(b.data, "\xff"));
	buf_done(&b);
	b = export_all(s.p, "json", (struct export_options){ 0 });
	for (const char *c = b.data; *c; c++)
		assert_true((unsigned char)*c >= 0x20 || *c == '\n');
	assert_non_null(strstr(b.data, "\"name\":\"</title><script>alert('x')</script>\""));
	assert_non_null(strstr(b.data, "]]>&amp;\\\"'"));
	buf_done(&b);
	profile_free(s.p);
}

/* Each section of the table, also one that is added later. */
static void sections_write_nothing_without_data(void **state)
{
	struct profile *p = profile_new();
	struct selection s = { 0 };
	const struct export_job job = { .profile = p, .selection = &s };
	struct buf b = { 0 };

	for (size_t i = 0; sections[i]; i++) {
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(sections[i]->name, sections[k]->name);
		b.n = 0;
		if (sections[i]->text)
			sections[i]->text(&job, &b);
		if (sections[i]->json)
			put_members(&b, sections[i]->json(&job, &j));
		if (strcmp(b.data, "{}"))
			fail_msg("section %s of an empty profile: %s", sections[i]->name, b.data);
	}
	buf_done(&b);
	profile_free(p);
}

static void empty_single_and_deep(void **state)
{
	struct profile *none = profile_new();
	struct sample s = export_deep(4000);
	struct buf b = export_all(none, "text", (struct export_options){ 0 });

	assert_non_null(strstr(b.data, "0 samples"));
	buf_done(&b);
	b = export_all(none, "json", (struct export_options){ 0 });
	assert_non_null(strstr(b.data, "\"functions\":[],"));
	assert_non_null(strstr(b.data, "\"fit\":false"));
	buf_done(&b);
	profile_free(none);
	b = export_all(s.p, "json", (struct export_options){ 0 });
	assert_non_null(strstr(b.data,
			       "{\"name\":\"recurse\",\"module\":\"/opt/node/bin/node\",\"kind\":\"user\","
			       "\"self_samples\":3,\"self\":3000000,\"total_samples\":3,\"total\":3000000}"));
	buf_done(&b);
	profile_free(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(lines_fit_a_terminal),
		cmocka_unit_test(hostile_names_do_nothing_to_a_terminal),
		cmocka_unit_test(sections_write_nothing_without_data),
		cmocka_unit_test(empty_single_and_deep),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
