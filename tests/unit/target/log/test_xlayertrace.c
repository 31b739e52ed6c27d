/* test_xlayertrace.c - X Layer's trace.log: which lines are a block's, in which order, and which are none. */
#include "test.h"

#include "base/mem.h"
#include "base/vec.h"
#include "target/log/xlayertrace.h"

#define HASH "0x00000000000000000000000000000000000000000000000000000000000000ab"
#define LINE(event, name, ms, number, hash) \
	"X Layer," HASH ",,okx-defi-xlayer-egseqz-pro,X Layer,,196," event "," name ",,," ms ",,," number "," hash ",,,,,,,"

struct blocks {
	VEC(struct xlayertrace_block) list;
};

static void got(void *context, const struct xlayertrace_block *b)
{
	struct blocks *l = context;

	vec_push(&l->list, *b);
}

static void lines(void **state)
{
	static const struct {
		const char *line;
		bool known;
		size_t blocks;
		uint64_t bad;
	} cases[] = {
		{ LINE("15030", "xlayer_seq_receive_tx", "1790000000001", "", ""), true, 0, 0 },
		{ LINE("15034", "xlayer_seq_package_tx", "1790000000120", "7", ""), true, 0, 0 },
		/* The beginning is written when the hash is known: after the end. */
		{ LINE("15036", "xlayer_seq_end_block", "1790000000150", "7", HASH), true, 0, 0 },
		{ LINE("15032", "xlayer_seq_begin_block", "1790000000100", "7", HASH), true, 1, 0 },
		{ LINE("15060", "xlayer_rpc_receive_block", "1790000000160", "7", HASH), true, 1, 0 },
		{ LINE("15062", "xlayer_rpc_finish_block", "1790000000163", "7", HASH), true, 2, 0 },
		{ LINE("15032", "xlayer_seq_begin_block", "1790000000200", "8", HASH) "\r", true, 2, 0 },
		{ LINE("15036", "xlayer_seq_end_block", "1790000000190", "8", HASH), true, 2, 1 }, /* the clock was set */
		{ LINE("15036", "xlayer_seq_end_block", "99999999999999999999", "9", HASH), true, 2, 2 },
		{ LINE("15036", "xlayer_seq_end_block", "1790000000190", "", HASH), true, 2, 3 },
		{ LINE("x", "xlayer_seq_end_block", "1790000000190", "9", HASH), true, 2, 4 },
		{ "X Layer," HASH ",,okx-defi-xlayer-egseqz-pro,X Layer,,196,15036,xlayer_seq_end", true, 2, 5 },
		{ "INFO Block added to canonical chain number=7", false, 2, 5 },
		{ "", false, 2, 5 },
		{ "X Layer", false, 2, 5 },
	};
	struct blocks l = { 0 };
	struct xlayertrace *x = xlayertrace_new(got, &l);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(xlayertrace_line(x, cases[i].line, strlen(cases[i].line)), cases[i].known);
		assert_int_equal(l.list.n, cases[i].blocks);
		assert_int_equal(xlayertrace_counted(x)->bad, cases[i].bad);
	}
	assert_true(l.list.v[0].built);
	assert_int_equal(l.list.v[0].number, 7);
	assert_int_equal(l.list.v[0].start_wall_ns, 1790000000100000000);
	assert_int_equal(l.list.v[0].end_wall_ns, 1790000000150000000);
	assert_string_equal(l.list.v[0].hash, HASH);
	assert_false(l.list.v[1].built);
	assert_int_equal(l.list.v[1].start_wall_ns, 1790000000160000000);
	xlayertrace_free(x);
	vec_done(&l.list);
}

/* Beginnings that never end do not add up. */
static void alone(void **state)
{
	struct blocks l = { 0 };
	struct xlayertrace *x = xlayertrace_new(got, &l);
	char line[512];

	for (int i = 0; i < 1000; i++) {
		snprintf(line, sizeof(line), LINE("15032", "xlayer_seq_begin_block", "1790000000100", "%d", ""), i);
		assert_true(xlayertrace_line(x, line, strlen(line)));
	}
	assert_int_equal(xlayertrace_counted(x)->alone, 1000 - 256);
	/* The newest are remembered. */
	snprintf(line, sizeof(line), LINE("15036", "xlayer_seq_end_block", "1790000000300", "999", ""));
	assert_true(xlayertrace_line(x, line, strlen(line)));
	assert_int_equal(l.list.n, 1);
	xlayertrace_free(x);
	vec_done(&l.list);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(lines), cmocka_unit_test(alone) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
