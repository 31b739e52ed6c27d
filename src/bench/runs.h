/*
 * runs.h - measured runs of programs: a table of runs by figures, as `bench` makes it and `compare` reads it.
 *
 * A row is one run of one command, or one block of a run. Figures that a row lacks are NAN. Units are "s",
 * "bytes", "count", "gas" and "gas/s"; files name a figure with its unit behind it ("wall_s"). Columns are
 * added before rows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct err;

enum { RUNS_COMMANDS_MAX = 64, RUNS_METRICS_MAX = 256, RUNS_ROWS_MAX = 10000000 };

struct runs_metric {
	char *name;
	const char *unit; /* one of the above */
	bool part;        /* of the figure that matters most: where it is hardly any of it, it tells nothing */
};

struct runs_row {
	uint32_t command;
	uint64_t round;    /* which run, from 1 */
	uint64_t block;    /* 0 = it is a whole run */
	uint64_t start_ns; /* on the wall clock; 0 = unknown */
};

struct runs {
	VEC(char *) commands; /* as they were typed, or named */
	VEC(struct runs_metric) metrics;
	VEC(struct runs_row) rows;
	VEC(double) values;   /* rows x metrics */
	uint64_t warmups;     /* runs before the first row, of each command */
	bool interleaved;     /* one run of each command in turn */
};

void runs_done(struct runs *r);
uint32_t runs_command(struct runs *r, const char *name); /* found or added */
/* Found or added. unit is not copied. */
uint32_t runs_add_metric(struct runs *r, const char *name, const char *unit);
/* UINT32_MAX: none. */
uint32_t runs_find_metric(const struct runs *r, const char *name);
/* Appends a row of NANs; pointer to its values, until the next row. */
double *runs_add_row(struct runs *r, const struct runs_row *row);
static inline double runs_value(const struct runs *r, size_t row, uint32_t metric)
{
	return r->values.v[row * r->metrics.n + metric];
}
/* Is more of it better? */
bool runs_more_is_better(const char *unit);
/* The figure that matters most: the first phase, where there are phases, else the wall time; UINT32_MAX: no
 * figure. */
uint32_t runs_main_metric(const struct runs *r);

/* The finite values of one command, in the order of the rows; both outputs have room for all rows. rows may
 * be NULL. */
size_t runs_column(const struct runs *r, uint32_t command, uint32_t metric, double *values, size_t *rows);

/* "wall", "s" to "wall_s"; "wait_latency" and "persistence_wait" are in microseconds. Caller frees. */
char *runs_column_name(const struct runs_metric *m);

/* Reads the files that bench writes, as JSON or CSV, txgen's report, and other CSV: numbers under a line of
 * names, where command, run and block_number identify a row. name is for error messages. */
int runs_read(const char *text, size_t n, const char *name, struct runs *ret, struct err *err);
/* For runs_read(). */
int runs_read_json(const char *text, size_t n, struct runs *ret, struct err *err);
/* Of gas and the time of its payload: adds a column before the rows, and fills it after them. */
void runs_add_rate_column(struct runs *r);
void runs_fill_rates(struct runs *r);

/* Of a column's name in a file: *ret_n is the length of the bare name, *ret_scale makes the unit of the
 * number. */
const char *runs_parse_unit(const char *column, size_t *ret_n, double *ret_scale);
