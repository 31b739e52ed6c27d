/*
 * bench.c - measured runs as text, CSV and JSON.
 */
#include "export/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stats/bootstrap.h"
#include "bench/runs.h"
#include "stats/stats.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "export/report/cleantext.h"

enum { OUTLIERS_SHOWN = 8, RUNS_SHOWN = 20, NAME_COLUMNS = 20 };

static const double median_only[] = { 0.5 };

/* With so many digits that four of them count. */
static void put_digits(char out[32], double x, const char *unit)
{
	double size = fabs(x);

	snprintf(out, 32, "%.*f%s", size < 9.9995 ? 3 : size < 99.995 ? 2 : size < 999.95 ? 1 : 0, x, unit);
}

char *bench_value(char out[32], double x, const char *unit)
{
	double size = fabs(x);

	if (!isfinite(x))
		snprintf(out, 32, "-");
	else if (!size)
		snprintf(out, 32, "0");
	else if (!strcmp(unit, "s") && size < 1e-3)
		put_digits(out, x * 1e6, " \xc2\xb5s");
	else if (!strcmp(unit, "s"))
		put_digits(out, size < 1 ? x * 1e3 : x, size < 1 ? " ms" : " s");
	else if (!strcmp(unit, "gas/s"))
		put_digits(out, size < 1e8 ? x / 1e6 : x / 1e9, size < 1e8 ? " Mgas/s" : " Ggas/s");
	else if (!strcmp(unit, "bytes"))
		put_digits(out, size < 1e6 ? x / 1e3 : size < 1e9 ? x / 1e6 : x / 1e9,
			   size < 1e6 ? " kB" : size < 1e9 ? " MB" : " GB");
	else if (size >= 1e6)
		put_digits(out, size < 1e9 ? x / 1e6 : x / 1e9, size < 1e9 ? " M" : " G");
	else
		snprintf(out, 32, "%.*f", x == floor(x) ? 0 : 1, x);
	return out;
}

/* --- text --- */

/* Puts a cell of so many columns, right-aligned; non-ASCII text has more bytes than columns. */
static void put_cell(struct buf *out, const char *text, int columns)
{
	int wide = (int)cleantext_columns(text);

	buf_printf(out, "%*s%s", wide < columns ? columns - wide : 1, "", text);
}

static void put_interval(struct buf *out, const double *values, size_t n, const char *unit)
{
	const struct bootstrap_side side = { .values = values, .n = n };
	const struct bootstrap_options o = { .seed = n };
	struct bootstrap_interval i;
	char low[32], high[32], both[80];

	bootstrap_level(&side, median_only, 1, &o, &i);
	if (isnan(i.low))
		snprintf(both, sizeof(both), "-");
	else
		snprintf(both, sizeof(both), "%s \xe2\x80\xa6 %s", bench_value(low, i.low, unit),
			 bench_value(high, i.high, unit));
	put_cell(out, both, 30);
}

static void put_row(const struct runs *r, uint32_t command, uint32_t m, double *values, struct buf *out)
{
	const struct runs_metric *metric = &r->metrics.v[m];
	size_t n = runs_column(r, command, m, values, NULL);
	struct stats_summary s;
	char text[32];

	stats_describe(values, n, &s);
	if (!s.n)
		return;
	buf_printf(out, "  %-*.*s", NAME_COLUMNS, NAME_COLUMNS, metric->name);
	put_cell(out, bench_value(text, s.median, metric->unit), 13);
	put_interval(out, values, n, metric->unit);
	put_cell(out, bench_value(text, s.mean, metric->unit), 13);
	put_cell(out, bench_value(text, s.stddev, metric->unit), 12);
	put_cell(out, bench_value(text, s.min, metric->unit), 13);
	put_cell(out, bench_value(text, s.max, metric->unit), 13);
	if (!isnan(s.p90))
		put_cell(out, bench_value(text, s.p90, metric->unit), 13);
	if (!isnan(s.p95))
		put_cell(out, bench_value(text, s.p95, metric->unit), 13);
	if (!isnan(s.p99))
		put_cell(out, bench_value(text, s.p99, metric->unit), 13);
	buf_putc(out, '\n');
}

static void put_head(size_t n, struct buf *out)
{
	static const struct {
		const char *name;
		int columns;
		size_t from;
	} cells[] = { { "median", 13, 0 }, { "95 % interval", 30, 0 }, { "mean", 13, 0 }, { "stddev", 12, 0 },
		      { "min", 13, 0 },    { "max", 13, 0 },           { "p90", 13, 10 }, { "p95", 13, 20 },
		      { "p99", 13, 100 } };

	buf_printf(out, "  %-*s", NAME_COLUMNS, "");
	for (size_t i = 0; i < ARRAY_LEN(cells); i++)
		if (n >= cells[i].from)
			put_cell(out, cells[i].name, cells[i].columns);
	buf_putc(out, '\n');
}

/* Puts the runs one by one, where there are not too many, and the outliers. */
static void put_runs(const struct runs *r, uint32_t command, uint32_t m, double *values, struct buf *out)
{
	_cleanup_free_ size_t *rows = mem_alloc((r->rows.n + 1) * sizeof(*rows));
	size_t n = runs_column(r, command, m, values, rows), outliers = 0;
	const char *unit = r->metrics.v[m].unit;
	struct stats_summary s;
	char text[32];

	stats_describe(values, n, &s);
	buf_printf(out, "  runs (%s):", r->metrics.v[m].name);
	for (size_t i = 0; i < n && i < RUNS_SHOWN; i++)
		buf_printf(out, "%s %s", i ? "," : "", bench_value(text, values[i], unit));
	buf_printf(out, "%s\n", n > RUNS_SHOWN ? ", \xe2\x80\xa6" : "");
	for (size_t i = 0; i < n; i++) {
		if (!stats_is_outlier(&s, values[i]) || ++outliers > OUTLIERS_SHOWN)
			continue;
		buf_printf(out, "%s run %llu (%s)", outliers == 1 ? "  outliers:" : ",",
			   (unsigned long long)r->rows.v[rows[i]].round, bench_value(text, values[i], unit));
	}
	if (outliers > OUTLIERS_SHOWN)
		buf_printf(out, " and %zu more", outliers - OUTLIERS_SHOWN);
	if (outliers)
		buf_printf(out, "; further from the median than chance would have it%s\n",
			   outliers == 1 && n && stats_is_outlier(&s, values[0]) && !r->warmups ?
				   " (the first run: --warmup 1 leaves it out)" : "");
}

void benchtext_put(const struct runs *r, unsigned columns, struct buf *out)
{
	_cleanup_free_ double *values = mem_alloc((r->rows.n + 1) * sizeof(*values));
	uint32_t chief = runs_main_metric(r);

	for (uint32_t c = 0; c < r->commands.n; c++) {
		_cleanup_(buf_done) struct buf clean = { 0 };
		size_t n = runs_column(r, c, 0, values, NULL);

		cleantext_put(&clean, r->commands.v[c]);
		buf_puts(out, c ? "\n" : "");
		cleantext_cut(out, clean.data ? clean.data : "", columns ? columns : 110);
		buf_printf(out, "\n  %zu run%s", n, n == 1 ? "" : "s");
		if (r->warmups)
			buf_printf(out, " after %llu to warm up", (unsigned long long)r->warmups);
		buf_printf(out, "%s\n", r->interleaved ? ", in turn with the others" : "");
		put_head(n, out);
		for (uint32_t m = 0; m < r->metrics.n; m++)
			put_row(r, c, m, values, out);
		if (chief != UINT32_MAX)
			put_runs(r, c, chief, values, out);
	}
}

/* --- CSV --- */

static void put_quoted(struct buf *out, const char *s)
{
	buf_putc(out, '"');
	for (; *s; s++) {
		if (*s == '"')
			buf_putc(out, '"');
		buf_putc(out, *s);
	}
	buf_putc(out, '"');
}

void benchcsv_put(const struct runs *r, struct buf *out)
{
	buf_puts(out, "command,run,start_ns");
	for (size_t m = 0; m < r->metrics.n; m++) {
		_cleanup_free_ char *name = runs_column_name(&r->metrics.v[m]);

		buf_printf(out, ",%s", name);
	}
	buf_putc(out, '\n');
	for (size_t i = 0; i < r->rows.n; i++) {
		const struct runs_row *row = &r->rows.v[i];

		put_quoted(out, r->commands.v[row->command]);
		buf_printf(out, ",%llu,%llu", (unsigned long long)row->round,
			   (unsigned long long)row->start_ns);
		for (size_t m = 0; m < r->metrics.n; m++) {
			double x = runs_value(r, i, m);

			buf_putc(out, ',');
			if (isfinite(x))
				buf_printf(out, "%.12g", x);
		}
		buf_putc(out, '\n');
	}
}

/* --- JSON --- */

/* A metric that was not measured has no member. */
static void put_number(struct json *j, const char *key, double x)
{
	if (isfinite(x))
		json_put_real(j, key, x, 17);
}

static void put_stats(const struct runs *r, uint32_t command, uint32_t m, double *values, struct json *j)
{
	_cleanup_free_ size_t *rows = mem_alloc((r->rows.n + 1) * sizeof(*rows));
	_cleanup_free_ char *name = runs_column_name(&r->metrics.v[m]);
	size_t n = runs_column(r, command, m, values, rows);
	const struct bootstrap_side side = { .values = values, .n = n };
	const struct bootstrap_options o = { .seed = n };
	struct bootstrap_interval i;
	struct stats_summary s;

	stats_describe(values, n, &s);
	bootstrap_level(&side, median_only, 1, &o, &i);
	json_open_object_line(j, name, 0);
	json_put_uint(j, "n", s.n);
	put_number(j, "min", s.min);
	put_number(j, "max", s.max);
	put_number(j, "mean", s.mean);
	put_number(j, "median", s.median);
	put_number(j, "stddev", s.stddev);
	put_number(j, "mad", s.mad);
	put_number(j, "p90", s.p90);
	put_number(j, "p95", s.p95);
	put_number(j, "p99", s.p99);
	put_number(j, "median_low", i.low);
	put_number(j, "median_high", i.high);
	json_open_array(j, "outliers");
	for (size_t k = 0; k < n; k++)
		if (stats_is_outlier(&s, values[k]))
			json_put_uint(j, NULL, r->rows.v[rows[k]].round);
	json_close(j);
	json_close(j);
}

static void put_run(const struct runs *r, size_t i, struct json *j)
{
	json_open_row(j, 0);
	json_put_uints(j, { "run", r->rows.v[i].round }, { "start_ns", r->rows.v[i].start_ns });
	for (size_t m = 0; m < r->metrics.n; m++) {
		_cleanup_free_ char *name = runs_column_name(&r->metrics.v[m]);

		put_number(j, name, runs_value(r, i, m));
	}
	json_close(j);
}

static void put_command(const struct runs *r, uint32_t c, struct json *j)
{
	_cleanup_free_ double *values = mem_alloc((r->rows.n + 1) * sizeof(*values));

	json_open_row(j, 0);
	json_put_string(j, "command", r->commands.v[c]);
	json_open_object(j, "stats");
	for (uint32_t m = 0; m < r->metrics.n; m++)
		put_stats(r, c, m, values, j);
	json_close(j);
	json_open_array(j, "runs");
	for (size_t i = 0; i < r->rows.n; i++)
		if (r->rows.v[i].command == c)
			put_run(r, i, j);
	json_close(j);
	json_close(j);
}

void benchjson_put(const struct runs *r, struct buf *out)
{
	struct json j = json_begin(out);

	json_open_object(&j, NULL);
	json_put_string(&j, "gasflame", "bench");
	json_put_uints(&j, { "version", 1 }, { "warmups", r->warmups });
	json_put_bool(&j, "interleaved", r->interleaved);
	json_open_array(&j, "metrics");
	for (size_t m = 0; m < r->metrics.n; m++) {
		_cleanup_free_ char *name = runs_column_name(&r->metrics.v[m]);

		json_put_string(&j, NULL, name);
	}
	json_close(&j);
	json_open_array(&j, "commands");
	for (uint32_t c = 0; c < r->commands.n; c++)
		put_command(r, c, &j);
	json_close(&j);
	json_end_line(&j);
}
