/* test_blockparts.c - what a block was made of by the node's own spans: each moment once, on its thread or beside it. */
#include "test.h"

#include "analyze/blocks/blockparts.h"
#include "analyze/blocks/blocks.h"
#include "base/buf.h"
#include "base/json.h"
#include "export/section/blockpartstext.h"
#include "profile/profile.h"

static void mark(struct profile *p, const char *kind, uint64_t start, uint64_t end, uint32_t thread)
{
	profile_add_mark(p, &(struct profile_mark){ .name = profile_string(p, kind), .kind = profile_string(p, kind),
						    .start_ns = start * 1000, .end_ns = end * 1000, .thread = thread });
}

/* A block of 100 ms on thread 0. */
static struct profile *recording(void)
{
	struct profile *p = profile_new();

	mark(p, "block", 1000, 101000, 0);
	mark(p, "execute", 1000, 61000, 0);
	mark(p, "tx", 2000, 12000, 0);
	mark(p, "tx", 20000, 40000, 0);
	mark(p, "state root", 61000, 91000, 0);
	mark(p, "engine", 0, 200000, 0);       /* holds the block */
	mark(p, "before", 0, 1000, 0);
	mark(p, "save", 51000, 300000, 1);     /* reaches beyond it */
	mark(p, "save", 61000, 71000, 2);      /* at the same time */
	mark(p, "execute", 1000, 2000, 1);
	mark(p, "unknown", 1000, 2000, PROFILE_NONE);
	mark(p, "moment", 5000, 5000, 0);
	return p;
}

static void parts(void **state)
{
	static const struct {
		const char *name;
		bool beside;
		uint32_t depth;
		uint64_t count, us;
	} expected[] = {
		{ "execute", false, 0, 1, 60000 }, { "tx", false, 1, 2, 30000 }, { "state root", false, 0, 1, 30000 },
		{ "save", true, 0, 2, 50000 }, { "execute", true, 0, 1, 1000 }, { "unknown", true, 0, 1, 1000 },
	};
	struct profile *p = recording();
	struct blockparts *b = blockparts_new(p);
	struct block_parts l = { 0 };

	blockparts_find(b, 1000000, 101000000, 0, &l);
	assert_int_equal(l.list.n, 6);
	for (size_t i = 0; i < l.list.n; i++) {
		assert_string_equal(l.list.v[i].name, expected[i].name);
		assert_int_equal(l.list.v[i].beside, expected[i].beside);
		assert_int_equal(l.list.v[i].depth, expected[i].depth);
		assert_int_equal(l.list.v[i].count, expected[i].count);
		assert_int_equal(l.list.v[i].ns, expected[i].us * 1000);
	}
	/* A time without spans. */
	blockparts_find(b, 400000000, 500000000, 0, &l);
	assert_int_equal(l.list.n, 0);
	vec_done(&l.list);
	blockparts_free(b);
	profile_free(p);
}

static void words(void **state)
{
	struct profile *p = recording();
	struct blockparts *b = blockparts_new(p);
	struct block_row row = { .start_ns = 1000000, .wall_ns = 100000000 };
	struct blocks blocks = { 0 };
	struct buf out = { 0 };
	struct json j;

	vec_push(&blocks.rows, row);
	blockpartstext_put_one(b, &row, &out);
	assert_non_null(strstr(out.data, "    60.000 ms  60.0 %  execute\n    30.000 ms  30.0 %    tx, 2 times\n"));
	assert_non_null(strstr(out.data, "    50.000 ms  50.0 %  save, 2 times, beside it\n"));
	buf_done(&out);
	blockpartstext_put_all(b, &blocks, &out);
	assert_string_equal(out.data, "Of the blocks' time, by the program's own spans: execute 60.0 %, state root 30.0 %.\n");
	buf_done(&out);
	j = json_begin(&out);
	json_open_object(&j, NULL);
	blockpartsjson_put(b, &row, &j);
	json_close(&j);
	assert_non_null(strstr(out.data, "\"tx\""));
	buf_done(&out);
	/* A recording that has no spans has no such lines. */
	blockpartstext_put_all(NULL, &blocks, &out);
	blockpartstext_put_one(NULL, &row, &out);
	assert_int_equal(out.n, 0);
	buf_done(&out);
	vec_done(&blocks.rows);
	blockparts_free(b);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(parts), cmocka_unit_test(words) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
