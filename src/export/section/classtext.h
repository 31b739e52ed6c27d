/*
 * classtext.h - size classes of the allocator, for people and programs: the memory held, and the part in
 * use.
 *
 * From jemalloc's own statistics where it was asked, else from sampled objects, labelled as an estimate.
 * `gasflame heap stats` and the section of the reports share these.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct json;
struct profile;

/* limit: rows, 0 = all */
void classtext_table(const struct profile *p, size_t limit, bool colour, struct buf *out);
/* "allocator":{...} */
void classtext_json(const struct profile *p, struct json *j);
