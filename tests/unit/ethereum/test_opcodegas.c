/* test_opcodegas.c - what a node's tracer says of opcodes: answers, and answers that are none. */
#include "test.h"

#include <string.h>

#include "base/err.h"
#include "ethereum/trace/opcodegas.h"

static int parse(const char *text, struct opcodegas *g, struct err *err)
{
	return opcodegas_parse(text, strlen(text), g, err);
}

static void answers_add_up(void **state)
{
	static const char text[] =
		"{\"SLOAD\":[3,2300],\"#1\":[2,6200],\"#12\":[1,500],\"#0\":[9,9],"
		"\"opcode 0xc not defined\":[1,0]}";
	struct opcodegas g = { 0 };
	struct err err = { 0 };

	assert_int_equal(parse(text, &g, &err), 0);
	assert_int_equal(parse("{\"SLOAD\":[1,100]}", &g, &err), 0);
	assert_int_equal(g.transactions, 2);
	assert_int_equal(g.rows.n, 3);
	assert_string_equal(g.rows.v[0].name, "SLOAD");
	assert_false(g.rows.v[0].precompile);
	assert_int_equal(g.rows.v[0].count, 4);
	assert_int_equal(g.rows.v[0].gas, 2400);
	assert_string_equal(g.rows.v[1].name, "ecrecover");
	assert_true(g.rows.v[1].precompile);
	assert_string_equal(g.rows.v[2].name, "bls12-381");
	opcodegas_done(&g);
}

static void bad_answers_change_nothing(void **state)
{
	static const char *const answers[] = {
		"", "null", "[]", "7", "<html>", "{\"ADD\":[1,2],\"SUB\":[1]}", "{\"ADD\":[1,-2]}", "{\"ADD\":[1,1e30]}",
		"{\"ADD\":[\"1\",2]}", "{\"ADD\":[1,2,3]}", "{\"ADD\":[1,2]", "{\"ADD\":null}",
		"{\"ADD\":[1,2],\"ADD\":[1,2]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct opcodegas g = { 0 };
		struct err err = { 0 };

		assert_true(parse(answers[i], &g, &err) < 0);
		assert_true(err.text[0]);
		assert_int_equal(g.rows.n + g.transactions, 0);
		opcodegas_done(&g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_add_up),
		cmocka_unit_test(bad_answers_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
