/*
 * pagedata.h - the parts of which page.c makes the data of a page: columns of numbers, and a head in JSON.
 *
 * docs/page-format.md says what each column holds.
 */
#pragma once

#include <stddef.h>

#include "analyze/tree/crate.h"
#include "base/buf.h"
#include "base/vec.h"
#include "export/page/pagetree.h"

struct export_job;
struct json;
struct page_options;
struct profile;
struct verdict;
struct waits;

enum { PAGE_LIBRARY = 8 }; /* beside whose code it is: a library that every program uses (ownfunction.h) */
enum { PAGE_LEFT_OUT = 15 }; /* the kind of the identity that stands for nodes that were left out */

struct page_column {
	const char *name;
	struct buf raw, packed; /* raw: until it is packed */
	size_t raw_bytes;
	bool is_time; /* of samples */
};

struct page_columns {
	VEC(struct page_column) list;
	struct strtab modules, crates; /* modules and crates of the identities, by index */
};

void page_columns_make(struct page_columns *c, const struct pagetree *t, const struct pagestacks *s);
void page_columns_done(struct page_columns *c);
/* Compresses all of them, by as many threads as help, and frees what they were made of. */
int page_columns_pack(struct page_columns *c);
/* Raw deflate, added to out. */
int page_pack(const void *data, size_t n, struct buf *out);

/* Everything that is no long list of numbers. */
void page_head(struct buf *out, const struct export_job *sides, size_t n, const struct page_options *o,
	       const struct pagetree *t, const struct pagestacks *s, const struct page_columns *c);
/* The series of a profile. Those that have many points a second have at most so many here. */
enum { PAGE_POINTS = 4000 };
void page_series(struct json *j, const struct profile *p);
/* The verdict's sentences of the waits, and of the heap. Advice belongs to its finding. */
void page_verdict(struct json *j, const struct export_job *job, const struct verdict *v, const struct waits *w);
