/*
 * test_blockpace.c - how often a node is asked, and how late its blocks are seen, on simulated chains.
 */
#include "test.h"

#include "base/mem.h"
#include "collect/blocks/blockpace.h"

#define MS 1000000ULL
#define SECOND 1000000000ULL

/* What asking gave from a moment on. */
struct outcome {
	uint32_t questions, seen;
	uint64_t latest_ns; /* the longest time from a block to the answer that had it */
};

/* Asks a chain with blocks at these times, from 0 to an end; counts from a moment on. */
static struct outcome ask(const uint64_t *blocks, size_t n, uint64_t from, uint64_t end)
{
	struct blockpace p = { 0 };
	struct outcome o = { 0 };
	size_t at = 0;

	for (uint64_t now = 0; now < end; now += blockpace_wait_ms(&p, now) * MS) {
		size_t before = at;

		for (; at < n && blocks[at] <= now; at++)
			if (blocks[at] >= from) {
				o.seen++;
				o.latest_ns = MAX(o.latest_ns, now - blocks[at]);
			}
		blockpace_answered(&p, now, at - before);
		o.questions += now >= from;
		assert_true(blockpace_wait_ms(&p, now) >= BLOCKPACE_ASK_MS && blockpace_wait_ms(&p, now) <= BLOCKPACE_LONG_MS);
	}
	return o;
}

/* Gaps in milliseconds, each with up to so much more or less, by a small generator. */
static size_t make(uint64_t *blocks, size_t n, uint64_t gap_ms, uint64_t jitter_ms)
{
	uint64_t random = 1;

	for (size_t i = 0; i < n; i++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		blocks[i] = (i + 1) * gap_ms * MS + (jitter_ms ? (random >> 33) % (2 * jitter_ms) * MS : 0);
	}
	return n;
}

static void a_second(void **state)
{
	uint64_t blocks[600];
	struct outcome o = ask(blocks, make(blocks, 600, 1000, 0), 20 * SECOND, 600 * SECOND);

	assert_int_equal(o.seen, 580);
	assert_true(o.latest_ns <= BLOCKPACE_ASK_MS * MS);
	assert_true(o.questions <= 580 * 3 + 3); /* instead of five */
}

static void twelve_seconds_with_jitter(void **state)
{
	uint64_t blocks[100];
	struct outcome o = ask(blocks, make(blocks, 100, 12000, 1000), 200 * SECOND, 1205 * SECOND);

	assert_true(o.seen >= 83);
	assert_true(o.latest_ns <= BLOCKPACE_ASK_MS * MS);
	assert_true(o.questions <= o.seen * 30); /* instead of 60 */
}

/* Blocks that are as quick as the questions were: nothing changes. */
static void a_quarter_of_a_second(void **state)
{
	uint64_t blocks[400];
	struct outcome o = ask(blocks, make(blocks, 400, 250, 0), 10 * SECOND, 100 * SECOND);

	assert_true(o.seen >= 359);
	assert_true(o.latest_ns <= BLOCKPACE_ASK_MS * MS);
	assert_true(o.questions >= 400);
}

/* Ten blocks of 12 s, then many: the first of them is seen late, the second is not. */
static void bursts(void **state)
{
	uint64_t blocks[40];
	struct outcome o;

	make(blocks, 10, 12000, 0);
	for (size_t i = 10; i < 40; i++)
		blocks[i] = 121 * SECOND + (i - 10) * 500 * MS;
	o = ask(blocks, 40, 132 * SECOND, 137 * SECOND);
	assert_true(o.latest_ns <= BLOCKPACE_ASK_MS * MS);
	o = ask(blocks, 40, 0, 137 * SECOND);
	assert_int_equal(o.seen, 40); /* all are in an answer, the early ones together */
	assert_true(o.latest_ns <= BLOCKPACE_LONG_MS * MS);
}

/* A chain that halts for an hour is asked once a second, and its next block is seen within one. */
static void halts(void **state)
{
	uint64_t blocks[21];
	struct outcome o;

	make(blocks, 20, 1000, 0);
	blocks[20] = 3700 * SECOND + 300 * MS;
	o = ask(blocks, 21, 100 * SECOND, 3702 * SECOND);
	assert_int_equal(o.seen, 1);
	assert_true(o.latest_ns <= BLOCKPACE_SLOW_MS * MS);
	assert_true(o.questions <= 3800);
	/* A slot without a block is no halt. */
	make(blocks, 21, 12000, 0);
	for (size_t i = 15; i < 21; i++)
		blocks[i] += 12 * SECOND;
	o = ask(blocks, 21, 170 * SECOND, 265 * SECOND);
	assert_true(o.latest_ns <= BLOCKPACE_ASK_MS * MS);
}

/* Nothing came yet. */
static void without_blocks(void **state)
{
	struct outcome o = ask(NULL, 0, 0, 60 * SECOND);

	assert_int_equal(o.questions, 300);
	o = ask(NULL, 0, 600 * SECOND, 700 * SECOND);
	assert_int_equal(o.questions, 100);
}

/* Few gaps say little. */
static void a_short_history(void **state)
{
	struct blockpace p = { 0 };

	for (int i = 0; i < BLOCKPACE_GAPS; i++) {
		assert_true(blockpace_wait_ms(&p, i * 60 * SECOND) <= BLOCKPACE_SHORT_MS);
		blockpace_answered(&p, i * 60 * SECOND, 1);
	}
	blockpace_answered(&p, BLOCKPACE_GAPS * 60 * SECOND, 1);
	assert_int_equal(blockpace_wait_ms(&p, BLOCKPACE_GAPS * 60 * SECOND), BLOCKPACE_LONG_MS);
}

/* The blocks of one answer share its gap: a node that fell behind and comes back has no long pause. */
static void several_in_an_answer(void **state)
{
	struct blockpace p = { 0 };

	for (uint64_t now = SECOND; now < 20 * SECOND; now += SECOND)
		blockpace_answered(&p, now, 10);
	assert_int_equal(blockpace_wait_ms(&p, 19 * SECOND), BLOCKPACE_ASK_MS);
}

static void clocks(void **state)
{
	struct blockpace p = { 0 };

	/* One that stands still. */
	for (int i = 0; i < 20; i++) {
		blockpace_answered(&p, SECOND, 1);
		assert_int_equal(blockpace_wait_ms(&p, SECOND), BLOCKPACE_ASK_MS);
	}
	/* One that jumps back, ahead, and to its ends: no pause beyond what a chain may have. */
	p = (struct blockpace){ 0 };
	for (uint64_t now = 100 * SECOND; now < 400 * SECOND; now += 12 * SECOND)
		blockpace_answered(&p, now, 1);
	blockpace_answered(&p, 10 * SECOND, 0);
	assert_true(blockpace_wait_ms(&p, 10 * SECOND) <= BLOCKPACE_LONG_MS);
	assert_true(blockpace_wait_ms(&p, 5 * SECOND) <= BLOCKPACE_LONG_MS);
	assert_true(blockpace_wait_ms(&p, 10 * SECOND + 9 * SECOND) == BLOCKPACE_ASK_MS);
	blockpace_answered(&p, UINT64_MAX, 1);
	assert_true(blockpace_wait_ms(&p, UINT64_MAX) <= BLOCKPACE_LONG_MS);
	assert_true(blockpace_wait_ms(&p, 0) <= BLOCKPACE_LONG_MS);
	blockpace_answered(&p, 0, UINT64_MAX);
	assert_true(blockpace_wait_ms(&p, UINT64_MAX) <= BLOCKPACE_LONG_MS);
	assert_int_equal(blockpace_wait_ms(&p, 0), BLOCKPACE_ASK_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_second),
		cmocka_unit_test(twelve_seconds_with_jitter),
		cmocka_unit_test(a_quarter_of_a_second),
		cmocka_unit_test(bursts),
		cmocka_unit_test(halts),
		cmocka_unit_test(without_blocks),
		cmocka_unit_test(a_short_history),
		cmocka_unit_test(several_in_an_answer),
		cmocka_unit_test(clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
