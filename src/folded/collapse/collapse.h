/*
 * collapse.h - the text of `perf script` as folded stacks, read from a file or a pipe, on several processors.
 *
 * The caller's thread reads, and cuts the text after an empty line, where a sample ends; each other thread counts the pieces that it gets in a
 * table of its own (foldtable.h). The tables are joined at the end. Memory: some pieces of 4 MB, and the tables.
 */
#pragma once

#include <stddef.h>

#include "folded/collapse/foldtable.h"

struct collapse;
struct err;
struct stream;

/* event: whose samples count; NULL or "": that of the first sample which has one. */
struct collapse *collapse_new(const struct foldtable_options *o, const char *event, unsigned threads);
/* All of a stream, as often as there are files. A sample of more than 256 MB is refused: -EFBIG. */
int collapse_read(struct collapse *c, struct stream *in, struct err *err);
/* Waits for the threads. The table has all stacks, and lives as long as the collapse. */
struct foldtable *collapse_end(struct collapse *c);
/* The event that was taken; "": no sample has one. */
const char *collapse_event(const struct collapse *c);
void collapse_free(struct collapse *c); /* NULL is fine */
