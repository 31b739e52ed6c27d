/*
 * page.h - the pages of `top`: each turns analyses into a table. One line a page in the list of page.c.
 */
#pragma once

#include <stddef.h>

#include "tui/table.h"

struct buf;
struct model;

enum page { PAGE_FUNCTIONS, PAGE_THREADS, PAGE_WAITS, PAGE_IO, PAGE_MEMORY, PAGE_TREE, PAGE_COUNT };

struct page_kind {
	const char *name, *title;
	/* variant: the page's other table, if it has one (I/O: files, then functions). */
	void (*fill)(struct table *t, struct model *m, unsigned variant);
	unsigned variants;
	size_t sort; /* column, at first */
};
extern const struct page_kind pages[PAGE_COUNT]; /* the tree has no fill: see tree.h */

/* Makes the table, in the page's first order; table_done() it. The tree's is made empty. */
void page_fill(struct table *t, enum page page, struct model *m, unsigned variant);

/* PAGE_COUNT: there is none of that name. */
enum page page_find(const char *name);

/* A line about all of it: CPUs in use, what threads wait for. */
void page_summary(struct model *m, struct buf *b);

/* Identity of a row by what it is called. */
uint64_t page_id(const char *name, const char *module);
