/*
 * loadtext.c - a load of JSON-RPC as text and JSON, and the lines that it shares with a replay.
 */
#include <math.h>

#include "stats/stats.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/bench/bench.h"
#include "export/report/cleantext.h"
#include "export/bench/replay.h"
#include "export/bench/replaystats.h"

enum { NAME_COLUMNS = 20, CELL_COLUMNS = 12 };

/* On the right; a micro sign is two bytes. */
static void put_cell(const char *text, struct buf *out)
{
	int wide = (int)cleantext_columns(text);

	buf_printf(out, "%*s%s", wide < CELL_COLUMNS ? CELL_COLUMNS - wide : 1, "", text);
}

void replaystats_head(struct buf *out)
{
	static const char *const names[] = { "median", "mean", "p90", "p99", "max" };

	buf_printf(out, "  %-*s", NAME_COLUMNS, "");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		put_cell(names[i], out);
	buf_putc(out, '\n');
}

void replaystats_row(const char *name, const struct stats_summary *s, struct buf *out)
{
	const double values[] = { s->median, s->mean, s->p90, s->p99, s->max };
	char text[32];

	buf_printf(out, "  %-*s", NAME_COLUMNS, name);
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		put_cell(bench_value(text, values[i], "s"), out);
	buf_putc(out, '\n');
}

void replaystats_json(const struct stats_summary *s, double scale, const char *key, struct json *j)
{
	const struct {
		const char *name;
		double value;
	} list[] = {
		{ "min", s->min }, { "max", s->max }, { "mean", s->mean }, { "median", s->median },
		{ "stddev", s->stddev }, { "p90", s->p90 }, { "p95", s->p95 }, { "p99", s->p99 },
	};

	json_open_object(j, key);
	json_put_uint(j, "n", s->n);
	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		if (isfinite(list[i].value))
			json_put_real(j, list[i].name, list[i].value * scale, 12);
	json_close(j);
}

static void describe(const struct load_kind *k, struct stats_summary *ret)
{
	_cleanup_free_ double *values = mem_alloc((k->latencies_ns.n + 1) * sizeof(*values));

	for (size_t i = 0; i < k->latencies_ns.n; i++)
		values[i] = k->latencies_ns.v[i] / 1e9;
	stats_describe(values, k->latencies_ns.n, ret);
}

struct sums {
	uint64_t taken, errors;
};

static struct sums add_up(const struct load_result *r)
{
	struct sums s = { 0 };

	for (size_t i = 0; i < r->kind_count; i++) {
		s.taken += r->kinds[i].latencies_ns.n;
		s.errors += r->kinds[i].errors;
	}
	return s;
}

void loadtext_put(const struct load_result *r, struct buf *out)
{
	struct sums s = add_up(r);
	char taken[32], time[32], gas[32], speed[32];

	buf_printf(out, "%s transactions taken in %s: %.1f a second over %llu connections%s%s%s\n\n", str_count(taken, s.taken),
		   bench_value(time, r->wall_ns / 1e9, "s"), r->wall_ns ? s.taken * 1e9 / r->wall_ns : 0,
		   (unsigned long long)r->connections, r->stopped ? " (" : "", r->stopped ? r->stopped : "", r->stopped ? ")" : "");
	replaystats_head(out);
	for (size_t i = 0; i < r->kind_count; i++) {
		struct stats_summary summary;

		describe(&r->kinds[i], &summary);
		replaystats_row(r->kinds[i].name, &summary, out);
	}
	buf_printf(out, "\nerrors: %llu\n", (unsigned long long)s.errors);
	for (size_t i = 0; i < r->kind_count; i++)
		if (r->kinds[i].errors)
			buf_printf(out, "  %s: %llu, the last one: %s\n", r->kinds[i].name, (unsigned long long)r->kinds[i].errors,
				   r->kinds[i].error);
	if (r->mined_known)
		buf_printf(out, "mined meanwhile: %llu blocks, %llu transactions, %s gas, %s by the wall clock\n",
			   (unsigned long long)r->blocks, (unsigned long long)r->transactions, str_count(gas, r->gas),
			   bench_value(speed, r->wall_ns ? r->gas * 1e9 / r->wall_ns : NAN, "gas/s"));
	if (r->pending)
		buf_printf(out, "not mined at the end: %llu\n", (unsigned long long)r->pending);
}

static void put_json_kind(const struct load_kind *k, struct json *j)
{
	struct stats_summary summary;

	describe(k, &summary);
	json_open_row(j, 0);
	json_put_string(j, "kind", k->name);
	json_put_uints(j, { "taken", k->latencies_ns.n }, { "errors", k->errors });
	replaystats_json(&summary, 1, "latency_s", j);
	json_put_string(j, "last_error", k->errors ? k->error : NULL);
	json_close(j);
}

void loadjson_put(const struct load_result *r, struct buf *out)
{
	struct sums s = add_up(r);
	struct json j = json_begin(out);

	json_open_object(&j, NULL);
	json_put_string(&j, "gasflame", "load");
	json_put_uint(&j, "version", 1);
	json_put_string(&j, "rpc", r->url);
	json_put_uints(&j, { "taken", s.taken }, { "errors", s.errors });
	json_put_fixed(&j, "wall_s", r->wall_ns / 1e9, 9);
	json_put_fixed(&j, "per_s", r->wall_ns ? s.taken * 1e9 / r->wall_ns : 0, 6);
	json_put_uint(&j, "connections", r->connections);
	json_put_bool(&j, "complete", !r->stopped);
	json_put_string(&j, "ended", r->stopped ? r->stopped : "done");
	if (r->rate_wanted > 0)
		json_put_fixed(&j, "per_s_wanted", r->rate_wanted, 6);
	if (r->mined_known) {
		json_open_object(&j, "mined");
		json_put_uints(&j, { "blocks", r->blocks }, { "transactions", r->transactions }, { "gas", r->gas });
		json_close(&j);
	}
	json_put_uint(&j, "pending", r->pending);
	json_open_array(&j, "kinds");
	for (size_t i = 0; i < r->kind_count; i++)
		put_json_kind(&r->kinds[i], &j);
	json_close(&j);
	json_end_line(&j);
}
