/* test_blocks.c - what the time of a block is made of. The figures are those of waiting.h. */
#include <errno.h>
#include <math.h>

#include "analyze/blocks/blockruns.h"
#include "analyze/blocks/blocks.h"
#include "analyze/subsystem/classify.h"
#include "bench/compare.h"
#include "bench/runs.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/bench/bench.h"
#include "export/section/blockstext.h"
#include "test.h"
#include "waiting.h"

static const char *const own[] = { "reth", NULL };

struct made {
	struct patterns patterns;
	struct causes causes;
	struct blocks b;
};

static void make(struct made *m, const struct profile *p)
{
	struct err err = { 0 };

	*m = (struct made){ 0 };
	patterns_init(&m->patterns);
	patterns_add_builtin(&m->patterns);
	causes_init(&m->causes, p, &m->patterns);
	if (blocks_make(&m->b, p, &m->causes, own, NULL, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < m->b.rows.n; i++) {
		uint64_t sum = 0;

		for (int k = 0; k < BLOCK_PARTS; k++)
			sum += m->b.rows.v[i].ns[k];
		assert_int_equal(sum, m->b.rows.v[i].split ? m->b.rows.v[i].wall_ns : 0);
	}
}

static void done(struct made *m)
{
	blocks_done(&m->b);
	causes_done(&m->causes);
	patterns_done(&m->patterns);
}

static void add_block(struct profile *p, uint64_t number, uint64_t start_ms, uint64_t end_ms, uint64_t gas,
		      uint32_t thread)
{
	char name[32];

	snprintf(name, sizeof(name), "block %u", (unsigned)number);
	profile_add_mark(p, &(struct profile_mark){ .start_ns = start_ms * MS, .end_ns = end_ms * MS, .thread = thread,
						    .name = profile_string(p, name), .kind = profile_string(p, "block"),
						    .block.known = BLOCK_NUMBER | BLOCK_GAS, .block.number = number, .block.gas = gas });
}

static void no_blocks_are_said(void **state)
{
	struct waiting w = waiting_make();
	struct made m = { 0 };
	struct err err = { 0 };

	profile_add_mark(w.s.p, &(struct profile_mark){ .end_ns = 5, .kind = profile_string(w.s.p, "phase") });
	patterns_init(&m.patterns);
	causes_init(&m.causes, w.s.p, &m.patterns);
	assert_int_equal(blocks_make(&m.b, w.s.p, &m.causes, NULL, NULL, &err), -ENODATA);
	assert_non_null(strstr(err.text, "--log"));
	done(&m);
	profile_free(w.s.p);
}

/* rpc waits 800 ms for a lock of persistence, which syncs 700 of them, waits 20 for a CPU and works for 80. */
static void waits_are_followed(void **state)
{
	struct waiting w = waiting_make();
	const struct block_row *r;
	struct made m;

	add_block(w.s.p, 7, 0, 1000, 37500000, w.rpc);
	make(&m, w.s.p);
	r = &m.b.rows.v[0];
	assert_int_equal(r->thread, w.rpc);
	assert_int_equal(r->ns[BLOCK_DISK], 700 * MS);
	assert_int_equal(r->ns[BLOCK_QUEUE], 20 * MS);
	assert_int_equal(r->ns[BLOCK_LOCK], 100 * MS);
	assert_int_equal(r->ns[BLOCK_OWN], 180 * MS);
	assert_int_equal(r->followed_ns, 800 * MS);
	assert_int_equal(r->parallel_ns, 1400 * MS);
	assert_string_equal(r->functions.v[0].name, "mdbx_txn_commit");
	assert_int_equal(r->functions.v[0].part, BLOCK_DISK);
	assert_string_equal(r->crates.v[0].name, "reth");
	done(&m);
	/* A part of it: what lies in the span, and nothing else. */
	w.s.p->marks.v[0].start_ns = 650 * MS;
	w.s.p->marks.v[0].end_ns = 750 * MS;
	make(&m, w.s.p);
	r = &m.b.rows.v[0];
	assert_int_equal(r->ns[BLOCK_DISK], 50 * MS);
	assert_int_equal(r->ns[BLOCK_QUEUE], 20 * MS);
	assert_int_equal(r->ns[BLOCK_OWN], 30 * MS);
	done(&m);
	profile_free(w.s.p);
}

/* In summed time a waker's moment is not known; a border in the middle of a slot makes the split unknown. */
static void summed_time_is_not_followed(void **state)
{
	struct waiting w = waiting_make();
	const struct block_row *r;
	struct made m;

	add_block(w.s.p, 7, 0, 1000, 37500000, w.rpc);
	profile_add_summed(w.s.p, &(struct profile_summed){ 0, 1000 * MS });
	make(&m, w.s.p);
	r = &m.b.rows.v[0];
	assert_true(r->split && r->summed);
	assert_int_equal(r->followed_ns, 0);
	assert_int_equal(r->ns[BLOCK_LOCK], 900 * MS); /* 100 of them are short ones */
	done(&m);
	w.s.p->summed.v[0].end_ns = 1001 * MS;
	make(&m, w.s.p);
	assert_false(m.b.rows.v[0].split);
	done(&m);
	profile_free(w.s.p);
}

static uint64_t subsystem_ns(const struct block_items *items, const char *name, enum block_part part)
{
	for (size_t i = 0; i < items->n; i++)
		if (!strcmp(items->v[i].name, name) && items->v[i].part == part)
			return items->v[i].ns;
	return 0;
}

/* The same block by subsystem, with what a user says reth's own functions are; as a table, as CSV and as a run. */
static void subsystems_of_a_block(void **state)
{
	static const char mine[] = "[persistence]\nfunction = reth::persist\n[rpc calls]\nfunction = reth::rpc::call reth::Cache::get\n"
				   "[lock]\nfunction = reth::other\n";
	struct waiting w = waiting_make();
	struct made m = { 0 };
	struct subsystems table;
	struct classifier c;
	struct blocks_job job = { .profile = w.s.p, .blocks = &m.b, .capture = "x", .by_subsystem = true, .subsystems = &table };
	struct buf out = { 0 };
	struct err err = { 0 };
	struct runs runs;
	const struct block_row *r;
	uint64_t sum = 0;

	add_block(w.s.p, 7, 0, 1000, 37500000, w.rpc);
	waiting_add(&w, profile_add_event(w.s.p, "sync", "ns", "", 0), w.writer,
		    sample_stack(&w.s, "clone3;start_thread;reth::persist;mdbx_txn_commit;n:/data/mdbx.dat"), 10 * MS, 5 * MS, 1);
	subsystems_init(&table);
	assert_int_equal(subsystems_add(&table, "mine", mine, &err), 0);
	subsystems_add_builtin(&table);
	classifier_init(&c, w.s.p, &table);
	patterns_init(&m.patterns);
	patterns_add_builtin(&m.patterns);
	causes_init(&m.causes, w.s.p, &m.patterns);
	assert_int_equal(blocks_make(&m.b, w.s.p, &m.causes, own, &c, &err), 0);
	r = &m.b.rows.v[0];
	assert_int_equal(subsystem_ns(&r->subsystems, "database commits", BLOCK_DISK), 700 * MS);
	assert_int_equal(subsystem_ns(&r->subsystems, "rpc calls", BLOCK_LOCK), 100 * MS);
	assert_int_equal(subsystem_ns(&r->subsystem_totals, "persistence", BLOCK_DISK), 700 * MS);
	for (size_t i = 0; i < r->subsystems.n; i++)
		sum += r->subsystems.v[i].ns;
	assert_true(sum <= r->wall_ns && sum >= r->wall_ns * 99 / 100);
	blockstext_write(&job, &out);
	assert_non_null(strstr(out.data, "Along their paths, by subsystem: database commits 70.0 %"));
	assert_null(strstr(out.data, "   disk  "));
	out.n = 0;
	blockstext_write_one(&job, 0, &out);
	assert_non_null(strstr(out.data, "  persistence 88.0 %: 18.0 on the CPU, 70.0 the disk of mdbx.dat\n"));
	out.n = 0;
	blockscsv_write(&job, &out);
	assert_non_null(strstr(out.data, ",subsystem_database_commits_ns"));
	assert_non_null(strstr(out.data, ",700000000,"));
	buf_done(&out);
	assert_int_equal(blockruns_make(w.s.p, &m.causes, &c, "node", &runs, &err), 0);
	assert_true(fabs(runs_value(&runs, 0, runs_find_metric(&runs, "database_commits")) - 0.7) < 1e-9);
	assert_true(fabs(runs_value(&runs, 0, runs_find_metric(&runs, "lock")) - 0.1) < 1e-9);
	assert_int_not_equal(runs_find_metric(&runs, "subsystem_lock"), UINT32_MAX);
	runs_done(&runs);
	done(&m);
	classifier_done(&c);
	subsystems_done(&table);
	profile_free(w.s.p);
}

/* A mark without a thread is about the one that ran most; a moment about nobody; gas 0 is a figure. */
static void threads_and_moments(void **state)
{
	struct waiting w = waiting_make();
	struct buf out = { 0 };
	struct made m;

	add_block(w.s.p, 2, 100, 200, 0, PROFILE_NONE);
	add_block(w.s.p, 3, 300, 300, 5, PROFILE_NONE);
	add_block(w.s.p, 1, 50, 60, 21000, w.engine); /* out of order */
	make(&m, w.s.p);
	assert_int_equal(m.b.rows.v[0].block.number, 1);
	assert_int_equal(m.b.rows.v[1].thread, w.busy);
	assert_int_equal(m.b.rows.v[1].ns[BLOCK_OWN], 100 * MS);
	assert_false(m.b.rows.v[2].split);
	assert_int_equal(m.b.split, 2);
	blockscsv_write(&(struct blocks_job){ w.s.p, &m.b, "x" }, &out);
	assert_non_null(strstr(out.data, "\n2,0,,100000000,100000000,0.000000,100000000,"));
	assert_non_null(strstr(out.data, "\n3,5,,300000000,0,,,"));
	buf_done(&out);
	done(&m);
	profile_free(w.s.p);
}

/* Two threads that each say the other ended its wait: nothing is counted twice, nothing runs for ever. */
static void circles_end(void **state)
{
	struct waiting w = waiting_empty();
	struct made m;

	waiting_woken(&w, w.rpc, w.lock, 0, 100 * MS, w.writer, "persistence", w.unlocks);
	waiting_woken(&w, w.writer, w.lock, 0, 100 * MS, w.rpc, "rpc-1", w.unlocks);
	add_block(w.s.p, 1, 0, 100, 1, w.rpc);
	make(&m, w.s.p);
	assert_int_equal(m.b.rows.v[0].ns[BLOCK_LOCK], 100 * MS);
	done(&m);
	profile_free(w.s.p);
}

/* More waits than time, as sums at a border can say: no more than the span. And time that nothing backs. */
static void too_much_and_too_little(void **state)
{
	struct waiting w = waiting_empty();
	struct made m;

	waiting_add(&w, w.wait, w.rpc, w.lock, 5 * MS, 30 * MS, 9);
	waiting_add(&w, w.queue, w.rpc, w.preempted, 6 * MS, 30 * MS, 9);
	add_block(w.s.p, 1, 0, 10, 1, w.rpc);
	add_block(w.s.p, 2, 100, 400, 1, w.rpc);
	make(&m, w.s.p);
	assert_int_equal(m.b.rows.v[0].ns[BLOCK_LOCK], 10 * MS);
	assert_int_equal(m.b.rows.v[1].ns[BLOCK_UNKNOWN], 300 * MS);
	done(&m);
	/* A thread that ended in the middle. */
	w.s.p->threads.v[w.rpc].end_ns = 4 * MS;
	make(&m, w.s.p);
	assert_int_equal(m.b.rows.v[0].ns[BLOCK_UNKNOWN], 6 * MS);
	done(&m);
	profile_free(w.s.p);
}

/* Nine blocks of 10 ms and one that waits 30 ms for a lock; then one that just has more gas. */
static void slow_ones_have_a_reason(void **state)
{
	for (int more_gas = 0; more_gas < 2; more_gas++) {
		struct waiting w = waiting_empty();
		uint32_t compute = sample_stack(&w.s, "clone3;start_thread;reth::compute");
		struct buf out = { 0 };
		struct made m;

		for (unsigned i = 0; i < 9; i++) {
			w.s.now_ns = i * 100 * MS;
			sample_add(&w.s, w.engine, compute, 10);
			add_block(w.s.p, i, i * 100, i * 100 + 10, 1000000, w.engine);
		}
		if (!more_gas)
			waiting_add(&w, w.wait, w.engine, w.lock, 900 * MS, 30 * MS, 1);
		w.s.now_ns = (more_gas ? 900 : 930) * MS;
		sample_add(&w.s, w.engine, compute, more_gas ? 40 : 10);
		add_block(w.s.p, 9, 900, 940, more_gas ? 4000000 : 1000000, w.engine);
		make(&m, w.s.p);
		assert_int_equal(m.b.median_ns, 10 * MS);
		assert_int_equal(m.b.slow, 1);
		assert_true(m.b.rows.v[9].slow);
		assert_string_equal(m.b.difference, more_gas ?
			"The 1 slow of 10 blocks have 4.0 times the gas of typical ones, and take 4.0 times as long." :
			"The 1 slow of 10 blocks spend 30.0 ms in locks, where typical ones spend nothing, most under "
			"`reth::Cache::get`.");
		blockstext_write(&(struct blocks_job){ w.s.p, &m.b, "x", 3 }, &out);
		assert_non_null(strstr(out.data, "7 more"));
		assert_non_null(strstr(out.data, "block 9, 40.00 ms: "));
		buf_done(&out);
		done(&m);
		profile_free(w.s.p);
	}
}

/* A page of a mapped database, with the faults of it as -e fault records them: a file, and a range of it. */
static void add_fault(struct waiting *w, uint32_t time_event, const char *file, uint64_t at_ns, uint64_t ns)
{
	uint32_t waits = sample_stack(&w->s, "clone3;start_thread;reth::state_root;mdbx_page_get;"
					     "k:asm_exc_page_fault;k:handle_mm_fault;k:filemap_fault;"
					     "k:folio_wait_bit_common;k:io_schedule;k:schedule");
	uint32_t faults = sample_stack(&w->s, "clone3;start_thread;reth::state_root;mdbx_page_get;n:%s;"
					      "n:mdbx.dat at 0x0-0x10000", file);

	waiting_add(w, w->wait, w->engine, waits, at_ns, ns, 1);
	waiting_add(w, time_event, w->engine, faults, at_ns, ns, 3);
}

/* Typical ones wait 10 of 20 ms for pages of the database, the slow one 41 of 51. */
static void files_are_named(void **state)
{
	struct waiting w = waiting_empty();
	uint32_t compute = sample_stack(&w.s, "clone3;start_thread;reth::compute;alloy_rlp::decode");
	uint32_t time = profile_add_event(w.s.p, "major-time", "ns", "", 0);
	uint32_t count = profile_add_event(w.s.p, "major-faults", "count", "", 0);
	struct blocks_job job = { .profile = w.s.p, .capture = "x", .crates = true, .page = "/tmp/a b/x.html" };
	const struct block_item *item;
	struct buf out = { 0 };
	struct made m;

	for (unsigned i = 0; i < 10; i++) {
		unsigned ms = i == 9 ? 41 : 10;

		add_fault(&w, time, "/data/db/mdbx.dat", i * 90 * MS, (ms - 4) * MS);
		add_fault(&w, time, "/data/other.dat", (i * 90 + ms - 4) * MS, 4 * MS);
		/* Counts of what has times already: they must not weigh. */
		waiting_add(&w, count, w.engine, w.lock, i * 90 * MS, 1000000000, 1);
		w.s.now_ns = (i * 90 + ms) * MS;
		sample_add(&w.s, w.engine, compute, 10);
		add_block(w.s.p, i, i * 90, i * 90 + ms + 10, 1000000, w.engine);
	}
	make(&m, w.s.p);
	job.blocks = &m.b;
	assert_string_equal(m.b.difference, "The 1 slow of 10 blocks spend 4.1 times as long in page faults of mdbx.dat "
					    "(41.0 ms, not 10.0 ms), most in mdbx_page_get under `reth::state_root`.");
	item = &m.b.rows.v[9].functions.v[0];
	assert_int_equal(item->part, BLOCK_FAULT);
	assert_string_equal(item->file, "/data/db/mdbx.dat");
	assert_string_equal(item->under, "reth::state_root");
	/* By crate: alloy_rlp has the CPU, 10 of 20 ms. */
	assert_string_equal(m.b.crates.v[0].name, "alloy_rlp");
	assert_int_equal(m.b.crates.v[0].ns, 100 * MS);
	blockstext_write(&job, &out);
	assert_non_null(strstr(out.data, "by crate: alloy_rlp 43.3 % of the wall time."));
	assert_non_null(strstr(out.data, "alloy_rlp cpu ..  queue"));
	assert_non_null(strstr(out.data, "           50      -      -      -      -     50"));
	out.n = 0;
	blockstext_write_one(&job, 9, &out);
	assert_non_null(strstr(out.data, "mdbx_page_get, under reth::state_root: /data/db/mdbx.dat\n"));
	assert_non_null(strstr(out.data, "file:///tmp/a%20b/x.html#range=%5B810000000%2C861000000%5D&what=wall\n"));
	out.n = 0;
	blocksjson_write(&job, &out);
	assert_non_null(strstr(out.data, "\"under\":\"reth::state_root\",\"file\":\"/data/db/mdbx.dat\",\"ns\":41000000}"));
	buf_done(&out);
	done(&m);
	profile_free(w.s.p);
}

/* Names that would steer a terminal, a shell, a spreadsheet or break JSON. */
static void names_are_harmless(void **state)
{
	struct waiting w = waiting_make();
	struct profile *p = w.s.p;
	struct blocks_job job = { .profile = p, .capture = "it's\x1b[2J.gasflame" };
	struct buf out = { 0 };
	struct made m;

	add_block(p, 1, 0, 100, 1, w.busy);
	p->marks.v[0].name = profile_string(p, "\x1b[31m\"block\"\n<b>\xff");
	p->threads.v[w.busy].name = profile_string(p, "=cmd(\"x\")\x07");
	make(&m, p);
	job.blocks = &m.b;
	blockstext_write(&job, &out);
	blockstext_write_one(&job, 0, &out);
	blockscsv_write(&job, &out);
	assert_null(strpbrk(out.data, "\x1b\x07"));
	assert_non_null(strstr(out.data, "\"'=cmd(\"\"x\"\")\xef\xbf\xbd\""));
	assert_non_null(strstr(out.data, "--from 0.000000000 --to 0.100000000 'it'\\''s\xef\xbf\xbd[2J.gasflame'"));
	out.n = 0;
	blocksjson_write(&job, &out);
	assert_null(strpbrk(out.data, "\x1b\x07"));
	assert_non_null(strstr(out.data, "[31m\\\"block\\\""));
	buf_done(&out);
	done(&m);
	profile_free(p);
}

static double figure(const struct runs *r, size_t row, const char *name)
{
	uint32_t m = runs_find_metric(r, name);

	if (m == UINT32_MAX)
		fail_msg("no %s", name);
	return runs_value(r, row, m);
}

static int make_table(const struct profile *p, struct runs *ret, struct err *err)
{
	struct patterns patterns = { 0 };
	struct causes causes = { 0 };
	int e;

	patterns_init(&patterns);
	patterns_add_builtin(&patterns);
	causes_init(&causes, p, &patterns);
	e = blockruns_make(p, &causes, NULL, "node", ret, err);
	causes_done(&causes);
	patterns_done(&patterns);
	return e;
}

#define same(got, wanted) assert_true(fabs((got) - (wanted)) < 1e-9)

/* The block of waits_are_followed() as a row; one without a number, and one that came twice. */
static void blocks_as_runs(void **state)
{
	struct waiting w = waiting_make();
	uint32_t alloc = profile_add_event(w.s.p, "alloc", "bytes", "", 0);
	struct err err = { 0 };
	struct runs r;

	add_block(w.s.p, 7, 0, 500, 1, w.rpc);
	add_block(w.s.p, 7, 0, 1000, 37500000, w.rpc);
	add_block(w.s.p, 8, 0, 1000, 1, w.rpc);
	w.s.p->marks.v[2].block.known = 0;
	waiting_add(&w, alloc, w.idle, w.park, 999 * MS, 4096, 1);
	waiting_add(&w, alloc, w.idle, w.park, 1000 * MS, 512, 1);
	assert_int_equal(make_table(w.s.p, &r, &err), 0);
	assert_int_equal(r.rows.n, 1);
	assert_int_equal(r.rows.v[0].block, 7);
	same(figure(&r, 0, "wall"), 1);
	same(figure(&r, 0, "disk"), 0.7);
	same(figure(&r, 0, "queue"), 0.02);
	same(figure(&r, 0, "lock"), 0.1);
	same(figure(&r, 0, "cpu"), 0.18);
	same(figure(&r, 0, "gas_per_s"), 37.5e6);
	same(figure(&r, 0, "allocated"), 4096);
	runs_done(&r);
	w.s.p->marks.n = 0;
	assert_int_equal(make_table(w.s.p, &r, &err), -ENODATA);
	assert_non_null(strstr(err.text, "gasflame diff"));
	profile_free(w.s.p);
}

static void add_run(struct profile *p, const char *name, uint64_t start_ms, uint64_t end_ms)
{
	profile_add_mark(p, &(struct profile_mark){ .start_ns = start_ms * MS, .end_ns = end_ms * MS, .thread = PROFILE_NONE,
						    .name = profile_string(p, name), .kind = profile_string(p, "run") });
}

/* What bench --record marks: all threads of a run count, cut at its ends, but nothing of bench's own process. */
static void recorded_runs(void **state)
{
	struct waiting w = waiting_empty();
	struct profile *p = w.s.p;
	uint32_t malloc_ = sample_stack(&w.s, "main;grow;malloc");
	uint32_t bench = profile_add_process(p, &(struct profile_process){ .pid = 900 });
	uint32_t waits = builder_thread(p, bench, 900, "gasflame");
	struct runs r;

	p->processes.v[0].start_ns = 110 * MS;
	add_run(p, "warm-up of ./old", 0, 100);
	add_run(p, "run 1 of ./old", 100, 200);
	add_run(p, "run 1 of ./new", 200, 400);
	waiting_add(&w, w.wait, w.rpc, w.lock, 150 * MS, 100 * MS, 1);
	waiting_add(&w, w.wait, w.writer, w.fsync, 180 * MS, 10 * MS, 1);
	waiting_add(&w, w.queue, w.engine, w.preempted, 210 * MS, 5 * MS, 1);
	waiting_add(&w, w.wait, waits, w.lock, 100 * MS, 300 * MS, 1);
	w.s.now_ns = 120 * MS;
	sample_add(&w.s, w.engine, malloc_, 7);
	assert_int_equal(make_table(p, &r, NULL), 0);
	assert_int_equal(r.rows.n, 2);
	assert_int_equal(r.commands.n, 2);
	assert_true(r.interleaved);
	assert_string_equal(r.commands.v[r.rows.v[1].command], "./new");
	same(figure(&r, 0, "lock"), 0.05);
	same(figure(&r, 1, "lock"), 0.05);
	same(figure(&r, 0, "disk"), 0.01);
	same(figure(&r, 1, "queue"), 0.005);
	same(figure(&r, 0, "cpu"), 0.007);
	same(figure(&r, 0, "allocation"), 0.007);
	same(figure(&r, 1, "wall"), 0.2);
	runs_done(&r);
	profile_free(p);
}

/* Two recordings of different blocks are compared unpaired; a part that is next to nothing has no row. */
static void other_blocks(void **state)
{
	struct runs sides[2] = { 0 };
	const struct runs *first[] = { &sides[0] }, *second[] = { &sides[1] };
	const struct compare_side a = { first, 1, 0 }, b = { second, 1, 0 };
	const struct compare_options o = { .floor = -1 };
	struct buf out = { 0 };
	struct comparison c;

	for (int i = 0; i < 2; i++) {
		runs_command(&sides[i], "node");
		runs_add_metric(&sides[i], "wall", "s");
		for (int k = 0; k < 2; k++) {
			uint32_t m = runs_add_metric(&sides[i], k ? "lock" : "net", "s");

			sides[i].metrics.v[m].part = true;
		}
		for (int k = 0; k < 20; k++) {
			double *v = runs_add_row(&sides[i], &(struct runs_row){ .round = 1, .block = 1000 * (i + 1) + k });

			v[0] = 0.05 * (1 + 0.1 * i) + 1e-5 * (k * 7 % 11);
			v[1] = 1e-5 * (i + 1);
			v[2] = 0.005 * (1 + i) + 1e-5 * (k % 3);
		}
	}
	assert_int_equal(compare_make(&a, &b, &o, &c, NULL), 0);
	assert_int_equal(c.design, COMPARE_OTHER_BLOCKS);
	assert_int_equal(c.rows.v[0].verdict, COMPARE_WORSE);
	assert_int_equal(c.rows.n, 2);
	assert_string_equal(c.rows.v[1].name, "lock");
	assert_int_equal(c.rows.v[1].verdict, COMPARE_WORSE);
	assert_ptr_equal(compare_explain(&c), &c.rows.v[1]);
	compare_sentence(&c, &out);
	assert_non_null(strstr(out.data, "; most of it is lock: 5.0"));
	assert_non_null(strstr(out.data, " ms of 5.00"));
	buf_done(&out);
	c.rows.v[0].verdict = COMPARE_SAME;
	assert_null(compare_explain(&c));
	comparison_done(&c);
	sides[1].rows.v[3].block = 1000; /* one that both have: these are pairs then, and too few of them */
	assert_int_equal(compare_make(&a, &b, &o, &c, NULL), 0);
	assert_int_equal(c.design, COMPARE_BLOCKS);
	assert_int_equal(c.rows.v[0].verdict, COMPARE_UNKNOWN);
	comparison_done(&c);
	runs_done(&sides[0]);
	runs_done(&sides[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_blocks_are_said),
		cmocka_unit_test(waits_are_followed),
		cmocka_unit_test(summed_time_is_not_followed),
		cmocka_unit_test(subsystems_of_a_block),
		cmocka_unit_test(threads_and_moments),
		cmocka_unit_test(circles_end),
		cmocka_unit_test(too_much_and_too_little),
		cmocka_unit_test(slow_ones_have_a_reason),
		cmocka_unit_test(files_are_named),
		cmocka_unit_test(names_are_harmless),
		cmocka_unit_test(blocks_as_runs),
		cmocka_unit_test(recorded_runs),
		cmocka_unit_test(other_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
