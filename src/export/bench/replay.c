/*
 * replay.c - a replay of blocks as text, CSV and JSON.
 */
#include "export/bench/replay.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "stats/stats.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/bench/bench.h"
#include "export/bench/replaystats.h"

enum { SLOWEST = 5 };

static const struct {
	const char *name, *column;
	size_t offset;
} latencies[] = {
	{ "newPayload", "new_payload_latency", offsetof(struct replay_row, payload_ns) },
	{ "forkchoiceUpdated", "fcu_latency", offsetof(struct replay_row, choice_ns) },
	{ "both", "total_latency", offsetof(struct replay_row, total_ns) },
};

static uint64_t value(const struct replay_row *row, size_t which)
{
	return *(const uint64_t *)((const char *)row + latencies[which].offset);
}

static void describe(const struct replay_result *r, size_t which, struct stats_summary *ret)
{
	_cleanup_free_ double *values = mem_alloc((r->rows.n + 1) * sizeof(*values));

	for (size_t i = 0; i < r->rows.n; i++)
		values[i] = value(&r->rows.v[i], which) / 1e9;
	stats_describe(values, r->rows.n, ret);
}

struct sums {
	uint64_t gas, transactions, payload_ns;
};

static struct sums add_up(const struct replay_result *r)
{
	struct sums s = { 0 };

	for (size_t i = 0; i < r->rows.n; i++) {
		s.gas += r->rows.v[i].gas_used;
		s.transactions += r->rows.v[i].transactions;
		s.payload_ns += r->rows.v[i].payload_ns;
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

		buf_printf(out, "%12llu %6llu %14s %12s %12s %12s %15s\n", (unsigned long long)row->number,
			   (unsigned long long)row->transactions, str_count(gas, row->gas_used), str_duration(a, row->payload_ns),
			   str_duration(b, row->choice_ns), str_duration(c, row->total_ns),
			   bench_value(d, rate(row->gas_used, row->payload_ns), "gas/s"));
	}
	buf_putc(out, '\n');
}

static void put_speed(const struct replay_result *r, const struct sums *s, struct buf *out)
{
	char speed[32], time[32], source[32], persist[32];

	buf_printf(out, "by newPayload: %s (gas / the sum of its latencies, %s)\n",
		   bench_value(speed, rate(s->gas, s->payload_ns), "gas/s"), bench_value(time, s->payload_ns / 1e9, "s"));
	buf_printf(out, "by wall clock: %s (gas / %s, of which %s waiting for blocks of the source, %s for "
			"persistence)\n",
		   bench_value(speed, rate(s->gas, r->wall_ns), "gas/s"), bench_value(time, r->wall_ns / 1e9, "s"),
		   bench_value(source, r->source_ns / 1e9, "s"), bench_value(persist, r->persist_ns / 1e9, "s"));
	buf_printf(out, "persistence was watched by: %s\n", r->watched);
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

		describe(r, i, &summary);
		replaystats_row(latencies[i].name, &summary, out);
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
	buf_puts(out, "block_number,gas_limit,transaction_count,gas_used,new_payload_latency,fcu_latency,total_latency\n");
	for (size_t i = 0; i < r->rows.n; i++) {
		const struct replay_row *row = &r->rows.v[i];

		buf_printf(out, "%llu,%llu,%llu,%llu,%.0f,%.0f,%.0f\n", (unsigned long long)row->number,
			   (unsigned long long)row->gas_limit, (unsigned long long)row->transactions,
			   (unsigned long long)row->gas_used, us(row->payload_ns), us(row->choice_ns), us(row->total_ns));
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

static void put_json_row(const struct replay_row *row, struct buf *out)
{
	buf_printf(out, "{\"run\":1,\"block\":%llu,\"start_ns\":%llu,\"gas_limit\":%llu,\"transactions\":%llu,\"gas_used\":%llu",
		   (unsigned long long)row->number, (unsigned long long)row->start_wall_ns, (unsigned long long)row->gas_limit,
		   (unsigned long long)row->transactions, (unsigned long long)row->gas_used);
	for (size_t i = 0; i < ARRAY_LEN(latencies); i++)
		buf_printf(out, ",\"%s\":%.3f", latencies[i].column, us(value(row, i)));
	if (row->payload_ns)
		buf_printf(out, ",\"gas_per_s\":%.17g", rate(row->gas_used, row->payload_ns));
	buf_putc(out, '}');
}

/* In microseconds too, as the columns of that name are. */
static void put_json_stats(const struct replay_result *r, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(latencies); i++) {
		struct stats_summary s;

		describe(r, i, &s);
		buf_printf(out, ",\"%s\":", latencies[i].column);
		replaystats_json(&s, 1e6, out);
	}
}

void replayjson_put(const struct replay_result *r, struct buf *out)
{
	struct sums s = add_up(r);

	buf_puts(out, "{\"gasflame\":\"replay\",\"version\":1,\"engine\":");
	buf_json(out, r->engine);
	buf_printf(out, ",\"blocks\":%zu,\"transactions\":%llu,\"gas\":%llu,\"complete\":%s,\"ended\":", r->rows.n,
		   (unsigned long long)s.transactions, (unsigned long long)s.gas, r->stopped ? "false" : "true");
	buf_json(out, r->stopped ? r->stopped : "done");
	buf_printf(out, ",\"wall_s\":%.9f,\"source_wait_s\":%.9f,\"persistence_wait_s\":%.9f", r->wall_ns / 1e9,
		   r->source_ns / 1e9, r->persist_ns / 1e9);
	buf_puts(out, ",\"persistence_watched\":");
	buf_json(out, r->watched);
	if (s.payload_ns)
		buf_printf(out, ",\"gas_per_s_new_payload\":%.17g", rate(s.gas, s.payload_ns));
	if (r->wall_ns)
		buf_printf(out, ",\"gas_per_s_wall\":%.17g", rate(s.gas, r->wall_ns));
	put_json_stats(r, out);
	buf_printf(out, ",\"syncing\":%llu,\"accepted\":%llu,\"retried\":%llu,\"source_retried\":%llu", (unsigned long long)r->syncing,
		   (unsigned long long)r->accepted, (unsigned long long)r->retried, (unsigned long long)r->source_retried);
	buf_puts(out, ",\n\"metrics\":[\"new_payload_latency\",\"fcu_latency\",\"total_latency\",\"gas_used\",\"gas_per_s\"]"
		      ",\"commands\":[{\"command\":\"\",\"runs\":[");
	for (size_t i = 0; i < r->rows.n; i++) {
		buf_puts(out, i ? ",\n" : "\n");
		put_json_row(&r->rows.v[i], out);
	}
	buf_puts(out, "]}]}\n");
}
