/*
 * test_replay.c - a replay as CSV, JSON and text, each of which says the same; and a load.
 */
#include <math.h>

#include "bench/runs.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/bench/replay.h"
#include "test.h"

#define MS 1000000ULL

/* Ten blocks of 1 to 10 Mgas, 10 ms a Mgas in newPayload, 2 ms for the fork choice, 1 ms between. */
static struct replay_result make(void)
{
	struct replay_result r = { .engine = "http://127.0.0.1:8551", .wall_ns = 1000 * MS, .source_ns = 20 * MS, .persist_ns = 5 * MS,
				   .watched = "nothing" };

	for (uint64_t i = 1; i <= 10; i++) {
		struct replay_row row = replay_row_empty;

		row.number = 99 + i;
		row.gas_limit = 30000000;
		row.gas_used = i * 1000000;
		row.transactions = 2 * i;
		row.payload_ns = i * 10 * MS;
		row.choice_ns = 2 * MS;
		row.total_ns = (i * 10 + 3) * MS;
		row.start_wall_ns = 1700000000000000000 + i;
		row.end_ns = i * 100 * MS;
		vec_push(&r.rows, row);
	}
	return r;
}

static void test_csv(void **state)
{
	struct replay_result r = make();
	struct buf latency = { 0 }, gas = { 0 };

	replaylatency_put(&r, &latency);
	replaygas_put(&r, &gas);
	assert_int_equal(strncmp(latency.data,
				 "block_number,gas_limit,transaction_count,gas_used,new_payload_latency,fcu_latency,total_latency,"
				 "persistence_wait,execution_cache_wait,sparse_trie_wait\n"
				 "100,30000000,2,1000000,10000,2000,13000,,,\n"
				 "101,30000000,4,2000000,20000,2000,23000,,,\n", 236), 0);
	assert_int_equal(strncmp(gas.data,
				 "block_number,transaction_count,gas_used,time\n100,2,1000000,100000\n101,4,2000000,200000\n", 85), 0);
	buf_done(&latency);
	buf_done(&gas);
	vec_done(&r.rows);
}

/* `compare` gets the same from either. */
static void check_runs(const struct buf *text)
{
	struct err err = { 0 };
	struct runs runs;
	uint32_t payload, total;

	if (runs_read(text->data, text->n, "replay", &runs, &err))
		fail_msg("%s", err.text);
	payload = runs_find_metric(&runs, "new_payload_latency");
	total = runs_find_metric(&runs, "total_latency");
	assert_int_equal(runs.rows.n, 10);
	assert_int_equal(runs_main_metric(&runs), total);
	for (size_t i = 0; i < 10; i++) {
		assert_int_equal(runs.rows.v[i].block, 100 + i);
		assert_true(fabs(runs_value(&runs, i, payload) - (i + 1) * 0.010) < 1e-9);
		assert_true(fabs(runs_value(&runs, i, total) - (i + 1) * 0.010 - 0.003) < 1e-9);
		assert_true(runs_value(&runs, i, runs_find_metric(&runs, "gas_used")) == (i + 1) * 1e6);
	}
	runs_done(&runs);
}

static void test_compare_reads(void **state)
{
	struct replay_result r = make();
	struct buf csv = { 0 }, json = { 0 };

	replaylatency_put(&r, &csv);
	check_runs(&csv);
	replayjson_put(&r, &json);
	check_runs(&json);
	/* 55 Mgas in 550 ms of newPayload, and in a second. */
	assert_non_null(strstr(json.data, "\"gas_per_s_new_payload\":100000000,"));
	assert_non_null(strstr(json.data, "\"gas_per_s_wall\":55000000,"));
	assert_non_null(strstr(json.data, "\"complete\":true,\"ended\":\"done\""));
	assert_non_null(strstr(json.data, "\"new_payload_latency\":{\"n\":10,\"min\":10000,\"max\":100000,\"mean\":55000,\"median\":55000,"));
	buf_done(&csv);
	buf_done(&json);
	vec_done(&r.rows);
}

static void test_text(void **state)
{
	struct replay_result r = make();
	struct buf text = { 0 }, none = { 0 };

	r.stopped = "stopped";
	r.syncing = 3;
	replaytext_put(&r, true, &text);
	assert_non_null(strstr(text.data, "10 blocks (100 to 109), 110 transactions, 55,000,000 gas: all VALID (stopped)"));
	assert_non_null(strstr(text.data, "by newPayload: 0.100 Ggas/s (gas / the sum of its latencies, 550.0 ms)"));
	assert_non_null(strstr(text.data, "by wall clock: 55.00 Mgas/s (gas / 1.000 s, of which 20.00 ms waiting for blocks of the "
					  "source, 5.000 ms for persistence)"));
	assert_non_null(strstr(text.data, "slowest: block 109 (103.0 ms, 10,000,000 gas,"));
	assert_non_null(strstr(text.data, "answers SYNCING: 3"));
	r.rows.n = 0;
	replaytext_put(&r, true, &none);
	assert_int_equal(none.n, 0);
	replayjson_put(&r, &none); /* without a block: no rate, no trap */
	assert_null(strstr(none.data, "gas_per_s_new_payload"));
	assert_null(strstr(none.data, "nan"));
	buf_done(&text);
	buf_done(&none);
	vec_done(&r.rows);
}

/* What reth says itself, where it was asked to wait, and where it was not. */
static void test_waits(void **state)
{
	struct replay_result r = make();
	struct buf csv = { 0 }, json = { 0 }, text = { 0 };
	struct runs runs;

	for (size_t i = 0; i < 10; i++) {
		r.rows.v[i].server_ns = 11 * MS;
		r.rows.v[i].persistence_ns = i * MS;
		if (i % 2)
			r.rows.v[i].cache_ns = r.rows.v[i].trie_ns = 7000;
	}
	r.api = "reth";
	r.interval_ns = 30 * MS;
	replaylatency_put(&r, &csv);
	assert_non_null(strstr(csv.data, "\n100,30000000,2,1000000,10000,2000,13000,0,,\n101,30000000,4,2000000,20000,2000,23000,1000,7,7\n"));
	replayjson_put(&r, &json);
	assert_non_null(strstr(json.data, "\"api\":\"reth\""));
	assert_non_null(strstr(json.data, "\"server_latency\":{\"n\":10,\"min\":11000,"));
	assert_non_null(strstr(json.data, "\"execution_cache_wait\":{\"n\":5,\"min\":7,"));
	assert_non_null(strstr(json.data, "\"interval_wait_s\":0.030000000"));
	replaytext_put(&r, false, &text);
	assert_non_null(strstr(text.data, "persistence wait"));
	assert_non_null(strstr(text.data, "by the server's own time: 0.500 Ggas/s (gas / 110.0 ms)\n"));
	assert_non_null(strstr(json.data, "\"gas_per_s_server\":500000000,"));
	assert_non_null(strstr(text.data, ", 30.00 ms for the interval)"));
	/* The same from either file. */
	for (int k = 0; k < 2; k++) {
		const struct buf *from = k ? &json : &csv;

		assert_int_equal(runs_read(from->data, from->n, "x", &runs, NULL), 0);
		assert_string_equal(runs.metrics.v[runs_find_metric(&runs, "persistence_wait")].unit, "s");
		assert_true(fabs(runs_value(&runs, 3, runs_find_metric(&runs, "persistence_wait")) - 0.003) < 1e-9);
		assert_true(fabs(runs_value(&runs, 3, runs_find_metric(&runs, "sparse_trie_wait")) - 7e-6) < 1e-12);
		assert_true(isnan(runs_value(&runs, 2, runs_find_metric(&runs, "sparse_trie_wait"))));
		runs_done(&runs);
	}
	buf_done(&csv);
	buf_done(&json);
	buf_done(&text);
	vec_done(&r.rows);
}

static void test_built(void **state)
{
	struct replay_result r = make();
	struct buf csv = { 0 }, json = { 0 }, text = { 0 };
	struct runs runs;

	r.built = true;
	r.same = 9;
	for (size_t i = 0; i < 10; i++) {
		r.rows.v[i].attributes_ns = 3 * MS;
		r.rows.v[i].get_ns = 4 * MS;
	}
	replaybuilt_put(&r, &csv);
	assert_non_null(strstr(csv.data, "gas_used,fcu_attributes_latency,get_payload_latency,new_payload_latency,fcu_latency,total_latency\n"
					 "100,30000000,2,1000000,3000,4000,10000,2000,13000\n"));
	assert_int_equal(runs_read(csv.data, csv.n, "x", &runs, NULL), 0);
	assert_true(fabs(runs_value(&runs, 0, runs_find_metric(&runs, "get_payload_latency")) - 0.004) < 1e-9);
	runs_done(&runs);
	replayjson_put(&r, &json);
	assert_non_null(strstr(json.data, "\"built\":10,\"built_same\":9,"));
	assert_non_null(strstr(json.data, "\"fcu_attributes_latency\":{\"n\":10,\"min\":3000,"));
	replaytext_put(&r, false, &text);
	assert_non_null(strstr(text.data, "  FCU + attributes"));
	assert_non_null(strstr(text.data, "built: 9 of 10 blocks have the hash of the source's\n"));
	buf_done(&csv);
	buf_done(&json);
	buf_done(&text);
	vec_done(&r.rows);
}

static void test_load(void **state)
{
	struct load_kind kinds[] = { { .name = "transfers" }, { .name = "calls", .errors = 2, .error = "nonce too \"low\"" } };
	struct load_result r = { .url = "http://127.0.0.1:8545", .kinds = kinds, .kind_count = 2, .wall_ns = 2000 * MS,
				 .connections = 4, .mined_known = true, .blocks = 3, .gas = 2100000, .transactions = 100 };
	struct buf text = { 0 };

	for (uint64_t i = 1; i <= 100; i++)
		vec_push(&kinds[0].latencies_ns, i * MS);
	loadtext_put(&r, &text);
	assert_non_null(strstr(text.data, "100 transactions taken in 2.000 s: 50.0 a second over 4 connections"));
	assert_non_null(strstr(text.data, "calls: 2, the last one: nonce too \"low\""));
	assert_non_null(strstr(text.data, "3 blocks, 100 transactions, 2,100,000 gas"));
	text.n = 0;
	loadjson_put(&r, &text);
	assert_non_null(strstr(text.data, "\"taken\":100,\"errors\":2,"));
	assert_non_null(strstr(text.data, "\"last_error\":\"nonce too \\\"low\\\"\""));
	assert_non_null(strstr(text.data, "\"median\":0.0505"));
	buf_done(&text);
	vec_done(&kinds[0].latencies_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_csv),  cmocka_unit_test(test_compare_reads),
		cmocka_unit_test(test_text), cmocka_unit_test(test_waits),
		cmocka_unit_test(test_built), cmocka_unit_test(test_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
