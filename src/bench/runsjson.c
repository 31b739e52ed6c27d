/*
 * runsjson.c - reads the JSON of `bench`:
 *
 *	{ "metrics": ["wall_s", ...], "warmups": 1, "interleaved": true,
 *	  "commands": [ { "command": "./node", "runs": [ { "run": 1, "wall_s": 0.5, ... }, ... ] } ] }
 *
 * or the report of txgen, reth-bench's successor, a row for each block:
 *
 *	{ "blocks": [ { "number": 1, "gas_used": 21000, "new_payload_ms": 5, "forkchoice_updated_ms": 1,
 *	  "new_payload_server_latency_us": 4321, "persistence_wait_us": 0, ... }, ... ] }
 *
 * Other members are ignored. The file may be a stranger's: jansson limits its depth, this file the number of figures,
 * commands and runs.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "bench/runs.h"

static int bad(struct err *err, const char *member, const char *kind)
{
	return err_set(err, EINVAL, "\"%s\" is no %s: this JSON is not of gasflame bench", member, kind);
}

static int read_metrics(const json_t *list, struct runs *r, struct err *err)
{
	if (!json_array_size(list))
		return err_set(err, EINVAL, "there is no list of metrics: this JSON is not of gasflame bench");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i)), *unit;
		_cleanup_free_ char *bare = NULL;
		double scale;
		size_t n;

		if (!name)
			return bad(err, "metrics", "list of names");
		unit = runs_parse_unit(name, &n, &scale);
		bare = mem_strndup(name, n);
		runs_add_metric(r, bare, unit);
		if (r->metrics.n > RUNS_METRICS_MAX)
			return err_set(err, EFBIG, "more than %d figures", RUNS_METRICS_MAX);
	}
	return 0;
}

/* Integers are exact: a time in nanoseconds has more digits than a double. */
static uint64_t whole(const json_t *x)
{
	double real = json_real_value(x);

	if (json_is_integer(x))
		return json_integer_value(x) > 0 ? (uint64_t)json_integer_value(x) : 0;
	return real > 0 && real < 1.8e19 ? (uint64_t)real : 0;
}

static void read_figure(const char *key, const json_t *x, struct runs *r)
{
	struct runs_row *row = &r->rows.v[r->rows.n - 1];
	_cleanup_free_ char *bare = NULL;
	double scale;
	uint32_t metric;
	size_t n;

	runs_parse_unit(key, &n, &scale);
	bare = mem_strndup(key, n);
	metric = runs_find_metric(r, bare);
	if (!strcmp(key, "run"))
		row->round = whole(x);
	else if (!strcmp(key, "block"))
		row->block = whole(x);
	else if (!strcmp(key, "start_ns"))
		row->start_ns = whole(x);
	else if (metric != UINT32_MAX)
		r->values.v[(r->rows.n - 1) * r->metrics.n + metric] = json_number_value(x) * scale;
}

static int read_runs(json_t *list, uint32_t command, struct runs *r, struct err *err)
{
	if (list && !json_is_array(list))
		return bad(err, "runs", "list");
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *run = json_array_get(list, i), *x;
		const char *key;

		if (!json_is_object(run))
			return bad(err, "runs", "list of objects");
		if (r->rows.n >= RUNS_ROWS_MAX)
			return err_set(err, EFBIG, "more than %d runs", RUNS_ROWS_MAX);
		runs_add_row(r, &(struct runs_row){ .command = command, .round = 1 });
		json_object_foreach(run, key, x)
			if (json_is_number(x))
				read_figure(key, x, r);
	}
	return 0;
}

static int read_commands(const json_t *list, struct runs *r, struct err *err)
{
	int e = 0;

	if (list && !json_is_array(list))
		return bad(err, "commands", "list");
	for (size_t i = 0; !e && i < json_array_size(list); i++) {
		const json_t *command = json_array_get(list, i), *name = json_object_get(command, "command");

		if (!json_is_object(command))
			return bad(err, "commands", "list of objects");
		if (name && !json_is_string(name))
			return bad(err, "command", "text");
		if (r->commands.n >= RUNS_COMMANDS_MAX)
			return err_set(err, EFBIG, "more than %d commands", RUNS_COMMANDS_MAX);
		vec_push(&r->commands, mem_strdup(name ? json_string_value(name) : ""));
		e = read_runs(json_object_get(command, "runs"), r->commands.n - 1, r, err);
	}
	return e;
}

/* --- txgen --- */

/* Its members by our names of them, as `replay` has them. */
static const struct {
	const char *member, *name, *unit;
	double scale;
} txgen[] = {
	{ "new_payload_ms", "new_payload_latency", "s", 1e-3 },
	{ "forkchoice_updated_ms", "fcu_latency", "s", 1e-3 },
	{ "new_payload_server_latency_us", "server_latency", "s", 1e-6 },
	{ "persistence_wait_us", "persistence_wait", "s", 1e-6 },
	{ "execution_cache_wait_us", "execution_cache_wait", "s", 1e-6 },
	{ "sparse_trie_wait_us", "sparse_trie_wait", "s", 1e-6 },
	{ "block_time_ms", "block_time", "s", 1e-3 },
	{ "gas_used", "gas_used", "gas", 1 },
};
enum { TXGEN_PAYLOAD, TXGEN_CHOICE, TXGEN_TOTAL = sizeof(txgen) / sizeof(txgen[0]) };

static int read_txgen_block(const json_t *block, struct runs *r, struct err *err)
{
	const json_t *number = json_object_get(block, "number");
	double *v;

	if (!json_is_integer(number))
		return err_set(err, EINVAL, "a block has no number: this JSON is not a report of txgen");
	if (r->rows.n >= RUNS_ROWS_MAX)
		return err_set(err, EFBIG, "more than %d blocks", RUNS_ROWS_MAX);
	v = runs_add_row(r, &(struct runs_row){ .round = 1, .block = whole(number) });
	for (size_t i = 0; i < ARRAY_LEN(txgen); i++) {
		const json_t *x = json_object_get(block, txgen[i].member);

		if (json_is_number(x))
			v[i] = json_number_value(x) * txgen[i].scale;
	}
	v[TXGEN_TOTAL] = v[TXGEN_PAYLOAD] + v[TXGEN_CHOICE]; /* NAN where one is */
	return 0;
}

static int read_txgen(const json_t *blocks, struct runs *r, struct err *err)
{
	int e = 0;

	for (size_t i = 0; i < ARRAY_LEN(txgen); i++)
		runs_add_metric(r, txgen[i].name, txgen[i].unit);
	runs_add_metric(r, "total_latency", "s");
	runs_add_rate_column(r);
	runs_command(r, "");
	for (size_t i = 0; i < json_array_size(blocks) && !e; i++)
		e = read_txgen_block(json_array_get(blocks, i), r, err);
	runs_fill_rates(r);
	return e;
}

int runs_read_json(const char *text, size_t n, struct runs *ret, struct err *err)
{
	json_error_t why;
	json_t *root = json_loadb(text, n, 0, &why);
	int e;

	if (!root) {
		if (err)
			err->offset = why.position;
		return err_set(err, EINVAL, "byte %d: %s", why.position, why.text);
	}
	if (!json_object_get(root, "metrics") && json_is_array(json_object_get(root, "blocks"))) {
		e = read_txgen(json_object_get(root, "blocks"), ret, err);
		json_decref(root);
		return e;
	}
	ret->warmups = MIN(whole(json_object_get(root, "warmups")), (uint64_t)1000000000);
	ret->interleaved = json_is_true(json_object_get(root, "interleaved"));
	e = read_metrics(json_object_get(root, "metrics"), ret, err);
	if (!e)
		e = read_commands(json_object_get(root, "commands"), ret, err);
	json_decref(root);
	return e;
}
