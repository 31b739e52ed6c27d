/*
 * spoollist.h - the windows of one folder of a spool, sorted by name, in memory: so that nothing but new/ is ever listed again.
 *
 * A file that several folders have is one struct spoolfile, counted by the lists that it is in. For spool.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct spoolfile {
	uint64_t bytes;
	uint32_t lists;
	char name[];
};

/* Of all lists of a spool: each file once. */
struct spoollist_total {
	uint64_t bytes, windows;
};

struct spoollist {
	VEC(struct spoolfile *) files;
	size_t head; /* those before it are gone */
	uint64_t bytes;
};

struct spoolfile *spoolfile_new(const char *name, uint64_t bytes); /* in no list yet: freed by the last that it is removed from */

/* At the end: the list is to be sorted. */
void spoollist_push(struct spoollist *l, struct spoolfile *f, struct spoollist_total *t);
void spoollist_sort(struct spoollist *l);
/* In its place. */
void spoollist_add(struct spoollist *l, struct spoolfile *f, struct spoollist_total *t);
size_t spoollist_count(const struct spoollist *l);
struct spoolfile *spoollist_at(const struct spoollist *l, size_t at);
size_t spoollist_find(const struct spoollist *l, const char *name); /* SIZE_MAX: it is not there */
void spoollist_remove(struct spoollist *l, size_t at, struct spoollist_total *t);
void spoollist_done(struct spoollist *l, struct spoollist_total *t);
