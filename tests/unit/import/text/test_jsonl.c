/* test_jsonl.c - JSON lines: what is written comes back, and what is wrong is said. */
#include "test.h"

#include <errno.h>

#include "base/file/lines.h"
#include "import/text/jsonl.h"
#include "importing.h"

/* Exports, imports and exports again: the second text is the first, so weights, names, threads, times and order are. */
static void comes_back(const struct profile *p)
{
	const struct export_options every = { .every_event = true };
	struct buf first = export_all(p, "jsonl", every), second;
	struct profile *again = import_good("jsonl", first.data);

	assert_true(jsonl_probe(first.data, first.n, true));
	second = export_all(again, "jsonl", every);
	assert_string_equal(first.data, second.data);
	buf_done(&second);
	buf_done(&first);
	profile_free(again);
}

static void round_trips(void **state)
{
	struct sample s = sample_make();

	profile_add_mark(s.p, &(struct profile_mark){ 1000000, 90000000, profile_string(s.p, "block 7"), profile_string(s.p, "block"),
						      PROFILE_NONE, { .number = 7, .gas = 21000, .known = BLOCK_NUMBER | BLOCK_GAS } });
	comes_back(s.p);
	profile_free(s.p);
	s = export_hostile();
	comes_back(s.p);
	profile_free(s.p);
	s = export_deep(4000);
	comes_back(s.p);
	profile_free(s.p);
	s = sample_empty();
	comes_back(s.p);
	profile_free(s.p);
}

static const char small[] =
	"{\"format\":\"gasflame-jsonl\",\"version\":1,\"target\":\"node\",\"start_wall_ns\":5,\"duration_ns\":9,"
	"\"events\":[{\"name\":\"cpu\",\"unit\":\"ns\",\"describe\":\"CPU time\",\"period\":10}]}\n"
	"{\"mark\":\"block 7\",\"kind\":\"block\",\"time\":0,\"end\":100,\"number\":7}\n"
	"{\"time\":3,\"event\":\"cpu\",\"unit\":\"ns\",\"value\":10,\"count\":1,\"pid\":1,\"tid\":2,\"process\":\"node\",\"thread\":\"w\","
	"\"stack\":[{\"name\":\"main\",\"module\":\"/bin/node\",\"file\":\"main.rs\",\"line\":7},"
	"{\"name\":\"inner\",\"module\":\"/bin/node\",\"inlined\":true},{\"name\":\"write\",\"module\":\"[kernel]\",\"kind\":\"kernel\"}]}\n"
	"\n"
	"{\"event\":\"io\",\"unit\":\"bytes\",\"value\":4096,\"added\":[1,{}],\"stack\":[]}\n";

static void a_file(void **state)
{
	struct profile *p = import_good("jsonl", small);
	struct buf b = export_all(p, "folded", (struct export_options){ .mark_inlined = true, .group = CALLTREE_MERGED });

	assert_string_equal(b.data, "main;inner_[i];write_[k] 1\n");
	assert_int_equal(p->start_wall_ns, 5);
	assert_int_equal(p->duration_ns, 9);
	assert_int_equal(p->samples.n, 2);
	assert_int_equal(p->samples.v[0].time_ns, 3);
	assert_int_equal(p->events.n, 2);
	assert_int_equal(p->marks.v[0].block.number, 7);
	assert_int_equal(p->threads.v[0].tid, 2);
	assert_string_equal(profile_str(p, p->processes.v[0].name), "node");
	buf_done(&b);
	profile_free(p);
}

#define HEAD "{\"format\":\"gasflame-jsonl\",\"version\":1}\n"

static void errors(void **state)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{ "", "it is empty" },
		{ "{\"format\":\"gasflame-jsonl\",\"version\":2}\n", "line 1: version 2" },
		{ "{\"format\":\"x\",\"version\":1}\n", "line 1: its \"format\"" },
		{ HEAD "{\"a\":", "line 2: byte " },
		{ HEAD "[]\n", "line 2: it is no object" },
		{ HEAD "{}\n", "line 2: it is neither a sample" },
		{ HEAD "{\"event\":\"x\"}\n", "line 2: it is neither a sample" },
		{ HEAD "{\"event\":7,\"stack\":[]}\n", "line 2: \"event\" is no text" },
		{ HEAD "{\"event\":\"x\",\"value\":-1,\"stack\":[]}\n", "line 2: \"value\" is no number" },
		{ HEAD "{\"event\":\"x\",\"value\":99999999999999999999,\"stack\":[]}\n", "line 2: byte " },
		{ HEAD "{\"event\":\"x\",\"count\":4294967296,\"stack\":[]}\n", "line 2: \"count\" is no number" },
		{ HEAD "{\"event\":\"x\",\"stack\":[7]}\n", "line 2: a call of its stack is no object" },
		{ HEAD "{\"mark\":\"m\",\"time\":5,\"end\":4}\n", "line 2: a mark that ends before it begins" },
		{ HEAD "{\"event\":\"x\",\"value\":9223372036854775807,\"stack\":[]}\n"
		       "{\"event\":\"x\",\"value\":9223372036854775807,\"stack\":[]}\n"
		       "{\"event\":\"x\",\"value\":2,\"stack\":[]}\n", "line 4: values add up to more" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = { 0 };
		struct profile *p = NULL;

		if (!import_data("jsonl", cases[i].text, strlen(cases[i].text), &p, &err))
			fail_msg("'%s' is no error", cases[i].text);
		if (!strstr(err.text, cases[i].expected))
			fail_msg("'%s' gave '%s'", cases[i].text, err.text);
	}
}

/* Brackets that never end, and a line that never does. */
static void hostile_lines(void **state)
{
	size_t n = LINES_LONGEST + (1 << 20);
	char *text = mem_alloc(n + 1);
	struct profile *p = NULL;
	struct err err = { 0 };

	memset(text, '[', n);
	assert_int_equal(import_data("jsonl", text, n, &p, &err), -EFBIG);
	assert_int_equal(import_data("jsonl", text, 1 << 20, &p, &err), -EINVAL);
	free(text);
}

static void cut_anywhere(void **state)
{
	import_cut_everywhere("jsonl", small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips),
		cmocka_unit_test(a_file),
		cmocka_unit_test(errors),
		cmocka_unit_test(hostile_lines),
		cmocka_unit_test(cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
