/*
 * stattext.h - writes counts, for people and for programs. Pure functions into a buffer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/counter.h"

struct buf;
struct hw_row;
struct hw_tables;
struct json;

/* A line for each counter that is known, the ratios with their hints, and whether some took turns. */
void stattext_values(const struct counter_value *v, uint64_t time_ns, struct buf *out);
/* "counters":{...},"ratios":{...} */
void statjson_values(const struct counter_value *v, struct json *j);

/* A table of rows of any kind: only columns that are known in total. */
struct stat_table {
	const char *title;          /* of the names: "function" */
	const struct hw_row *rows, *total;
	size_t n;
	bool threads;               /* names with their tids */
	bool phases;                /* with how many marks they are, and their time */
	bool exact;                 /* counted, not sampled: few are enough for a ratio */
	unsigned columns;           /* of the terminal, 0 = any */
};
void stattext_table(const struct stat_table *t, struct buf *out);
void statjson_table(const struct stat_table *t, const char *key, struct json *j);

/* Puts the heavy functions in which the processor stalls, and why. */
void stattext_hints(const struct hw_tables *t, struct buf *out);
