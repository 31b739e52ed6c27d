#include "capture/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "capture/capturefile.h"
#include "capture/capturevfs.h"
#include "capture/scan/stacktext.h"
#include "capture/scan/tablescan.h"
#include "capture/scan/weights.h"
#include "capture/schema.h"

static int summary_fact(void *context, int columns, char **values, char **names)
{
	struct capture_summary *s = context;
	const char *key = values[0], *value = values[1];

	if (!key || !value)
		return 0;
	if (!strcmp(key, "target")) {
		free(s->target);
		s->target = mem_strdup(value);
	} else if (!strcmp(key, "start_wall_ns")) {
		s->start_wall_ns = strtoull(value, NULL, 10);
	} else if (!strcmp(key, "duration_ns")) {
		s->duration_ns = strtoull(value, NULL, 10);
	} else if (!strcmp(key, "finished")) {
		s->finished = !strcmp(value, "1");
	}
	return 0;
}

static int summary_event(void *context, int columns, char **values, char **names)
{
	struct buf *what = context;

	if (what->n)
		buf_putc(what, ',');
	buf_puts(what, values[0] ?: "");
	return 0;
}

static int summary_samples(void *context, int columns, char **values, char **names)
{
	*(uint64_t *)context = strtoull(values[0] ?: "0", NULL, 10);
	return 0;
}

/* --- how many of what --- */

enum { EVENTS_COUNTED = 256, ROWS_COUNTED = 1000000 }; /* rows: that takes some hundredths of a second */

struct counting {
	uint64_t samples[EVENTS_COUNTED];
};

/* Columns: event, thread, time_ns, stack, value, count. */
static bool count_row(void *context, const struct tablescan_row *row)
{
	struct counting *c = context;

	if (!row->odd && row->values[0] >= 0 && row->values[0] < EVENTS_COUNTED)
		c->samples[row->values[0]] += MAX(row->values[5], 1);
	return true;
}

static void count_again(void *context)
{
	*(struct counting *)context = (struct counting){ 0 };
}

static int sum_row(void *context, int columns, char **values, char **names)
{
	struct counting *c = context;
	uint64_t event = values[0] ? strtoull(values[0], NULL, 10) : EVENTS_COUNTED;

	if (event < EVENTS_COUNTED && values[1])
		c->samples[event] = strtoull(values[1], NULL, 10);
	return 0;
}

struct naming {
	const struct counting *counts;
	struct capture_summary *to;
};

/* The queue is the second part of a wait, not another one. */
static int add_event(void *context, int columns, char **values, char **names)
{
	struct naming *n = context;
	uint64_t event = values[0] ? strtoull(values[0], NULL, 10) : EVENTS_COUNTED;
	const char *name = values[1] ?: "";

	if (event >= EVENTS_COUNTED || !strcmp(name, "queue"))
		return 0;
	*(!strcmp(name, "cpu") ? &n->to->samples : !strcmp(name, "wait") ? &n->to->waits : &n->to->others) +=
		n->counts->samples[event];
	return 0;
}

/* The recorder's sums, or where it left none and the file is short the rows themselves. */
static void count_events(sqlite3 *db, struct capture_summary *ret)
{
	const struct tablescan scan = { .table = "sample", .columns = 6, .row = count_row, .restart = count_again,
					.sql = "select rowid, event, thread, time_ns, stack, value, count from sample" };
	_cleanup_free_ struct counting *c = mem_alloc(sizeof(*c));
	struct naming n = { c, ret };
	sqlite3_stmt *s = NULL;
	bool there = sqlite3_prepare_v2(db, "select 1 from event_sum limit 1", -1, &s, NULL) == SQLITE_OK &&
		     sqlite3_step(s) == SQLITE_ROW;

	sqlite3_finalize(s);
	if (there)
		ret->counted = sqlite3_exec(db, "select event, samples from event_sum", sum_row, c, NULL) == SQLITE_OK;
	else if (ret->rows <= ROWS_COUNTED)
		ret->counted = tablescan_read(db, &scan, c) == SQLITE_DONE;
	if (ret->counted)
		ret->counted = sqlite3_exec(db, "select id, name from event", add_event, &n, NULL) == SQLITE_OK;
}

char *capture_summary_counts(const struct capture_summary *s)
{
	const struct {
		uint64_t n;
		const char *one, *many;
	} parts[] = { { s->samples, "sample", "samples" }, { s->waits, "wait", "waits" },
		      { s->others, s->samples || s->waits ? "other" : "event", s->samples || s->waits ? "others" : "events" } };
	struct buf b = { 0 };
	char text[32];

	for (size_t i = 0; i < ARRAY_LEN(parts) && s->counted; i++)
		if (parts[i].n)
			buf_printf(&b, "%s%s %s", b.n ? ", " : "", str_count(text, parts[i].n),
				   parts[i].n == 1 ? parts[i].one : parts[i].many);
	if (!b.n)
		buf_printf(&b, "%s row%s", str_count(text, s->rows), s->rows == 1 ? "" : "s");
	return b.data;
}

int capture_summary(const char *path, struct capture_summary *ret, struct err *err)
{
	_cleanup_(capturefile_closep) sqlite3 *db = NULL;
	struct buf what = { 0 };
	int r, e;

	*ret = (struct capture_summary){ 0 };
	r = capturefile_open(path, &db, err);
	if (r < 0)
		return r;
	/* Rows are numbered from 1 on without gaps, unless some were summed; none has to be counted. */
	if (sqlite3_exec(db, "select key, value from meta", summary_fact, ret, NULL) != SQLITE_OK ||
	    sqlite3_exec(db, "select name from event order by id", summary_event, &what, NULL) != SQLITE_OK ||
	    sqlite3_exec(db, "select max(rowid) from sample", summary_samples, &ret->rows, NULL) != SQLITE_OK)
		r = capturefile_fail(db, err, "cannot read %s", path);
	/* Memory has no event, only series; captures of the first schema have none of these (SQLITE_ERROR). */
	if (!r && (e = sqlite3_exec(db, "select 'mem' where exists (select 1 from series where name = 'mem.rss')",
				    summary_event, &what, NULL)) != SQLITE_OK && e != SQLITE_ERROR)
		r = capturefile_fail(db, err, "cannot read %s", path);
	if (!r)
		count_events(db, ret);
	ret->what = mem_strdup(what.n ? what.data : "");
	if (!ret->target)
		ret->target = mem_strdup("");
	buf_done(&what);
	if (r < 0)
		capture_summary_done(ret);
	return r;
}

void capture_summary_done(struct capture_summary *s)
{
	free(s->target);
	free(s->what);
	*s = (struct capture_summary){ 0 };
}

/* Sums that the views read, and that a file may lack. */
static const struct {
	const char *name;
	unsigned flag; /* of weights_fill() */
} sums[] = { { "weight", WEIGHTS_SUMS }, { "function_sum", WEIGHTS_FUNCTIONS } };

/* What a statement uses of ours. */
struct uses {
	unsigned sums; /* tables that weights_fill() fills */
	bool tree;     /* functions of stacktext.h */
};

/* Allows questions about the data and about the tables; nothing that opens another file or runs foreign code. context:
 * notes what the statement uses. */
static int allow(void *context, int action, const char *a, const char *b, const char *database,
		 const char *trigger)
{
	static const char *const pragmas[] = { "table_info", "table_xinfo", "table_list", "index_list",
					       "index_info", "user_version", "application_id", "page_count",
					       "page_size", "freelist_count", "integrity_check", "quick_check" };

	struct uses *uses = context;

	switch (action) {
	case SQLITE_READ:
		for (size_t i = 0; i < ARRAY_LEN(sums); i++)
			if (!sqlite3_stricmp(a, sums[i].name) && database && !strcmp(database, "temp"))
				uses->sums |= sums[i].flag;
		return SQLITE_OK;
	case SQLITE_SELECT:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_FUNCTION:
		uses->tree |= stacktext_has(b);
		return !sqlite3_stricmp(b, "load_extension") ? SQLITE_DENY : SQLITE_OK;
	case SQLITE_PRAGMA:
		for (size_t i = 0; i < ARRAY_LEN(pragmas); i++)
			if (!sqlite3_stricmp(a, pragmas[i]))
				return SQLITE_OK;
		return SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

/* "there is no table ...": lists the views, which a person most likely wants. */
static int unknown_table(sqlite3 *db, struct err *err)
{
	_cleanup_(buf_done) struct buf list = { 0 };
	_cleanup_free_ char *words = mem_strdup(sqlite3_errmsg(db));
	int r;

	sqlite3_exec(db, "select name from sqlite_temp_schema where type = 'view' order by name", summary_event,
		     &list, NULL);
	r = err_set(err, EINVAL, "%s; the views are %s (`gasflame query FILE` lists the tables too)", words,
		    list.n ? list.data : "missing");
	return r;
}

static bool only_space(const char *s)
{
	return !s[strspn(s, " \t\r\n;")];
}

static int prepare(sqlite3 *db, const char *sql, struct uses *ret_uses, sqlite3_stmt **ret, struct err *err)
{
	const char *rest = "";
	int result;

	*ret_uses = (struct uses){ 0 };
	sqlite3_set_authorizer(db, allow, ret_uses);
	result = sqlite3_prepare_v2(db, sql, -1, ret, &rest);
	if (result == SQLITE_AUTH)
		return err_set(err, EACCES, "a query may only read: select, explain, or pragma table_info(…)");
	if (result != SQLITE_OK && strstr(sqlite3_errmsg(db), "no such table"))
		return unknown_table(db, err);
	if (result != SQLITE_OK)
		return err_set(err, EINVAL, "%s", sqlite3_errmsg(db));
	if (!*ret)
		return err_set(err, EINVAL, "the query is empty");
	if (!only_space(rest))
		return err_set(err, EINVAL, "only one statement at a time; remove \"%.40s\"", rest);
	if (!sqlite3_stmt_readonly(*ret))
		return err_set(err, EACCES, "a query may only read: select, explain, or pragma table_info(…)");
	return 0;
}

static bool is_number(sqlite3_stmt *s, int column)
{
	int type = sqlite3_column_type(s, column);

	return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

static int hand_over(sqlite3 *db, sqlite3_stmt *s, capture_row_fn *row, void *context, struct err *err)
{
	int columns = sqlite3_column_count(s), result = SQLITE_ROW, r;
	VEC(const char *) names = { 0 }, values = { 0 };
	VEC(bool) numbers = { 0 };

	for (int i = 0; i < columns; i++)
		vec_push(&names, sqlite3_column_name(s, i));
	r = row(context, columns, names.v, NULL, NULL);
	while (!r && (result = sqlite3_step(s)) == SQLITE_ROW) {
		vec_clear(&values);
		vec_clear(&numbers);
		for (int i = 0; i < columns; i++) {
			vec_push(&numbers, is_number(s, i));
			vec_push(&values, (const char *)sqlite3_column_text(s, i));
		}
		r = row(context, columns, names.v, values.v, numbers.v);
	}
	if (!r && result != SQLITE_DONE)
		r = capturefile_fail(db, err, "cannot run the query");
	vec_done(&names);
	vec_done(&values);
	vec_done(&numbers);
	return r;
}

static bool has_rows(sqlite3 *db, const char *table)
{
	char *sql = sqlite3_mprintf("select 1 from main.%s limit 1", table);
	sqlite3_stmt *s = NULL;
	bool there = sql && sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW;

	sqlite3_finalize(s);
	sqlite3_free(sql);
	return there;
}

/* Makes tables of sums of our own where the file has none, or empty ones: these hide the file's. */
static int make_sums(sqlite3 *db)
{
	int result = SQLITE_OK;

	if (!has_rows(db, "weight"))
		result = sqlite3_exec(db, "create temp table weight (event integer, thread integer, stack integer,"
					  " samples integer, value integer)", NULL, NULL, NULL);
	if (result == SQLITE_OK && !has_rows(db, "function_sum"))
		result = sqlite3_exec(db, "create temp table function_sum (event integer, frame integer, depth integer,"
					  " self integer, total integer)", NULL, NULL, NULL);
	return result;
}

/* Fills those that the statement reads. If that fails, the views compute them. */
static void fill_sums(sqlite3 *db, const struct uses *uses)
{
	if (uses->sums)
		weights_fill(db, "temp", uses->sums, 0);
}

/* The statement is the user's own, and takes the time that it takes: Ctrl-C ends it. */
static int make_views(sqlite3 *db, const char *path, struct stacktext **ret, struct err *err)
{
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 1, NULL);
	if (sqlite3_exec(db, "pragma query_only = off", NULL, NULL, NULL) != SQLITE_OK || make_sums(db) != SQLITE_OK ||
	    schema_put_views(db) != SQLITE_OK || stacktext_add(db, ret) != SQLITE_OK ||
	    sqlite3_exec(db, "pragma query_only = on", NULL, NULL, NULL) != SQLITE_OK)
		return capturefile_fail(db, err, "cannot read %s", path);
	capturevfs_set_budget(db, 0);
	return 0;
}

/* Makes what the statement uses, without the user's rights of a statement, and prepares it again where a view is another one
 * after that. */
static int make_used(sqlite3 *db, const char *sql, struct stacktext *tree, struct uses *uses, sqlite3_stmt **s, struct err *err)
{
	bool again;

	sqlite3_set_authorizer(db, NULL, NULL);
	sqlite3_exec(db, "pragma query_only = off", NULL, NULL, NULL);
	again = uses->tree && stacktext_read(tree);
	if (again) {
		sqlite3_finalize(*s);
		*s = NULL;
		stacktext_remove(db);
	}
	fill_sums(db, uses);
	sqlite3_exec(db, "pragma query_only = on", NULL, NULL, NULL);
	sqlite3_set_authorizer(db, allow, uses);
	return again ? prepare(db, sql, uses, s, err) : 0;
}

int capture_query(const char *path, const char *sql, capture_row_fn *row, void *context, struct err *err)
{
	struct stacktext *tree = NULL;
	sqlite3_stmt *s = NULL;
	sqlite3 *db = NULL;
	struct uses uses;
	int r;

	r = capturefile_open(path, &db, err);
	r = r ?: make_views(db, path, &tree, err);
	r = r ?: prepare(db, sql, &uses, &s, err);
	if (!r && (uses.sums || uses.tree))
		r = make_used(db, sql, tree, &uses, &s, err);
	if (!r)
		r = hand_over(db, s, row, context, err);
	sqlite3_finalize(s);
	capturefile_closep(&db);
	stacktext_free(tree);
	return r;
}
