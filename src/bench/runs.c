#include "bench/runs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text/str.h"

void runs_done(struct runs *r)
{
	for (size_t i = 0; i < r->commands.n; i++)
		free(r->commands.v[i]);
	for (size_t i = 0; i < r->metrics.n; i++)
		free(r->metrics.v[i].name);
	vec_done(&r->commands);
	vec_done(&r->metrics);
	vec_done(&r->rows);
	vec_done(&r->values);
	*r = (struct runs){ 0 };
}

uint32_t runs_command(struct runs *r, const char *name)
{
	for (size_t i = 0; i < r->commands.n; i++)
		if (!strcmp(r->commands.v[i], name))
			return i;
	vec_push(&r->commands, mem_strdup(name));
	return r->commands.n - 1;
}

uint32_t runs_find_metric(const struct runs *r, const char *name)
{
	for (size_t i = 0; i < r->metrics.n; i++)
		if (!strcmp(r->metrics.v[i].name, name))
			return i;
	return UINT32_MAX;
}

uint32_t runs_add_metric(struct runs *r, const char *name, const char *unit)
{
	uint32_t found = runs_find_metric(r, name);

	if (found != UINT32_MAX)
		return found;
	vec_push(&r->metrics, (struct runs_metric){ .name = mem_strdup(name), .unit = unit });
	return r->metrics.n - 1;
}

double *runs_add_row(struct runs *r, const struct runs_row *row)
{
	vec_push(&r->rows, *row);
	for (size_t i = 0; i < r->metrics.n; i++)
		vec_push(&r->values, NAN);
	return r->values.v + r->values.n - r->metrics.n;
}

bool runs_more_is_better(const char *unit)
{
	return !strcmp(unit, "gas/s");
}

uint32_t runs_main_metric(const struct runs *r)
{
	static const char *const usual[] = { "wall", "total_latency", "new_payload_latency", NULL };
	uint32_t first = UINT32_MAX;

	/* bench writes its own metrics first, then the phases, then the remainder beside the first of
	 * them. */
	for (size_t i = 0; i + 1 < r->metrics.n; i++)
		if (!strcmp(r->metrics.v[i].name, "peak_rss") && !strcmp(r->metrics.v[i + 1].unit, "s"))
			return i + 1;
	for (size_t i = 0; usual[i] && first == UINT32_MAX; i++)
		first = runs_find_metric(r, usual[i]);
	for (size_t i = 0; i < r->metrics.n && first == UINT32_MAX; i++)
		if (!strcmp(r->metrics.v[i].unit, "s"))
			first = i;
	return first == UINT32_MAX && r->metrics.n ? 0 : first;
}

size_t runs_column(const struct runs *r, uint32_t command, uint32_t metric, double *values, size_t *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < r->rows.n; i++) {
		double x = runs_value(r, i, metric);

		if (r->rows.v[i].command != command || !isfinite(x))
			continue;
		if (rows)
			rows[n] = i;
		values[n++] = x;
	}
	return n;
}

/* --- units in names --- */

static const struct {
	const char *ending, *unit;
	double scale;
	bool stays; /* a part of the name */
} endings[] = {
	{ "_s", "s", 1, false },          { "_ms", "s", 1e-3, false },      { "_us", "s", 1e-6, false },
	{ "_ns", "s", 1e-9, false },      { "_latency", "s", 1e-6, true },  { "_bytes", "bytes", 1, false },
	{ "_wait", "s", 1e-6, true },
	{ "gas_used", "gas", 1, true },   { "gas_per_s", "gas/s", 1, true },
};

const char *runs_parse_unit(const char *column, size_t *ret_n, double *ret_scale)
{
	*ret_n = strlen(column);
	*ret_scale = 1;
	if (!strcmp(column, "gas"))
		return "gas";
	/* The longest first: gas_per_s ends in _s too. */
	for (size_t i = ARRAY_LEN(endings); i-- > 0;)
		if (str_ends(column, endings[i].ending)) {
			if (!endings[i].stays)
				*ret_n -= strlen(endings[i].ending);
			*ret_scale = endings[i].scale;
			return endings[i].unit;
		}
	return "count";
}

char *runs_column_name(const struct runs_metric *m)
{
	if (str_ends(m->name, "_latency") || str_ends(m->name, "_wait") || (strcmp(m->unit, "s") && strcmp(m->unit, "bytes")))
		return mem_strdup(m->name);
	return mem_printf("%s_%s", m->name, m->unit);
}

/* --- CSV --- */

struct csv {
	const char *at, *end;
	size_t line;
	bool last; /* the field in hand is the last of its line */
};

/* The next field, in cell; quotes as RFC 4180 has them. */
static int next_cell(struct csv *c, struct buf *cell, struct err *err)
{
	cell->n = 0;
	buf_add(cell, "", 0);
	if (c->at < c->end && *c->at == '"') {
		for (c->at++;; c->at++) {
			if (c->at >= c->end)
				return err_set(err, EINVAL, "line %zu: a quote has no end", c->line);
			if (*c->at == '"' && (++c->at >= c->end || *c->at != '"'))
				break;
			buf_putc(cell, *c->at);
		}
	}
	while (c->at < c->end && *c->at != ',' && *c->at != '\n') {
		if (*c->at != '\r')
			buf_putc(cell, *c->at);
		c->at++;
	}
	c->last = c->at >= c->end || *c->at == '\n';
	if (c->at < c->end)
		c->at++;
	return 0;
}

enum { COLUMN_IGNORED = -1, COLUMN_COMMAND = -2, COLUMN_ROUND = -3, COLUMN_BLOCK = -4, COLUMN_START = -5 };

struct column {
	int32_t metric; /* or one of the above */
	double scale;
};

static struct column read_column(struct runs *r, const char *name)
{
	static const struct {
		const char *name;
		int32_t what;
	} known[] = {
		{ "command", COLUMN_COMMAND },
		{ "run", COLUMN_ROUND },
		{ "block", COLUMN_BLOCK },
		{ "block_number", COLUMN_BLOCK },
		{ "start_ns", COLUMN_START },
		{ "gas_limit", COLUMN_IGNORED },
		{ "transaction_count", COLUMN_IGNORED },
	};
	struct column c = { COLUMN_IGNORED, 1 };
	const char *unit;
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strcmp(name, known[i].name))
			return (struct column){ known[i].what, 1 };
	unit = runs_parse_unit(name, &n, &c.scale);
	if (n) {
		_cleanup_free_ char *bare = mem_strndup(name, n);

		c.metric = runs_add_metric(r, bare, unit);
	}
	return c;
}

static int read_number(const char *cell, const struct csv *c, double *ret, struct err *err)
{
	char *end;

	*ret = strtod(cell, &end);
	if (!*cell)
		*ret = NAN;
	else if (*end || !isfinite(*ret))
		return err_set(err, EINVAL, "line %zu: '%.40s' is no number", c->line, cell);
	return 0;
}

static int read_row(struct runs *r, struct csv *c, const struct column *columns, size_t count,
		    struct buf *cell, struct err *err)
{
	struct runs_row row = { .round = 1 };
	double *values, x;
	int e = 0;

	runs_add_row(r, &row);
	for (size_t i = 0; !e; i++) {
		e = next_cell(c, cell, err);
		values = r->values.v + r->values.n - r->metrics.n;
		if (!e && i >= count)
			e = err_set(err, EINVAL, "line %zu has more than %zu columns", c->line, count);
		if (!e && columns[i].metric == COLUMN_COMMAND)
			row.command = runs_command(r, cell->data);
		else if (!e && columns[i].metric != COLUMN_IGNORED &&
			 !(e = read_number(cell->data, c, &x, err))) {
			uint64_t whole = x >= 0 && x < 1.8e19 ? (uint64_t)x : 0;

			if (columns[i].metric == COLUMN_ROUND)
				row.round = whole;
			else if (columns[i].metric == COLUMN_BLOCK)
				row.block = whole;
			else if (columns[i].metric == COLUMN_START)
				row.start_ns = whole;
			else
				values[columns[i].metric] = x * columns[i].scale;
		}
		if (c->last && !e && i + 1 < count)
			e = err_set(err, EINVAL, "line %zu has %zu columns, the first line has %zu", c->line,
				    i + 1, count);
		if (c->last)
			break;
	}
	r->rows.v[r->rows.n - 1] = row;
	if (!e && (r->rows.n > RUNS_ROWS_MAX || r->commands.n > RUNS_COMMANDS_MAX))
		e = err_set(err, EFBIG, "line %zu: that value is too large", c->line);
	return e;
}

/* Gas and time make a rate: for the payloads of a replay, it is the main figure of a node. */
static const struct {
	const char *gas, *time;
} rates[] = { { "gas_used", "new_payload_latency" } };

void runs_add_rate_column(struct runs *r)
{
	for (size_t i = 0; i < ARRAY_LEN(rates); i++)
		if (runs_find_metric(r, rates[i].gas) != UINT32_MAX && runs_find_metric(r, rates[i].time) != UINT32_MAX &&
		    runs_find_metric(r, "gas_per_s") == UINT32_MAX)
			runs_add_metric(r, "gas_per_s", "gas/s");
}

void runs_fill_rates(struct runs *r)
{
	uint32_t rate = runs_find_metric(r, "gas_per_s");

	for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
		uint32_t gas = runs_find_metric(r, rates[i].gas), time = runs_find_metric(r, rates[i].time);

		for (size_t k = 0; k < r->rows.n && gas != UINT32_MAX && time != UINT32_MAX; k++) {
			double *v = r->values.v + k * r->metrics.n;

			if (isnan(v[rate]) && v[time] > 0)
				v[rate] = v[gas] / v[time];
		}
	}
}

static int read_csv(const char *text, size_t n, struct runs *r, struct err *err)
{
	struct csv c = { text, text + n, 1, false };
	VEC(struct column) columns = { 0 };
	_cleanup_(buf_done) struct buf cell = { 0 };
	bool named = false;
	int e = 0;

	while (!e && !c.last && !(e = next_cell(&c, &cell, err))) {
		struct column column = read_column(r, cell.data);

		named |= column.metric == COLUMN_COMMAND;
		vec_push(&columns, column);
		if (columns.n > RUNS_METRICS_MAX)
			e = err_set(err, EFBIG, "more than %d columns", RUNS_METRICS_MAX);
	}
	if (!e && !r->metrics.n)
		e = err_set(err, EINVAL, "there is no column with figures");
	runs_add_rate_column(r);
	if (!e && !named)
		runs_command(r, "");
	while (!e && c.at < c.end) {
		c.line++;
		if (*c.at == '\n')
			c.at++;
		else
			e = read_row(r, &c, columns.v, columns.n, &cell, err);
	}
	runs_fill_rates(r);
	r->interleaved = r->commands.n > 1; /* as bench does it; there is no place here to say so */
	vec_done(&columns);
	return e;
}

int runs_read(const char *text, size_t n, const char *name, struct runs *ret, struct err *err)
{
	size_t blank = 0;
	int e;

	*ret = (struct runs){ 0 };
	while (blank < n && strchr(" \t\r\n", text[blank]) && text[blank])
		blank++;
	if (memchr(text, 0, n))
		e = err_set(err, EINVAL, "this is neither JSON nor CSV of gasflame bench");
	else
		e = blank < n && text[blank] == '{' ? runs_read_json(text, n, ret, err)
						    : read_csv(text, n, ret, err);
	if (!e && !ret->rows.n)
		e = err_set(err, ENODATA, "there are no runs in it");
	if (e) {
		runs_done(ret);
		return err_prefix(err, "%s", name);
	}
	return 0;
}
