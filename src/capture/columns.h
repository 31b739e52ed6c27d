/*
 * columns.h - the tables of a capture, column by column. For src/capture only.
 *
 * One line for each column: the schema, the statements that insert and select, and how a column is bound
 * (capturerows.c) and read (captureread.c) come from it. A new column is a line here; where the model holds it in
 * another form (COLUMN_OWN), also a line in put_...() and in read_...().
 */
#pragma once

#include <stddef.h>

#include "profile/redact.h"

/* In the order in which ids need them to be read. */
enum capture_table {
	TABLE_META,
	TABLE_EVENT,
	TABLE_PROCESS,
	TABLE_OWNER,
	TABLE_PROCESS_OWNER,
	TABLE_THREAD,
	TABLE_MODULE,
	TABLE_MAPPING,
	TABLE_FUNCTION_RANGE,
	TABLE_FUNCTION,
	TABLE_FUNCTION_NAMED,
	TABLE_FRAME,
	TABLE_LINE,
	TABLE_STACK,
	TABLE_SAMPLE,
	TABLE_WAKE,
	TABLE_TASK_WAKE,
	TABLE_MARK,
	TABLE_SUMMED,
	TABLE_SERIES,
	TABLE_POINT,
	TABLE_HISTOGRAM,
	TABLE_COUNTER,
	TABLE_WEIGHT,
	TABLE_FUNCTION_SUM,
	TABLE_EVENT_SUM,
	TABLES,
};

enum column_kind {
	COLUMN_END,
	COLUMN_ID,       /* the row's index in the model */
	COLUMN_INT,      /* uint64_t: 0 to 2^63 - 1 */
	COLUMN_U32,
	COLUMN_ADDRESS,  /* uint64_t, all 64 bits: one of the kernel is negative; NULL reads as 0 */
	COLUMN_REF,      /* uint32_t: a row of another table */
	COLUMN_OPTIONAL, /* the same; NULL is PROFILE_NONE */
	COLUMN_TEXT,     /* uint32_t: a string; NULL is "" */
	COLUMN_OWN,      /* bound and read by hand */
};

struct column {
	const char *name;
	enum column_kind kind;
	size_t offset;          /* in the struct of the model */
	enum capture_table of;  /* COLUMN_REF, COLUMN_OPTIONAL: whose row */
	redact_fn *hide;        /* COLUMN_TEXT: what a redacted capture has instead, NULL = the same */
	const char *type;       /* in SQL, where the kind does not say it */
	int since;              /* version of the schema, 0 = that of the table */
	const char *before;     /* what is read instead from a file of an older one */
};

struct table {
	const char *name, *end; /* end: what follows the columns in the schema; NULL = nothing */
	const char *order;      /* in which rows are read, NULL = any */
	int since;
	bool optional;          /* it came without a new version: files of that version may lack it */
	bool appends;           /* rows are only ever added */
	bool derived;           /* made of other tables when the file is closed; no part of the model */
	struct column columns[11];
};

extern const struct table capture_tables[TABLES];

/* These allocate, and the caller frees. */
char *columns_create(int version); /* all tables as that version of the schema has them: "create table ...;\n" */
char *columns_insert(enum capture_table table);
char *columns_select(enum capture_table table, int version);
