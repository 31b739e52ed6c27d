/*
 * table.h - a page as a table: its rows, their order, as text and as JSON.
 *
 * A page fills in rows; sorting, filtering, the choice of columns that fit and the text of each cell are done
 * here, for the terminal and for a pipe alike.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/wait/pattern.h"
#include "base/map.h"
#include "base/vec.h"
#include "export/report/cleantext.h"

struct buf;
struct json;

enum { TABLE_COLUMNS = 12 };

enum column_type {
	COLUMN_NAME,    /* cut as cleantext_fit() does, functions as cleantext_function(); takes the room that is left */
	COLUMN_TEXT,
	COLUMN_PERCENT,
	COLUMN_TIME,    /* ns */
	COLUMN_BYTES,
	COLUMN_COUNT,
	COLUMN_NUMBER,  /* an id: no separators */
	COLUMN_BAR,     /* parts of a whole, by cause */
	COLUMN_VALUE,   /* in the unit of the table's event */
};

struct column {
	const char *title; /* NULL ends the list */
	const char *key;   /* in JSON */
	enum column_type type;
	unsigned width;
	unsigned drop;     /* where there is no room, the highest goes first; 0 = never */
};

enum row_kind { ROW_PLAIN, ROW_KERNEL, ROW_LIBRARY, ROW_UNNAMED, ROW_NOTE, ROW_HOT };

struct row {
	double value[TABLE_COLUMNS];
	const char *text[TABLE_COLUMNS]; /* NAME and TEXT; NULL = "" */
	const uint64_t *parts;           /* BAR: CAUSE_COUNT of them */
	uint64_t whole;                  /* of the bar */
	const char *note;                /* more about it, for when it is chosen; NULL = its whole name */
	uint64_t id;                     /* the same at the next refresh */
	uint32_t index;                  /* the page's own */
	enum row_kind kind;
	unsigned depth;                  /* of trees: indentation of the name */
	char mark;                       /* before the name: '+', '-', 0 = none */
};

struct table {
	const struct column *columns;
	size_t column_count;
	VEC(struct row) rows;
	struct strtab strings;
	VEC(uint64_t *) bars;
	const char *unit;   /* of VALUE columns */
	char empty[256];    /* what to say when there is no row */
	size_t sort;        /* column */
	bool up;            /* smallest first */
	bool natural; /* rows come in the order of the first sort already, and better than it would do */
	bool fixed;         /* rows have an order of their own: trees, code */
	size_t all;         /* rows before the filter */
	struct cleantext_set functions; /* texts that cells have got since table_begin() */
};

void table_init(struct table *t, const struct column *columns);
/* Other columns than it was made with; there are no rows yet. */
void table_set_columns(struct table *t, const struct column *columns);
void table_done(struct table *t);
/* A copy that lives as long as the table; NULL is "". */
const char *table_text(struct table *t, const char *s);
/* A new row, zeroed; pointer valid until the next one. */
struct row *table_row(struct table *t);
/* Room for the parts of a bar. */
uint64_t *table_parts(struct table *t);

/* Keeps rows in which a text has the words, ignoring case; NULL or "" keeps all. */
void table_filter(struct table *t, const char *words);
void table_sort(struct table *t);
/* The next column to sort by. */
size_t table_next_sort(const struct table *t, size_t sort, int step);

/* Widths of the columns for a line of that width; 0 = left out. One blank stands between two. */
void table_layout(const struct table *t, unsigned width, unsigned widths[TABLE_COLUMNS]);
/* The rows are written anew: a function's text is its own among the cells that follow. */
void table_begin(struct table *t);
/* The text of a cell in exactly width columns (less if it is the last). Clean UTF-8. */
void table_cell(struct table *t, const struct row *r, size_t column, unsigned width, struct buf *b);
bool table_is_left(const struct table *t, size_t column);
/* Draws a bar: a character for each column, '\0'-terminated; causes[i] is its cause. */
void table_bar(const struct row *r, unsigned width, char *ret, uint8_t *causes);
char table_letter(enum cause c);

/* All rows, at most limit (0 = all), with a line of titles. */
void table_write(struct table *t, unsigned width, size_t limit, struct buf *b);
void table_json(const struct table *t, size_t limit, const char *key, struct json *j);
