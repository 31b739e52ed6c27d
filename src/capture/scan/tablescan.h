/*
 * tablescan.h - the rows of a table of whole numbers, read from the pages of the database file.
 *
 * A table is a B-tree of pages: leaves have rows, inner pages have the numbers of the pages below. The scan
 * reads each page once, in the order of rowids, and never more pages than the file has. It decodes what a
 * capture's big tables have, integers and NULL, and gives up on everything else: then the table is read by
 * SQL from its beginning. A file with a log beside it is always read by SQL, for its newest pages are in the log.
 *
 * Bytes of the file are hostile: each offset and size is checked against its page.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

enum { TABLESCAN_COLUMNS = 10 };

struct tablescan_row {
	int64_t rowid;
	int64_t values[TABLESCAN_COLUMNS]; /* 0 where it is NULL, as the column of an integer primary key is */
	uint32_t nulls;                    /* a bit for each column */
	bool odd;                          /* some column is no number: the values are not valid */
};

struct tablescan {
	const char *table;
	unsigned columns;
	unsigned every; /* read one of so many leaves only; 0 = all of them */
	/* The same rows by SQL, the rowid before the columns. With every: as many rows, if not the same. */
	const char *sql;
	/* Takes a row; false ends the scan. NULL: nothing is read but the numbers of the leaves. */
	bool (*row)(void *context, const struct tablescan_row *row);
	/* Says which page the next rows are on, when they are read by pages; NULL = nobody wants to know. */
	void (*leaf)(void *context, uint32_t page);
	/* Forgets all rows so far: they are read again, by SQL. */
	void (*restart)(void *context);
};

/* Reads the table. Returns SQLite's result: SQLITE_DONE, also when row() ended the scan. */
int tablescan_read(sqlite3 *db, const struct tablescan *t, void *context);

/* By the pages alone: -ENOTSUP when SQL must read the table, possibly after some rows. */
int tablescan_pages(sqlite3 *db, const struct tablescan *t, void *context);
/* Only these pages, which leaf() has named before: -ENOTSUP when one of them is no leaf any more. */
int tablescan_leaves(sqlite3 *db, const struct tablescan *t, const uint32_t *pages, size_t n, void *context);
