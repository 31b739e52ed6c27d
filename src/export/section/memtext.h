/*
 * memtext.h - memory for people and programs: the table that adds up to RSS, and the figures beside it.
 *
 * These are the parts that `gasflame mem` and the section of the reports share.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct json;
struct profile;
struct rss;

struct memtext_options {
	size_t limit;     /* files, 0 = all */
	unsigned columns; /* of the terminal, 0 = any: no sparklines then */
	bool colour;
};
void memtext_table(const struct rss *r, const struct profile *p, const struct memtext_options *o,
		   struct buf *out);
void memtext_object(const struct rss *r, const struct profile *p, size_t limit, bool points, const char *key,
		    struct json *j);
/* {size, live_bytes, rounding_bytes}, ... of an array that is open. */
void memjson_classes(const struct rss *r, struct json *j);

/* A row for each look: the same columns always, empty where something is not known. */
void memtext_csv_header(struct buf *out);
/* The looks from this time on. */
void memtext_csv_rows(const struct profile *p, uint64_t from_ns, struct buf *out);
