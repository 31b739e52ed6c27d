/*
 * replay.c - a replay of blocks as text, CSV and JSON.
 */
#include "export/bench/replay.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "stats/stats.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/bench/bench.h"
#include "export/bench/replaystats.h"

enum { SLOWEST = 5 };

const struct replay_row replay_row_empty = {
	.attributes_ns = REPLAY_UNKNOWN, .get_ns = REPLAY_UNKNOWN, .server_ns = REPLAY_UNKNOWN,
	.persistence_ns = REPLAY_UNKNOWN, .cache_ns = REPLAY_UNKNOWN, .trie_ns = REPLAY_UNKNOWN,
};

/* In the order of the steps. */
static const struct {
	const char *name, *column;
	size_t offset;
} latencies[] = {
	{ "FCU + attributes", "fcu_attributes_latency", offsetof(struct replay_row, attributes_ns) },
	{ "getPayload", "get_payload_latency", offsetof(struct replay_row, get_ns) },
	{ "newPayload", "new_payload_latency", offsetof(struct replay_row, payload_ns) },
	{ "forkchoiceUpdated", "fcu_latency", offsetof(struct replay_row, choice_ns) },
	{ "both", "total_latency", offsetof(struct replay_row, total_ns) },
	{ "server", "server_latency", offsetof(struct replay_row, server_ns) },
	{ "persistence wait", "persistence_wait", offsetof(struct replay_row, persistence_ns) },
	{ "cache wait", "execution_cache_wait", offsetof(struct replay_row, cache_ns) },
	{ "trie wait", "sparse_trie_wait", offsetof(struct replay_row, trie_ns) },
};
enum { TOTAL = 4, WAITS = 6 }; /* of the above */

static uint64_t value(const struct replay_row *row, size_t which)
{
	return *(const uint64_t *)((const char *)row + latencies[which].offset);
}

/* The rows that have it; 0: none does. */
static size_t describe(const struct replay_result *r, size_t which, struct stats_summary *ret)
{
	_cleanup_free_ double *values = mem_alloc((r->rows.n + 1) * sizeof(*values));
	size_t n = 0;

	for (size_t i = 0; i < r->rows.n; i++)
		if (value(&r->rows.v[i], which) != REPLAY_UNKNOWN)
			values[n++] = value(&r->rows.v[i], which) / 1e9;
	stats_describe(values, n, ret);
	return n;
}

struct sums {
	uint64_t gas, transactions, payload_ns;
	uint64_t server_gas, server_ns; /* of the blocks whose time the node itself told */
};

static struct sums add_up(const struct replay_result *r)
{
	struct sums s = { 0 };

	for (size_t i = 0; i < r->rows.n; i++) {
		s.gas += r->rows.v[i].gas_used;
		s.transactions += r->rows.v[i].transactions;
		s.payload_ns += r->rows.v[i].payload_ns;
		if (r->rows.v[i].server_ns != REPLAY_UNKNOWN) {
			s.server_gas += r->rows.v[i].gas_used;
			s.server_ns += r->rows.v[i].server_ns;
		}
	}
	return s;
}

static double rate(uint64_t gas, uint64_t ns)
{
	return ns ? gas * 1e9 / ns : NAN;
}

/* --- text --- */

static int by_total(const void *a, const void *b)
{
	const struct replay_row *x = *(const struct replay_row *const *)a, *y = *(const struct replay_row *const *)b;

	return x->total_ns < y->total_ns ? 1 : x->total_ns > y->total_ns ? -1 : x->number > y->number ? 1 : -1;
}

static void put_slowest(const struct replay_result *r, struct buf *out)
{
	_cleanup_free_ const struct replay_row **rows = mem_alloc((r->rows.n + 1) * sizeof(*rows));
	char time[32], speed[32], gas[32];

	for (size_t i = 0; i < r->rows.n; i++)
		rows[i] = &r->rows.v[i];
	qsort(rows, r->rows.n, sizeof(*rows), by_total);
	buf_puts(out, "slowest:");
	for (size_t i = 0; i < r->rows.n && i < SLOWEST; i++)
		buf_printf(out, "%s block %llu (%s, %s gas, %s)", i ? "," : "", (unsigned long long)rows[i]->number,
			   bench_value(time, rows[i]->total_ns / 1e9, "s"), str_count(gas, rows[i]->gas_used),
			   bench_value(speed, rate(rows[i]->gas_used, rows[i]->payload_ns), "gas/s"));
	buf_putc(out, '\n');
}

static void put_list(const struct replay_result *r, struct buf *out)
{
	char a[32], b[32], c[32], d[32], gas[32];

	buf_printf(out, "%12s %6s %14s %12s %12s %12s %15s\n", "block", "txs", "gas", "newPayload", "forkchoice", "both",
		   "by newPayload");
	for (size_t i = 0; i < r->rows.n; i++) {
		const struct replay_row *row = &r->rows.v[i];

		buf_printf(out, "%12llu %6llu %14s %s %s %s %15s\n", (unsigned long long)row->number,
			   (unsigned long long)row->transactions, str_count(gas, row->gas_used), str_right(a, str_duration(a, row->payload_ns), 12),
			   str_right(b, str_duration(b, row->choice_ns), 12), str_right(c, str_duration(c, row->total_ns), 12),
			   bench_value(d, rate(row->gas_used, row->payload_ns), "gas/s"));
	}
	buf_putc(out, '\n');
}

static void put_speed(const struct replay_result *r, const struct sums *s, struct buf *out)
{
	char speed[32], time[32], source[32], persist[32], interval[32];

	buf_printf(out, "by newPayload: %s (gas / the sum of its latencies, %s)\n",
		   bench_value(speed, rate(s->gas, s->payload_ns), "gas/s"), bench_value(time, s->payload_ns / 1e9, "s"));
	if (s->server_ns)
		buf_printf(out, "by the server's own time: %s (gas / %s)\n", bench_value(speed, rate(s->server_gas, s->server_ns), "gas/s"),
			   bench_value(time, s->server_ns / 1e9, "s"));
	buf_printf(out, "by wall clock: %s (gas / %s, of which %s waiting for blocks of the source, %s for "
			"persistence",
		   bench_value(speed, rate(s->gas, r->wall_ns), "gas/s"), bench_value(time, r->wall_ns / 1e9, "s"),
		   bench_value(source, r->source_ns / 1e9, "s"), bench_value(persist, r->persist_ns / 1e9, "s"));
	if (r->interval_ns)
		buf_printf(out, ", %s for the interval", bench_value(interval, r->interval_ns / 1e9, "s"));
	buf_printf(out, ")\npersistence was watched by: %s\n", r->watched);
	if (r->built)
		buf_printf(out, "built: %llu of %zu blocks have the hash of the source's%s\n", (unsigned long long)r->same, r->rows.n,
			   r->refused ? "; the node's pool refused transactions" : "");
}

void replaytext_put(const struct replay_result *r, bool list, struct buf *out)
{
	struct sums s = add_up(r);
	char gas[32], transactions[32];

	if (!r->rows.n)
		return;
	if (list)
		put_list(r, out);
	buf_printf(out, "%zu block%s (%llu to %llu), %s transactions, %s gas: all VALID%s%s%s\n\n", r->rows.n,
		   r->rows.n == 1 ? "" : "s", (unsigned long long)r->rows.v[0].number,
		   (unsigned long long)r->rows.v[r->rows.n - 1].number, str_count(transactions, s.transactions),
		   str_count(gas, s.gas), r->stopped ? " (" : "", r->stopped ? r->stopped : "", r->stopped ? ")" : "");
	replaystats_head(out);
	for (size_t i = 0; i < ARRAY_LEN(latencies); i++) {
		struct stats_summary summary;

		if (describe(r, i, &summary))
			replaystats_row(i == TOTAL && r->built ? "all" : latencies[i].name, &summary, out);
	}
	buf_putc(out, '\n');
	put_speed(r, &s, out);
	put_slowest(r, out);
	if (r->syncing || r->accepted || r->retried || r->source_retried)
		buf_printf(out, "answers SYNCING: %llu, ACCEPTED: %llu; asked again: %llu times the node, %llu times the source\n",
			   (unsigned long long)r->syncing, (unsigned long long)r->accepted, (unsigned long long)r->retried,
			   (unsigned long long)r->source_retried);
}

/* --- CSV --- */

static double us(uint64_t ns)
{
	return ns / 1e3;
}

void replaylatency_put(const struct replay_result *r, struct buf *out)
{
	buf_puts(out, "block_number,gas_limit,transaction_count,gas_used,new_payload_latency,fcu_latency,total_latency,"
		      "persistence_wait,execution_cache_wait,sparse_trie_wait\n");
	for (size_t i = 0; i < r->rows.n; i++) {
		const struct replay_row *row = &r->rows.v[i];

		buf_printf(out, "%llu,%llu,%llu,%llu,%.0f,%.0f,%.0f", (unsigned long long)row->number,
			   (unsigned long long)row->gas_limit, (unsigned long long)row->transactions,
			   (unsigned long long)row->gas_used, us(row->payload_ns), us(row->choice_ns), us(row->total_ns));
		for (size_t k = WAITS; k < ARRAY_LEN(latencies); k++) {
			buf_putc(out, ',');
			if (value(row, k) != REPLAY_UNKNOWN)
				buf_printf(out, "%.0f", us(value(row, k)));
		}
		buf_putc(out, '\n');
	}
}

void replaybuilt_put(const struct replay_result *r, struct buf *out)
{
	buf_puts(out, "block_number,gas_limit,transaction_count,gas_used");
	for (size_t k = 0; k <= TOTAL; k++)
		buf_printf(out, ",%s", latencies[k].column);
	buf_putc(out, '\n');
	for (size_t i = 0; i < r->rows.n; i++) {
		const struct replay_row *row = &r->rows.v[i];

		buf_printf(out, "%llu,%llu,%llu,%llu", (unsigned long long)row->number, (unsigned long long)row->gas_limit,
			   (unsigned long long)row->transactions, (unsigned long long)row->gas_used);
		for (size_t k = 0; k <= TOTAL; k++)
			buf_printf(out, ",%.0f", us(value(row, k)));
		buf_putc(out, '\n');
	}
}

void replaygas_put(const struct replay_result *r, struct buf *out)
{
	buf_puts(out, "block_number,transaction_count,gas_used,time\n");
	for (size_t i = 0; i < r->rows.n; i++) {
		const struct replay_row *row = &r->rows.v[i];

		buf_printf(out, "%llu,%llu,%llu,%.0f\n", (unsigned long long)row->number, (unsigned long long)row->transactions,
			   (unsigned long long)row->gas_used, us(row->end_ns));
	}
}

/* --- JSON --- */

static void put_json_row(const struct replay_row *row, struct json *j)
{
	json_open_row(j, 0);
	json_put_uints(j, { "run", 1 }, { "block", row->number }, { "start_ns", row->start_wall_ns },
		       { "gas_limit", row->gas_limit }, { "transactions", row->transactions },
		       { "gas_used", row->gas_used });
	for (size_t i = 0; i < ARRAY_LEN(latencies); i++)
		if (value(row, i) != REPLAY_UNKNOWN)
			json_put_fixed(j, latencies[i].column, us(value(row, i)), 3);
	if (row->payload_ns)
		json_put_real(j, "gas_per_s", rate(row->gas_used, row->payload_ns), 17);
	json_close(j);
}

/* In microseconds too, as the columns of that name are. */
static void put_json_stats(const struct replay_result *r, struct json *j)
{
	for (size_t i = 0; i < ARRAY_LEN(latencies); i++) {
		struct stats_summary s;

		if (describe(r, i, &s) || i == TOTAL)
			replaystats_json(&s, 1e6, latencies[i].column, j);
	}
}

static void put_json_sums(const struct replay_result *r, struct json *j)
{
	struct sums s = add_up(r);

	json_put_string(j, "engine", r->engine);
	json_put_string(j, "api", r->api);
	json_put_uints(j, { "blocks", r->rows.n }, { "transactions", s.transactions }, { "gas", s.gas });
	json_put_bool(j, "complete", !r->stopped);
	json_put_string(j, "ended", r->stopped ? r->stopped : "done");
	json_put_fixed(j, "wall_s", r->wall_ns / 1e9, 9);
	json_put_fixed(j, "source_wait_s", r->source_ns / 1e9, 9);
	json_put_fixed(j, "persistence_wait_s", r->persist_ns / 1e9, 9);
	json_put_fixed(j, "interval_wait_s", r->interval_ns / 1e9, 9);
	json_put_string(j, "persistence_watched", r->watched);
	if (r->built)
		json_put_uints(j, { "built", r->rows.n }, { "built_same", r->same }, { "pool_refused", r->refused });
	if (s.payload_ns)
		json_put_real(j, "gas_per_s_new_payload", rate(s.gas, s.payload_ns), 17);
	if (s.server_ns)
		json_put_real(j, "gas_per_s_server", rate(s.server_gas, s.server_ns), 17);
	if (r->wall_ns)
		json_put_real(j, "gas_per_s_wall", rate(s.gas, r->wall_ns), 17);
}

/* The rest is as `bench` writes its runs, so that `compare` reads both. */
static void put_json_runs(const struct replay_result *r, struct json *j)
{
	struct stats_summary s;

	json_open_array_line(j, "metrics", 0);
	for (size_t i = 0; i < ARRAY_LEN(latencies); i++)
		if (describe(r, i, &s))
			json_put_string(j, NULL, latencies[i].column);
	json_put_string(j, NULL, "gas_used");
	json_put_string(j, NULL, "gas_per_s");
	json_close(j);
	json_open_array(j, "commands");
	json_open_object(j, NULL);
	json_put_string(j, "command", "");
	json_open_array(j, "runs");
	for (size_t i = 0; i < r->rows.n; i++)
		put_json_row(&r->rows.v[i], j);
	for (int i = 0; i < 3; i++)
		json_close(j);
}

void replayjson_put(const struct replay_result *r, struct buf *out)
{
	struct json j = json_begin(out);

	json_open_object(&j, NULL);
	json_put_string(&j, "gasflame", "replay");
	json_put_uint(&j, "version", 1);
	put_json_sums(r, &j);
	put_json_stats(r, &j);
	json_put_uints(&j, { "syncing", r->syncing }, { "accepted", r->accepted }, { "retried", r->retried },
		       { "source_retried", r->source_retried });
	put_json_runs(r, &j);
	json_end_line(&j);
}
