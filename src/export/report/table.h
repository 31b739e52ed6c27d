/*
 * table.h - shared by the tables of the terminal: headings, amounts, names that are cut to fit.
 *
 * Only the formats of this folder use it. A table's figures are percentages of all, which its heading names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/report/cleantext.h"

struct buf;
struct export_job;
struct top_row;

#define TABLE_BOLD "\033[1m"
#define TABLE_DIM "\033[2m"
#define TABLE_NORMAL "\033[0m"

struct table {
	const struct export_job *job;
	struct buf *out;
	uint64_t all;
	unsigned module_columns; /* 0 = no column of modules */
	bool self;
	struct cleantext_set functions; /* texts of functions that it has shown; cleantext_set_done() */
};

/* "\nBy crate, % of 2.00 s, the first 30 of 99 (--limit 0 shows all)\n" */
void table_heading(const struct table *t, const char *title, size_t shown, size_t n);
/* "\nPage faults\n": of a part that is no table of shares. */
void table_title(const struct export_job *job, struct buf *out, const char *title);
/* How many of n rows the limit leaves. */
size_t table_shown(const struct export_job *job, size_t n);
/* " 12.34%   1.23 s  " */
void table_amount(const struct table *t, uint64_t value);
/* Puts the name, cut to the rest of a terminal's line after used columns. */
void table_name(const struct table *t, const char *name, unsigned used);
/* The same for a function, whose name is shortened as on the page. */
void table_function(struct table *t, const char *name, unsigned used);
/* A short text in a column of so many characters, dimmed on a terminal, and two spaces. */
void table_dim(const struct table *t, const char *text, unsigned columns);
/* The widest of them, within limits, for such a column with this title. */
unsigned table_widest(const char *title, const char *const *texts, size_t n);
/* Is the terminal too small for columns that could be done without? */
bool table_narrow(const struct export_job *job);
/* Returns the unit of a count: "samples", "waits", "count" where both are. */
const char *table_count(const struct export_job *job);
/* Puts functions, modules or threads; what is the last column's title. */
void table_rows(struct table *t, const char *what, const struct top_row *rows, size_t n);
