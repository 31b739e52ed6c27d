/*
 * test_spans.c - spans out of probes' records, which block each one made, which functions are meant, and how they are
 * called.
 */
#include "test.h"

#include "base/err.h"
#include "base/mem.h"
#include "collect/blocks/blockmatch.h"
#include "collect/blocks/spanjoin.h"
#include "collect/span/spanset.h"
#include "elf/probe/probesites.h"

#define MS 1000000ULL

struct got {
	struct span list[64];
	size_t n;
};

static void got_span(void *context, const struct span *s)
{
	struct got *g = context;

	assert_true(g->n < ARRAY_LEN(g->list) && s->start_ns <= s->end_ns);
	g->list[g->n++] = *s;
}

static struct shared_span call(uint32_t tid, uint64_t start, uint64_t end, uint64_t future, uint64_t before, uint64_t after)
{
	return (struct shared_span){ .what = SPAN_LEAVE, .pid = 1, .tid = tid, .function = 3, .start_ns = start, .end_ns = end,
				     .values = { future, before, after } };
}

static void take_call(struct spanjoin *j, uint32_t tid, uint64_t start, uint64_t end, uint64_t future, uint64_t before,
		      uint64_t after)
{
	struct shared_span r = call(tid, start, end, future, before, after);

	spanjoin_take(j, &r);
}

static void take_word(struct spanjoin *j, uint32_t what, const char *name, uint64_t number, uint64_t time)
{
	struct shared_span r = { .what = what, .pid = 1, .tid = what, .start_ns = time, .end_ns = time, .values = { number, 7, 8 } };

	snprintf(r.name, sizeof(r.name), "%s", name);
	spanjoin_take(j, &r);
}

static void calls_are_spans(void **state)
{
	struct got g = { 0 };
	struct spanjoin *j = spanjoin_new(got_span, &g);

	take_call(j, 5, 10, 20, 0, 0, 0);
	take_call(j, 6, 12, 14, 0, 0, 0);
	take_call(j, 6, 20, 14, 0, 0, 0); /* ends before it begins */
	assert_int_equal(g.n, 2);
	assert_int_equal(g.list[0].tid, 5);
	assert_int_equal(g.list[1].end_ns - g.list[1].start_ns, 2);
	assert_int_equal(g.list[0].polls, 0);
	spanjoin_free(j);
}

static void polls_are_joined(void **state)
{
	struct got g = { 0 };
	struct spanjoin *j = spanjoin_new(got_span, &g);

	/* Two futures at a time, on two threads; the memory of the first is used again at once. */
	take_call(j, 5, 10, 20, 0x1000, 0, 3);
	take_call(j, 6, 15, 25, 0x2000, 0, 3);
	take_call(j, 6, 30, 80, 0x1000, 3, 4);
	take_call(j, 5, 85, 90, 0x1000, 4, 1);
	take_call(j, 5, 91, 95, 0x1000, 0, 1);
	take_call(j, 6, 96, 99, 0x2000, 3, 1);
	assert_int_equal(g.n, 3);
	assert_int_equal(g.list[0].start_ns, 10);
	assert_int_equal(g.list[0].end_ns, 90);
	assert_int_equal(g.list[0].polls, 3);
	assert_int_equal(g.list[0].tid, 6); /* it worked most */
	assert_int_equal(g.list[1].start_ns, 91);
	assert_int_equal(g.list[2].start_ns, 15);
	assert_int_equal(spanjoin_open(j), 0);
	spanjoin_free(j);
}

static void futures_that_do_not_end(void **state)
{
	struct got g = { 0 };
	struct spanjoin *j = spanjoin_new(got_span, &g);

	take_call(j, 5, 1, 2, 0x1000, 4, 1);  /* begun before the recording */
	take_call(j, 5, 3, 4, 0x1000, 0, 3);  /* dropped while it waited: its memory is another's */
	take_call(j, 5, 5, 6, 0x1000, 0, 3);
	take_call(j, 5, 7, 8, 0x1000, 3, 2);  /* panicked */
	take_call(j, 5, 9, 10, 0x1000, 0, 1);
	assert_int_equal(g.n, 1);
	assert_int_equal(g.list[0].start_ns, 9);
	assert_int_equal(spanjoin_counted(j)->before, 1);
	assert_int_equal(spanjoin_counted(j)->cancelled, 2);
	/* More than are remembered: the oldest are given up. */
	for (uint64_t i = 0; i < 10000; i++)
		take_call(j, 5, 20 + i, 21 + i, 0x10000 + i * 64, 0, 3);
	assert_true(spanjoin_open(j) <= 4096 && spanjoin_counted(j)->replaced >= 10000 - 4096);
	spanjoin_free(j);
}

static void closures_are_no_futures(void **state)
{
	struct got g = { 0 };
	struct spanjoin *j = spanjoin_new(got_span, &g);

	/* A byte that stays 0 is not the state of a future: each call counts from then on. */
	take_call(j, 5, 1, 2, 0x1000, 0, 0);
	take_call(j, 5, 3, 4, 0x1000, 0, 0);
	take_call(j, 5, 5, 6, 0x1000, 9, 9);
	/* What cannot be read is none either. */
	take_call(j, 5, 7, 8, 0x1000, 0xff, 0xff);
	assert_int_equal(g.n, 4);
	spanjoin_free(j);
}

static void words_are_joined(void **state)
{
	struct got g = { 0 };
	struct spanjoin *j = spanjoin_new(got_span, &g);
	struct shared_span endless = { .what = SPAN_MARK, .pid = 1, .end_ns = 9 };

	take_word(j, SPAN_BEGIN, "a", 1, 10);
	take_word(j, SPAN_BEGIN, "a", 2, 12);
	take_word(j, SPAN_BEGIN, "b", 1, 13);
	take_word(j, SPAN_END, "a", 1, 20);
	take_word(j, SPAN_END, "a", 2, 22);
	take_word(j, SPAN_END, "c", 2, 23); /* never begun */
	take_word(j, SPAN_MARK, "m", 77, 24);
	take_word(j, SPAN_BEGIN, "b", 1, 30); /* again: the first one is forgotten */
	take_word(j, SPAN_END, "b", 1, 31);
	take_word(j, SPAN_BEGIN, "block", 5, 40);
	take_word(j, SPAN_BLOCK_END, "", 5, 50);
	assert_int_equal(g.n, 5);
	assert_int_equal(g.list[0].end_ns - g.list[0].start_ns, 10);
	assert_int_equal(g.list[1].end_ns - g.list[1].start_ns, 10);
	assert_int_equal(g.list[2].block.number, 77);
	assert_int_equal(g.list[3].end_ns - g.list[3].start_ns, 1);
	assert_string_equal(g.list[4].name, "block");
	assert_int_equal(g.list[4].block.known, BLOCK_NUMBER | BLOCK_GAS | BLOCK_TRANSACTIONS);
	assert_int_equal(g.list[4].block.gas, 7);
	assert_int_equal(spanjoin_counted(j)->before, 1);
	assert_int_equal(spanjoin_counted(j)->replaced, 1);
	/* A name without an end, and a kind that there is none of. */
	memset(endless.name, 'x', sizeof(endless.name));
	spanjoin_take(j, &endless);
	assert_int_equal(strlen(g.list[5].name), SHARED_SPAN_NAME - 1);
	endless.what = 99;
	spanjoin_take(j, &endless);
	assert_int_equal(g.n, 6);
	spanjoin_free(j);
}

static void add(struct blockmatch *b, uint64_t start, uint64_t end)
{
	blockmatch_add(b, &(struct blockmatch_span){ .start_ns = start * MS, .end_ns = end * MS });
}

static uint64_t start_of(const struct blockmatch_span *s)
{
	return s ? s->start_ns / MS : 0;
}

static void blocks_find_their_spans(void **state)
{
	struct blockmatch b = { 0 };

	/* Seen a little after the return, with the next one under way; and before the return. */
	add(&b, 110, 120);
	add(&b, 10, 100); /* out of order */
	add(&b, 121, 200);
	add(&b, 300, 340);
	assert_int_equal(start_of(blockmatch_at(&b, 102 * MS, 0)), 10);
	assert_int_equal(start_of(blockmatch_at(&b, 122 * MS, 0)), 110);
	assert_int_equal(start_of(blockmatch_at(&b, 203 * MS, 0)), 121);
	assert_int_equal(start_of(blockmatch_at(&b, 335 * MS, 0)), 300);
	assert_null(blockmatch_at(&b, 336 * MS, 0));
	/* Three seen at once, in order. */
	add(&b, 400, 410);
	add(&b, 410, 420);
	add(&b, 420, 430);
	assert_int_equal(start_of(blockmatch_at(&b, 431 * MS, 2)), 400);
	assert_int_equal(start_of(blockmatch_at(&b, 431 * MS, 1)), 410);
	assert_int_equal(start_of(blockmatch_at(&b, 431 * MS, 0)), 420);
	/* Too long ago. */
	add(&b, 500, 510);
	assert_null(blockmatch_at(&b, 9000 * MS, 0));
	blockmatch_done(&b);
}

static void count_unused(void *context, const struct blockmatch_span *s)
{
	++*(unsigned *)context;
}

static void looks_find_their_spans(void **state)
{
	struct blockmatch b = { 0 };
	unsigned unused = 0;

	add(&b, 10, 50);   /* before the last look */
	add(&b, 210, 220);
	add(&b, 230, 240); /* of no block: a pending one */
	add(&b, 250, 260);
	add(&b, 390, 410); /* ended after this look */
	assert_int_equal(start_of(blockmatch_between(&b, 200 * MS, 400 * MS, 1)), 230);
	assert_int_equal(start_of(blockmatch_between(&b, 200 * MS, 400 * MS, 0)), 250);
	assert_int_equal(start_of(blockmatch_between(&b, 400 * MS, 600 * MS, 0)), 390);
	assert_null(blockmatch_between(&b, 600 * MS, 800 * MS, 0));
	/* One block was there before its function returned: alone, and after another one; the third began later. */
	add(&b, 990, 1010);
	add(&b, 1020, 1030);
	assert_int_equal(start_of(blockmatch_between(&b, 900 * MS, 1000 * MS, 0)), 990);
	add(&b, 1180, 1210);
	add(&b, 1205, 1220);
	assert_int_equal(start_of(blockmatch_between(&b, 1000 * MS, 1200 * MS, 1)), 1020);
	assert_int_equal(start_of(blockmatch_between(&b, 1000 * MS, 1200 * MS, 0)), 1180);
	assert_int_equal(start_of(blockmatch_between(&b, 1200 * MS, 1400 * MS, 0)), 1205);
	blockmatch_expire(&b, 300 * MS, count_unused, &unused);
	assert_int_equal(unused, 2);
	assert_int_equal(b.spans.n, 5);
	blockmatch_done(&b);
}

static void functions_have_short_names(void **state)
{
	static const char *const names[][2] = {
		{ "anvil::eth::backend::mem::Backend<N>::do_mine_block::{{closure}}", "do_mine_block" },
		{ "<reth::Tree<P, T> as Handler<Vec<u8>>>::on_new_payload", "on_new_payload" },
		{ "ns::Thing::run(int, std::vector<a::b>)", "run" },
		{ "main", "main" },
		{ "<fn(u8) -> a::b as c::D>::call::{{closure}}::{{closure}}", "call" },
		{ "", "" },
	};
	char out[64], small[4];

	for (size_t i = 0; i < ARRAY_LEN(names) - 2; i++)
		assert_string_equal(spanset_short_name(names[i][0], out, sizeof(out)), names[i][1]);
	assert_string_equal(spanset_short_name("", out, sizeof(out)), "");
	assert_string_equal(spanset_short_name("a::abcdef", small, sizeof(small)), "abc");
}

static void clients_stand_for_functions(void **state)
{
	const char *const names[] = { "anvil", "my_function" }, *const shorts[] = { "x" };
	const char *const clients[] = { "reth", "op-reth", "xlayer-reth", "ethrex" };
	const char *many[40];
	struct spanset set;
	struct err err = { 0 };

	assert_int_equal(spanset_make(&set, names, 2, true, &err), 0);
	assert_int_equal(set.patterns.n, 2);
	assert_true(set.patterns.v[0].block && !set.patterns.v[1].block && !set.patterns.v[0].optional);
	spanset_done(&set);
	assert_int_equal(spanset_make(&set, NULL, 0, true, &err), 0);
	assert_true(set.patterns.n >= 3);
	for (size_t i = 0; i < set.patterns.n; i++)
		assert_true(set.patterns.v[i].block && set.patterns.v[i].optional);
	spanset_done(&set);
	assert_int_equal(spanset_make(&set, NULL, 0, false, &err), 0);
	assert_int_equal(set.patterns.n, 0);
	spanset_done(&set);
	for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
		assert_int_equal(spanset_make(&set, &clients[i], 1, false, &err), 0);
		assert_true(set.patterns.n > 8 && set.patterns.v[0].block && !set.patterns.v[0].optional);
		spanset_done(&set);
	}
	assert_true(spanset_make(&set, shorts, 1, false, &err) < 0);
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = "some_function";
	assert_true(spanset_make(&set, many, ARRAY_LEN(many), false, &err) < 0);
}

/* A file that has the functions of these names, one for each pattern. */
static void pretend(const struct spanset *set, const char *const *names, struct probesites_info *ret)
{
	*ret = (struct probesites_info){ 0 };
	for (; *names; names++)
		for (size_t i = 0; i < set->patterns.n; i++)
			if (!strcmp(set->patterns.v[i].text, *names))
				ret->list[ret->count++].pattern = i;
}

static void inlined_functions_have_alternatives(void **state)
{
	static const struct {
		const char *client, *there[4];
		enum spanset_use uses[3];
	} cases[] = {
		{ "reth", { "::on_new_payload", "::validate_block_with_state" }, { SPANSET_BLOCK, SPANSET_MARK } },
		{ "reth", { "::validate_block_with_state", "::on_save_blocks" }, { SPANSET_BLOCK, SPANSET_MARK } },
		{ "op-reth", { "DatabaseProvider*::save_blocks", "::on_save_blocks" }, { SPANSET_MARK, SPANSET_NOT } },
		{ "ethrex", { "::add_block_pipeline_inner", "::add_block_pipeline", "::warm_block" },
		  { SPANSET_BLOCK, SPANSET_NOT, SPANSET_MARK } },
		{ "ethrex", { "::add_block_pipeline", "::warm_block" }, { SPANSET_BLOCK, SPANSET_MARK } },
	};
	struct probesites_info *info = mem_alloc(sizeof(*info));
	char name[64];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct spanset set;

		assert_int_equal(spanset_make(&set, &cases[i].client, 1, false, NULL), 0);
		pretend(&set, cases[i].there, info);
		assert_true(info->count >= 2);
		for (uint32_t k = 0; k < info->count; k++)
			assert_int_equal(spanset_use(&set, info, info->list[k].pattern), cases[i].uses[k]);
		assert_false(spanset_found(&set, 0));
		/* One that cannot be probed is not there; one that another file had is. */
		info->list[0].trouble = PROBESITES_NO_OUT;
		assert_int_not_equal(spanset_use(&set, info, info->list[1].pattern), SPANSET_NOT);
		set.patterns.v[info->list[0].pattern].functions = 1;
		assert_int_equal(spanset_use(&set, info, info->list[1].pattern), cases[i].uses[1]);
		assert_true(spanset_found(&set, info->list[0].pattern));
		spanset_done(&set);
	}
	assert_string_equal(spanset_mark_name(&(struct spanset_pattern){ .text = "Task*::run" }, "a::Task<B>::run", name, 64),
			    "Task::run");
	assert_string_equal(spanset_mark_name(&(struct spanset_pattern){ .text = "::run" }, "a::Task<B>::run", name, 64), "run");
	free(info);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inlined_functions_have_alternatives),
		cmocka_unit_test(calls_are_spans),
		cmocka_unit_test(polls_are_joined),
		cmocka_unit_test(futures_that_do_not_end),
		cmocka_unit_test(closures_are_no_futures),
		cmocka_unit_test(words_are_joined),
		cmocka_unit_test(blocks_find_their_spans),
		cmocka_unit_test(looks_find_their_spans),
		cmocka_unit_test(functions_have_short_names),
		cmocka_unit_test(clients_stand_for_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
