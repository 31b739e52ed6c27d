/*
 * runsjson.c - reads the JSON of `bench`:
 *
 *	{ "metrics": ["wall_s", ...], "warmups": 1, "interleaved": true,
 *	  "commands": [ { "command": "./node", "runs": [ { "run": 1, "wall_s": 0.5, ... }, ... ] } ] }
 *
 * Anything else in it is passed over. "metrics" comes before "commands". It is read as it comes, without a
 *tree: the file is somebody's, and its depth is limited.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/runs.h"
#include "base/buf.h"
#include "base/err.h"

enum { DEPTH_MAX = 64 };

struct json {
	const char *text;
	size_t at, n;
	unsigned depth;
	struct buf string; /* the last one */
	struct err *err;
};

static int bad(struct json *j, const char *wanted)
{
	if (j->err)
		j->err->offset = j->at;
	return err_set(j->err, EINVAL, "byte %zu: %s expected", j->at, wanted);
}

static char peek(struct json *j)
{
	while (j->at < j->n && strchr(" \t\r\n", j->text[j->at]))
		j->at++;
	return j->at < j->n ? j->text[j->at] : 0;
}

static bool take(struct json *j, char c)
{
	if (peek(j) != c)
		return false;
	j->at++;
	return true;
}

static void put_utf8(struct buf *b, uint32_t c)
{
	if (c < 0x80) {
		buf_putc(b, c);
	} else if (c < 0x800) {
		buf_putc(b, 0xc0 | c >> 6);
		buf_putc(b, 0x80 | (c & 63));
	} else {
		buf_putc(b, 0xe0 | c >> 12);
		buf_putc(b, 0x80 | (c >> 6 & 63));
		buf_putc(b, 0x80 | (c & 63));
	}
}

static int read_escape(struct json *j)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	char c = j->at < j->n ? j->text[j->at++] : 0;
	const char *known = c ? strchr(from, c) : NULL;
	uint32_t code = 0;

	if (known) {
		buf_putc(&j->string, to[known - from]);
		return 0;
	}
	if (c != 'u' || j->n - j->at < 4)
		return bad(j, "an escape");
	for (int i = 0; i < 4; i++) {
		char digit[2] = { j->text[j->at++], 0 };

		if (!strspn(digit, "0123456789abcdefABCDEF"))
			return bad(j, "a hexadecimal digit");
		code = code << 4 | strtoul(digit, NULL, 16);
	}
	put_utf8(&j->string, code ? code : 0xfffd);
	return 0;
}

static int read_string(struct json *j)
{
	int e = 0;

	j->string.n = 0;
	buf_puts(&j->string, "");
	if (!take(j, '"'))
		return bad(j, "a string");
	while (!e && j->at < j->n && j->text[j->at] != '"') {
		char c = j->text[j->at++];

		if (c == '\\')
			e = read_escape(j);
		else
			buf_putc(&j->string, c);
	}
	if (!e && j->at++ >= j->n)
		return bad(j, "the end of a string");
	return e;
}

/* true, false and null are 1, 0 and NAN. */
static int read_number(struct json *j, double *ret)
{
	static const struct {
		const char *word;
		double value;
	} words[] = { { "true", 1 }, { "false", 0 }, { "null", NAN } };
	char digits[64], *end;
	size_t n = 0;

	peek(j);
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		n = strlen(words[i].word);
		if (j->n - j->at >= n && !strncmp(j->text + j->at, words[i].word, n)) {
			j->at += n;
			*ret = words[i].value;
			return 0;
		}
	}
	for (n = 0;
	     n + 1 < sizeof(digits) && j->at + n < j->n && strchr("+-.eE0123456789", j->text[j->at + n]); n++)
		digits[n] = j->text[j->at + n];
	digits[n] = 0;
	*ret = strtod(digits, &end);
	if (!n || *end || !isfinite(*ret))
		return bad(j, "a number");
	j->at += n;
	return 0;
}

typedef int member_fn(struct json *j, void *context, const char *key);

/* Calls member for each value of an object (with its key) or an array (key NULL). */
static int read_members(struct json *j, char open, member_fn *member, void *context)
{
	char close = open == '{' ? '}' : ']';
	int e = 0;

	if (!take(j, open))
		return bad(j, open == '{' ? "an object" : "an array");
	if (++j->depth > DEPTH_MAX)
		return err_set(j->err, EINVAL, "byte %zu: too deep", j->at);
	for (bool first = true; !e && !take(j, close); first = false) {
		_cleanup_free_ char *key = NULL;

		if (!first && !take(j, ','))
			return bad(j, "a comma");
		if (open == '{') {
			e = read_string(j);
			if (e || !take(j, ':'))
				return e ? e : bad(j, "a colon");
			key = mem_strdup(j->string.data);
		}
		e = member(j, context, key);
	}
	j->depth--;
	return e;
}

static int skip_member(struct json *j, void *context, const char *key)
{
	double x;
	char c = peek(j);

	if (c == '{' || c == '[')
		return read_members(j, c, skip_member, NULL);
	return c == '"' ? read_string(j) : read_number(j, &x);
}

/* --- what bench wrote --- */

struct target {
	struct runs *runs;
	bool seen_metrics;
	uint32_t command;
};

static int metric_member(struct json *j, void *context, const char *key)
{
	struct target *t = context;
	_cleanup_free_ char *bare = NULL;
	const char *unit;
	double scale;
	size_t n;
	int e = read_string(j);

	if (e)
		return e;
	unit = runs_parse_unit(j->string.data, &n, &scale);
	bare = mem_strndup(j->string.data, n);
	runs_add_metric(t->runs, bare, unit);
	if (t->runs->metrics.n > RUNS_METRICS_MAX)
		return err_set(j->err, EFBIG, "more than %d figures", RUNS_METRICS_MAX);
	return 0;
}

static int run_member(struct json *j, void *context, const char *key)
{
	struct target *t = context;
	struct runs *r = t->runs;
	_cleanup_free_ char *bare = NULL;
	double x, scale;
	uint32_t metric;
	uint64_t whole;
	size_t n;
	int e;

	if (peek(j) == '"' || peek(j) == '{' || peek(j) == '[')
		return skip_member(j, NULL, key);
	e = read_number(j, &x);
	if (e)
		return e;
	whole = x >= 0 && x < 1.8e19 ? (uint64_t)x : 0;
	runs_parse_unit(key, &n, &scale);
	bare = mem_strndup(key, n);
	metric = runs_find_metric(r, bare);
	if (!strcmp(key, "run"))
		r->rows.v[r->rows.n - 1].round = whole;
	else if (!strcmp(key, "block"))
		r->rows.v[r->rows.n - 1].block = whole;
	else if (!strcmp(key, "start_ns"))
		r->rows.v[r->rows.n - 1].start_ns = whole;
	else if (metric != UINT32_MAX)
		r->values.v[(r->rows.n - 1) * r->metrics.n + metric] = x * scale;
	return 0;
}

static int row_member(struct json *j, void *context, const char *key)
{
	struct target *t = context;

	if (t->runs->rows.n >= RUNS_ROWS_MAX)
		return err_set(j->err, EFBIG, "more than %d runs", RUNS_ROWS_MAX);
	runs_add_row(t->runs, &(struct runs_row){ .command = t->command, .round = 1 });
	return read_members(j, '{', run_member, t);
}

static int command_member(struct json *j, void *context, const char *key)
{
	struct target *t = context;
	int e;

	if (!strcmp(key, "command")) {
		e = read_string(j);
		if (e)
			return e;
		free(t->runs->commands.v[t->command]);
		t->runs->commands.v[t->command] = mem_strdup(j->string.data);
		return 0;
	}
	if (!strcmp(key, "runs"))
		return read_members(j, '[', row_member, t);
	return skip_member(j, NULL, key);
}

static int commands_member(struct json *j, void *context, const char *key)
{
	struct target *t = context;

	if (t->runs->commands.n >= RUNS_COMMANDS_MAX)
		return err_set(j->err, EFBIG, "more than %d commands", RUNS_COMMANDS_MAX);
	vec_push(&t->runs->commands, mem_strdup(""));
	t->command = t->runs->commands.n - 1;
	return read_members(j, '{', command_member, t);
}

static int top_member(struct json *j, void *context, const char *key)
{
	struct target *t = context;
	double x = 0;
	int e;

	if (!strcmp(key, "metrics") && !t->seen_metrics) {
		t->seen_metrics = true;
		return read_members(j, '[', metric_member, t);
	}
	if (!strcmp(key, "commands")) {
		if (!t->runs->metrics.n)
			return err_set(j->err, EINVAL, "the commands come before the list of metrics");
		return read_members(j, '[', commands_member, t);
	}
	if (strcmp(key, "warmups") && strcmp(key, "interleaved"))
		return skip_member(j, NULL, key);
	e = read_number(j, &x);
	if (!strcmp(key, "warmups"))
		t->runs->warmups = x > 0 && x < 1e9 ? (uint64_t)x : 0;
	else
		t->runs->interleaved = x > 0;
	return e;
}

int runs_read_json(const char *text, size_t n, struct runs *ret, struct err *err)
{
	struct json j = { .text = text, .n = n, .err = err };
	struct target t = { .runs = ret };
	int e = read_members(&j, '{', top_member, &t);

	if (!e && peek(&j))
		e = bad(&j, "the end");
	if (!e && !ret->metrics.n)
		e = err_set(err, EINVAL, "there is no list of metrics: this JSON is not of gasflame bench");
	buf_done(&j.string);
	return e;
}
