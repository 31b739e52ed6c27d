#include "fleet/tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "fleet/answer.h"
#include "fleet/clickhouse.h"
#include "fleet/sql.h"

static const uint64_t day_ns = 86400ULL * 1000000000;

/* Rows of a window have its key and the number of the attempt to deliver it; they count once the attempt is in `windows`. */
#define OF_WINDOW "day Date, target String, start DateTime, window_id UInt64, attempt UInt64, "

/* The first eight are of version 1; functions and rollups came with version 2. A new version adds tables, or columns with ALTER. */
static const struct table {
	const char *name, *columns, *engine, *order;
} tables[] = {
	{ "windows",
	  OF_WINDOW "start_ns UInt64, duration_ns UInt64, sequence UInt64, digest UInt64, host String, kernel String, release String, "
		    "labels Array(String), events Array(String), units Array(String), describes Array(String), periods Array(UInt64), "
		    "totals Array(UInt64), counts Array(UInt64), causes Array(String), cause_ns Array(UInt64)",
	  "MergeTree", "target, start, window_id, attempt" },
	{ "samples",
	  OF_WINDOW "event String, pid UInt32, tid UInt32, thread String, cause String, block UInt64, stack UInt64, value UInt64, count UInt64",
	  "MergeTree", "target, event, start, window_id" },
	{ "threads",
	  OF_WINDOW "pid UInt32, tid UInt32, thread String, process String, exe String, begin_ns UInt64, end_ns UInt64, cpu_ns UInt64, "
		    "run_ns UInt64, queue_ns UInt64, blocked_ns UInt64",
	  "MergeTree", "target, start, window_id" },
	{ "blocks",
	  OF_WINDOW "block UInt64, kind String, name String, begin_ns UInt64, end_ns UInt64, number UInt64, gas UInt64, "
		    "transactions UInt64, known UInt32",
	  "MergeTree", "target, start, window_id" },
	{ "counters", OF_WINDOW "name String, value UInt64", "MergeTree", "target, start, window_id" },
	{ "points", OF_WINDOW "series String, unit String, time_ns UInt64, value Int64", "MergeTree", "target, series, start, window_id" },
	{ "stacks", "day Date, stack UInt64, frames Array(UInt64)", "ReplacingMergeTree", "stack" },
	{ "frames",
	  "day Date, frame UInt64, kind UInt8, module_kind UInt8, module String, build_id String, address UInt64, names Array(String), "
	  "files Array(String), lines Array(UInt32), named Array(UInt8)",
	  "ReplacingMergeTree", "frame" },
	/* Rows of a roll-up count once it is in `rollups`; the row without a name is the sum of an event. */
	{ "functions",
	  "day Date, start DateTime, target String, release String, event String, name String, self UInt64, total UInt64, self_count UInt64, "
	  "total_count UInt64, rollup UInt64",
	  "MergeTree", "event, name, target, start" },
	{ "rollups",
	  "day Date, hour DateTime, target String, rollup UInt64, made UInt64, method UInt32, windows UInt64, digest UInt64, blocks UInt64, "
	  "block_ns UInt64, block_p50 UInt64, block_p90 UInt64, block_p99 UInt64, block_max UInt64, gas UInt64, transactions UInt64",
	  "MergeTree", "target, hour" },
};

/* --- what is there --- */

static int server_version(struct clickhouse *c, unsigned shard, struct tables_state *s, struct err *err)
{
	struct answer a;
	unsigned major = 0, minor = 0;
	int r = clickhouse_select(c, shard, "SELECT version()", &a, err);

	if (!r) {
		snprintf(s->server, sizeof(s->server), "%s", answer_text(&a, 0, 0));
		if (sscanf(s->server, "%u.%u", &major, &minor) == 2)
			s->ttl = major > 19 || (major == 19 && minor >= 6);
	}
	answer_done(&a);
	return r;
}

/* -ENXIO where there are no tables, without a look at the server's version. */
static int read_state(struct clickhouse *c, unsigned shard, struct tables_state *s, struct err *err)
{
	struct answer a;
	int r = clickhouse_select(c, shard, "SELECT max(version), argMax(keep_days, (changed, version)) FROM schema_version", &a, err);

	if (!r) {
		s->version = answer_u64(&a, 0, 0);
		s->keep_days = answer_u64(&a, 0, 1);
	}
	answer_done(&a);
	if (!r && s->version > TABLES_VERSION)
		r = err_set(err, EUSERS, "%s: its tables are of version %llu, made by a later gasflame; this one knows version %d",
			    clickhouse_address(c, shard), (unsigned long long)s->version, TABLES_VERSION);
	return r;
}

int tables_check(struct clickhouse *c, unsigned shard, struct tables_state *ret, struct err *err)
{
	int r;

	*ret = (struct tables_state){ 0 };
	r = read_state(c, shard, ret, err);
	if (!r && !ret->version)
		r = err_set(err, ENXIO, "%s: there are no tables: `gasflame store init` makes them", clickhouse_address(c, shard));
	return r ? r : server_version(c, shard, ret, err);
}

/* --- making them --- */

static int make_database(struct clickhouse *c, unsigned shard, struct err *err)
{
	_cleanup_(buf_done) struct buf sql = { 0 };

	buf_puts(&sql, "CREATE DATABASE IF NOT EXISTS ");
	sql_identifier(&sql, clickhouse_database(c));
	return clickhouse_run_outside(c, shard, sql.data, err);
}

static int make_table(struct clickhouse *c, unsigned shard, const struct table *t, bool replicated, struct err *err)
{
	_cleanup_(buf_done) struct buf sql = { 0 };

	buf_printf(&sql, "CREATE TABLE IF NOT EXISTS %s (%s) ENGINE = %s%s", t->name, t->columns, replicated ? "Replicated" : "", t->engine);
	if (replicated) {
		_cleanup_free_ char *path = mem_printf("/clickhouse/tables/{shard}/%s/%s", clickhouse_database(c), t->name);

		buf_putc(&sql, '(');
		sql_literal(&sql, path);
		buf_puts(&sql, ", '{replica}')");
	}
	buf_printf(&sql, " PARTITION BY day ORDER BY (%s)", t->order);
	return clickhouse_run(c, shard, sql.data, err);
}

/* A table over those of all shards: for people and dashboards, who may ask any server. */
static int make_distributed(struct clickhouse *c, unsigned shard, const struct table *t, const char *cluster, struct err *err)
{
	_cleanup_(buf_done) struct buf sql = { 0 };

	buf_printf(&sql, "CREATE TABLE IF NOT EXISTS %s_all (%s) ENGINE = Distributed(", t->name, t->columns);
	sql_identifier(&sql, cluster);
	buf_puts(&sql, ", ");
	sql_identifier(&sql, clickhouse_database(c));
	buf_printf(&sql, ", %s)", t->name);
	return clickhouse_run(c, shard, sql.data, err);
}

/* How the tables that are there were made: what is added now is made the same way. */
struct made {
	bool any, replicated;
	char *cluster; /* of windows_all; NULL = there is none */
};

static int find_made(struct clickhouse *c, unsigned shard, struct made *ret, struct err *err)
{
	_cleanup_(buf_done) struct buf sql = { 0 };
	struct answer a;
	int r;

	*ret = (struct made){ 0 };
	/* In quotes or without them, as the version has it; a name with a quote in it is not read back. */
	buf_puts(&sql, "SELECT name, engine, replaceRegexpAll(extract(engine_full, '^Distributed\\\\(([^,]+),'), '[`\\'\"]', '') FROM system.tables WHERE "
		 "name IN ('windows', 'windows_all') AND database = ");
	sql_literal(&sql, clickhouse_database(c));
	r = clickhouse_select(c, shard, sql.data, &a, err);
	for (size_t i = 0; !r && i < a.rows; i++) {
		const char *engine = answer_text(&a, i, 1), *cluster = answer_text(&a, i, 2);
		bool all = !strcmp(answer_text(&a, i, 0), "windows_all");

		if (all && *cluster && !ret->cluster)
			ret->cluster = mem_strdup(cluster);
		ret->any |= !all;
		ret->replicated |= !all && str_starts(engine, "Replicated");
	}
	answer_done(&a);
	return r;
}

static int set_ttl(struct clickhouse *c, unsigned shard, uint64_t days, struct err *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < ARRAY_LEN(tables); i++) {
		_cleanup_free_ char *sql = mem_printf("ALTER TABLE %s MODIFY TTL day + INTERVAL %llu DAY", tables[i].name,
						      (unsigned long long)days);

		r = clickhouse_run(c, shard, sql, err);
	}
	return r;
}

static int note_version(struct clickhouse *c, unsigned shard, uint64_t keep_days, struct err *err)
{
	_cleanup_(buf_done) struct buf row = { 0 };

	sql_row_u64(&row, TABLES_VERSION);
	sql_row_u64(&row, keep_days);
	sql_row_u64(&row, clock_wall_ns());
	return clickhouse_insert(c, shard, "schema_version", "version, keep_days, changed", &row, err);
}

static int init_shard(struct clickhouse *c, unsigned shard, const struct tables_options *o, struct err *err)
{
	struct tables_state s = { 0 };
	struct made made = { 0 };
	const char *cluster;
	uint64_t keep;
	int r = make_database(c, shard, err);

	if (!r)
		r = clickhouse_run(c, shard, "CREATE TABLE IF NOT EXISTS schema_version (version UInt64, keep_days UInt64, changed UInt64) "
				   "ENGINE = MergeTree ORDER BY changed", err);
	if (!r)
		r = read_state(c, shard, &s, err);
	if (!r)
		r = server_version(c, shard, &s, err);
	if (!r)
		r = find_made(c, shard, &made, err);
	if (!r && made.any && o->replicated && !made.replicated)
		r = err_set(err, EEXIST, "%s: there are tables that are not replicated: make the replicated ones in another database, and push there",
			    clickhouse_address(c, shard));
	/* A version is noted when all of it is there: what is there already is passed over by IF NOT EXISTS. */
	for (size_t i = 0; !r && i < ARRAY_LEN(tables); i++)
		r = make_table(c, shard, &tables[i], o->replicated || made.replicated, err);
	cluster = o->cluster ? o->cluster : made.cluster;
	for (size_t i = 0; !r && cluster && i < ARRAY_LEN(tables); i++)
		r = make_distributed(c, shard, &tables[i], cluster, err);
	free(made.cluster);
	keep = o->keep_days ? o->keep_days : s.keep_days;
	if (!r && s.ttl && keep && (keep != s.keep_days || s.version < TABLES_VERSION))
		r = set_ttl(c, shard, keep, err);
	if (!r && (s.version < TABLES_VERSION || keep != s.keep_days))
		r = note_version(c, shard, keep, err);
	return r ? r : tables_retain(c, shard, clock_wall_ns(), err);
}

int tables_init(struct clickhouse *c, const struct tables_options *o, struct err *err)
{
	int r = 0;

	for (unsigned i = 0; !r && i < clickhouse_shards(c); i++)
		r = init_shard(c, i, o, err);
	return r;
}

/* --- keeping them small --- */

/* The commits go first: a reader never finds a window that has lost some of its rows. */
int tables_drop_before(struct clickhouse *c, unsigned shard, uint64_t day, uint64_t *ret_days, struct err *err)
{
	_cleanup_(buf_done) struct buf sql = { 0 };
	struct answer a = { 0 };
	int r = 0;

	if (ret_days)
		*ret_days = 0;
	for (size_t i = 0; !r && i < ARRAY_LEN(tables); i++) {
		sql.n = 0;
		buf_puts(&sql, "SELECT DISTINCT partition FROM system.parts WHERE active AND database = ");
		sql_literal(&sql, clickhouse_database(c));
		buf_printf(&sql, " AND table = '%s' AND toDate(partition) < toDate(%llu) ORDER BY partition", tables[i].name,
			   (unsigned long long)day);
		r = clickhouse_select(c, shard, sql.data, &a, err);
		for (size_t k = 0; !r && k < a.rows; k++) {
			sql.n = 0;
			buf_printf(&sql, "ALTER TABLE %s DROP PARTITION ", tables[i].name);
			sql_literal(&sql, answer_text(&a, k, 0));
			r = clickhouse_run(c, shard, sql.data, err);
		}
		if (!i && ret_days)
			*ret_days = a.rows;
		answer_done(&a);
	}
	return r;
}

int tables_retain(struct clickhouse *c, unsigned shard, uint64_t now_ns, struct err *err)
{
	struct tables_state s;
	int r = tables_check(c, shard, &s, err);
	uint64_t today = now_ns / day_ns;

	if (r || s.ttl || !s.keep_days || s.keep_days >= today)
		return r;
	return tables_drop_before(c, shard, today - s.keep_days, NULL, err);
}
