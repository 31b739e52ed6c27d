/* test_blocktasks.c - the path of a block through async tasks. */
#include "test.h"

#include "analyze/blocks/blocks.h"
#include "judged.h"
#include "tasks.h"

static void a_block_goes_through_tasks(void **state)
{
	struct made_tasks m = made_tasks();
	const struct block_row *r;
	struct blocks b;
	struct all a;

	made_block(&m);
	begin(&a, m.p, (struct select_options){ 0 });
	assert_int_equal(blocks_make(&b, m.p, &a.causes, NULL, NULL, NULL), 0);
	r = &b.rows.v[0];
	assert_true(r->split);
	assert_int_equal(r->wall_ns, 35 * MS);
	assert_int_equal(r->ns[BLOCK_DISK], 23 * MS);
	assert_int_equal(r->ns[BLOCK_QUEUE], 2 * MS);
	assert_int_equal(r->ns[BLOCK_OWN] + r->ns[BLOCK_DEPENDENCY] + r->ns[BLOCK_STD] + r->ns[BLOCK_KERNEL] +
			 r->ns[BLOCK_UNNAMED], 10 * MS);
	assert_int_equal(r->followed_ns, 30 * MS);
	assert_int_equal(r->hops.n, 2);
	assert_string_equal(r->hops.v[0].type, "node::rpc::serve");
	assert_string_equal(r->hops.v[0].waker, "node::rpc::serve");
	assert_int_equal(r->hops.v[0].kind, WAKEKIND_CHANNEL);
	assert_int_equal(r->hops.v[0].ns, 30 * MS);
	assert_string_equal(r->hops.v[1].waker, "node::db::read");
	assert_int_equal(r->hops.v[1].kind, WAKEKIND_JOIN);
	assert_int_equal(r->hops.v[1].ns, 25 * MS);
	assert_int_equal(r->hops.v[1].depth, 1);
	blocks_done(&b);

	/* The same thread polls another type of task at the end of the block: its path is the thread's. */
	m.w.s.now_ns = 339 * MS;
	sample_add(&m.w.s, m.worker2, m.encode, 1);
	assert_int_equal(blocks_make(&b, m.p, &a.causes, NULL, NULL, NULL), 0);
	assert_int_equal(b.rows.v[0].hops.n, 0);
	blocks_done(&b);
	end(&a);
	profile_free(m.p);
}

/* An await that a timer ends is the task's own, and is told with its type. */
static void a_block_waits_for_a_timer(void **state)
{
	struct made_tasks m = made_tasks();
	struct blocks b;
	struct all a;

	/* The second poll of flush, and 30 ms of its await before it. */
	profile_add_mark(m.p, &(struct profile_mark){ .start_ns = 280 * MS, .end_ns = 330 * MS, .thread = m.worker2,
						      .name = profile_string(m.p, "block 8"), .kind = profile_string(m.p, "block") });
	begin(&a, m.p, (struct select_options){ 0 });
	assert_int_equal(blocks_make(&b, m.p, &a.causes, NULL, NULL, NULL), 0);
	assert_int_equal(b.rows.v[0].ns[BLOCK_WAIT], 30 * MS);
	assert_int_equal(b.rows.v[0].ns[BLOCK_DISK], 15 * MS);
	assert_int_equal(b.rows.v[0].followed_ns, 0);
	assert_string_equal(b.rows.v[0].functions.v[0].name, "node::db::flush [a timer]");
	assert_int_equal(b.rows.v[0].functions.v[0].ns, 30 * MS);
	blocks_done(&b);
	end(&a);
	profile_free(m.p);
}

/* Rows that contradict each other, as a hostile capture may have them: each moment is counted once all the same. */
static void a_block_survives_nonsense(void **state)
{
	struct made_tasks m = made_tasks();
	uint64_t sum = 0;
	struct blocks b;
	struct all a;

	made_block(&m);
	for (size_t i = 0; i < m.p->taskwakes.n; i++) {
		struct profile_taskwake *w = &m.p->taskwakes.v[i];

		w->await_ns = i % 2 ? UINT64_MAX : 0;
		w->queue_ns = i % 3 ? UINT64_MAX : 0;
		w->waker_task = w->task;
		w->waker = i % 2 ? w->thread : UINT32_MAX - 1;
	}
	begin(&a, m.p, (struct select_options){ 0 });
	assert_int_equal(blocks_make(&b, m.p, &a.causes, NULL, NULL, NULL), 0);
	for (int i = 0; i < BLOCK_PARTS; i++)
		sum += b.rows.v[0].ns[i];
	assert_int_equal(sum, 35 * MS);
	blocks_done(&b);
	end(&a);
	profile_free(m.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_goes_through_tasks),
		cmocka_unit_test(a_block_waits_for_a_timer),
		cmocka_unit_test(a_block_survives_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
