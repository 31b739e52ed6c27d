/*
 * schema.h - the version and the views of a capture, as SQL (docs/capture-format.md).
 *
 * A change that an older gasflame could not read raises SCHEMA_VERSION; the older
 * ones are still read. The text of a table is part of the format: columns.h makes it
 * for each version, so a new column says since when it is there.
 */
#pragma once

#define SCHEMA_VERSION        4
#define SCHEMA_APPLICATION_ID 0x47617346 /* "GasF", at offset 68 of the file */

struct err;
struct sqlite3;

extern const char schema_views[];

/* The end of the view "waits", which the view in the file shares with the faster one that a query puts in its place
 * (scan/stacktext.c). Before it come spot, the sums by thread and frame, and place, the functions of the frames. */
#define SCHEMA_WAITS_OF_SPOTS \
	"part as (\n" \
	"  select thread, coalesce(function, '[unknown]') as function, coalesce(module, '') as module,\n" \
	"    sum(count) as count, sum(value) as value\n" \
	"  from spot left join place on place.frame = spot.frame group by 1, 2, 3)\n" \
	"select thread.name as thread, tid, function, part.module, round(value / 1e6, 3) as ms, count,\n" \
	"  round(100.0 * value / sum(value) over (), 2) as share\n" \
	"from part left join thread on thread.id = part.thread\n" \
	"order by value desc, thread.id, function;\n"

/*
 * Returns whether the tables of the file are ours, word for word. A computed
 * column, a view in place of a table, an index or a trigger could make a reader
 * run forever. -EBADMSG with a message if not. Tables and views of other names
 * are those of a newer gasflame: nothing reads them.
 */
int schema_check(struct sqlite3 *db, const char *path, struct err *err);
/* Our views instead of the file's, for a database that is read: temporary ones, which come first wherever a name is
 * looked up; and what an older file's tables lack, for these. 0, or an SQLite result. */
int schema_put_views(struct sqlite3 *db);
/* One of these views; NULL: each of them. */
int schema_put_view(struct sqlite3 *db, const char *name);
