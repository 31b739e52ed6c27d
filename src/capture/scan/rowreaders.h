/*
 * rowreaders.h - reads the short tables of a capture, whose rows SQLite hands over. For src/capture only.
 *
 * The long tables, of numbers alone, are read by tablescan.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include "capture/columns.h"

struct reading;

/* Reads one row into the profile; false: the row makes no sense, and is dropped. */
typedef bool rowreaders_fn(struct reading *r, sqlite3_stmt *s);

/* By table; NULL: the table is not one of these. */
extern rowreaders_fn *const rowreaders[TABLES];

/* To be called after the last row of each table: the lines of a frame are kept until the next frame begins. */
void rowreaders_finish(struct reading *r);
/* Reads a time or a duration; false: the column has none. */
bool rowreaders_get_ns(sqlite3_stmt *s, int column, uint64_t *ret);
