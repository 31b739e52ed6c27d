#include "capture/schema.h"

#include <ctype.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/capturefile.h"
#include "capture/columns.h"

/* Parts that the views need and a file of an older schema lacks: when to make them, and how. */
static const struct {
	const char *table, *lacks; /* this column; NULL: the table */
	const char *sql;
} bridges[] = {
	{ "thread", "run_ns", "select *, 0 as run_ns, 0 as queue_ns, 0 as blocked_ns from main.thread" },
	{ "sample", "count", "select rowid as rowid, *, null as count from main.sample" },
	{ "wake", NULL, "select 0 as rowid, 0 as thread, 0 as time_ns, 0 as stack, 0 as blocked_ns, 0 as queue_ns, "
			"0 as waker, '' as waker_name, 0 as waker_stack where 0" },
	{ "task_wake", NULL, "select 0 as rowid, 0 as time_ns, 0 as await_ns, 0 as queue_ns, '' as type, 0 as task, 0 as thread, "
			     "0 as waker, '' as waker_type, 0 as waker_task, 0 as waker_stack where 0" },
	{ "mark", NULL, "select 0 as rowid, 0 as start_ns, 0 as end_ns, '' as name, '' as kind, 0 as thread, "
			"0 as number, 0 as gas, 0 as transactions where 0" },
	{ "mark", "number", "select rowid as rowid, *, null as number, null as gas, null as transactions from main.mark" },
};

static bool is_space(char c)
{
	return isspace((unsigned char)c);
}

/* Compares two statements. A run of blanks is one, and case does not matter, as in SQL. b ends at a
 * semicolon. */
static bool same_words(const char *a, const char *b)
{
	for (; *a && *b && *b != ';'; a++, b++) {
		if (is_space(*a) && is_space(*b)) {
			a += strspn(a, " \t\r\n") - 1;
			b += strspn(b, " \t\r\n") - 1;
		} else if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) {
			return false;
		}
	}
	return !*a && (!*b || *b == ';');
}

/* Returns whether sql is one of the statements in list. *ret_known: list has one for a table of that name. */
static bool listed(const char *list, const char *name, const char *sql, bool *ret_known)
{
	static const char start[] = "create table ";
	size_t n = strlen(name);

	for (const char *s = list; s && *s; s = strstr(s, ";\n"), s = s ? s + 2 : NULL) {
		const char *words = s + strlen(start);

		if (sqlite3_strnicmp(words, name, n) || words[n] != ' ')
			continue;
		*ret_known = true;
		if (same_words(sql, s))
			return true;
	}
	return false;
}

/* Why it may not be in a capture, or NULL. tables: as each version of the schema has them. */
static const char *refuse(char *const *tables, const char *type, const char *name, const char *sql)
{
	bool known = false;

	if (!strcmp(type, "index"))
		return "an index";
	if (!strcmp(type, "trigger"))
		return "a trigger";
	if (!strncmp(name, "sqlite_", 7))
		return "a table of SQLite's own";
	for (int i = 0; i < SCHEMA_VERSION; i++)
		if (listed(tables[i], name, sql, &known))
			return NULL;
	if (known)
		return strcmp(type, "table") ? "a view in place of a table" : "a table that is not as gasflame makes it";
	if (!sqlite3_strnicmp(sql, "create virtual", 14))
		return "a virtual table";
	return NULL;
}

static const char *column_text(sqlite3_stmt *s, int column)
{
	const char *text = (const char *)sqlite3_column_text(s, column);

	return text ? text : "";
}

int schema_check(sqlite3 *db, const char *path, struct err *err)
{
	char *tables[SCHEMA_VERSION];
	sqlite3_stmt *s = NULL;
	int result = sqlite3_prepare_v2(db, "select type, name, sql from sqlite_schema", -1, &s, NULL), r = 0;

	for (int i = 0; i < SCHEMA_VERSION; i++)
		tables[i] = columns_create(i + 1);
	while ((result == SQLITE_OK || result == SQLITE_ROW) && !r) {
		const char *what;

		result = sqlite3_step(s);
		if (result != SQLITE_ROW)
			break;
		what = refuse(tables, column_text(s, 0), column_text(s, 1), column_text(s, 2));
		if (what)
			r = err_set(err, EBADMSG, "%s is damaged, or made to do harm: it has %s (%.60s)", path, what,
				    column_text(s, 1));
	}
	if (!r && result != SQLITE_DONE)
		r = capturefile_fail(db, err, "cannot read %s", path);
	sqlite3_finalize(s);
	for (int i = 0; i < SCHEMA_VERSION; i++)
		free(tables[i]);
	return r;
}

/* Has the file that table, with that column? */
static bool has_column(sqlite3 *db, const char *table, const char *column)
{
	return sqlite3_table_column_metadata(db, "main", table, column, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

static int put_view(sqlite3 *db, const char *name, int name_size, const char *rest, int rest_size)
{
	char *sql = sqlite3_mprintf("create temp view %.*s %.*s", name_size, name, rest_size, rest);
	int result = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return result;
}

int schema_put_views(sqlite3 *db)
{
	int result = SQLITE_OK;

	for (size_t i = 0; i < ARRAY_LEN(bridges) && result == SQLITE_OK; i++) {
		const char *table = bridges[i].table, *lacks = bridges[i].lacks;
		bool there = has_column(db, table, NULL);

		if (lacks ? there && !has_column(db, table, lacks) : !there) {
			char *rest = sqlite3_mprintf("as %s", bridges[i].sql);

			result = rest ? put_view(db, table, strlen(table), rest, strlen(rest)) : SQLITE_NOMEM;
			sqlite3_free(rest);
		}
	}
	return result == SQLITE_OK ? schema_put_view(db, NULL) : result;
}

int schema_put_view(sqlite3 *db, const char *wanted)
{
	static const char start[] = "create view ";
	int result = SQLITE_OK;

	for (const char *s = schema_views; s && *s && result == SQLITE_OK; s = strstr(s, ";\n"), s = s ? s + 2 : NULL) {
		const char *name = s + strlen(start), *end = strstr(s, ";\n");
		int n = strcspn(name, " ");

		if (wanted && ((int)strlen(wanted) != n || strncmp(wanted, name, n)))
			continue;
		result = put_view(db, name, n, name + n, end ? (int)(end - name) - n : (int)strlen(name + n));
	}
	return result;
}
