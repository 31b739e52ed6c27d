/*
 * page.h - the pages of `top`: each turns analyses into a table. A new page is a function that fills it, its columns, and
 * one line in the list of page.c.
 */
#pragma once

#include <stddef.h>

#include "tui/table.h"

struct buf;
struct model;

enum page { PAGE_FUNCTIONS, PAGE_THREADS, PAGE_WAITS, PAGE_IO, PAGE_MEMORY, PAGE_TREE, PAGE_BLOCKS, PAGE_TASKS, PAGE_COUNT };

/* The columns by name: page.c puts titles, widths and cells at these. Tables of weights begin with the first four. */
enum weight_column { WEIGHT_SELF_PERCENT, WEIGHT_TOTAL_PERCENT, WEIGHT_SELF, WEIGHT_TOTAL, WEIGHT_COLUMNS };
enum function_column { FUNCTION_NAME = WEIGHT_COLUMNS, FUNCTION_MODULE }; /* also of call trees */
enum thread_column {
	THREAD_TID, THREAD_RUN, THREAD_QUEUE, THREAD_WAIT, THREAD_TIME,
	THREAD_CAUSE, THREAD_NAME, THREAD_WAITS, THREAD_PID
};
enum wait_column {
	WAIT_TIME, WAIT_SHARE, WAIT_COUNT, WAIT_LONGEST, WAIT_CAUSE,
	WAIT_FUNCTION, WAIT_CALL, WAIT_THREAD
};
enum io_column { IO_READ, IO_READS, IO_WRITTEN, IO_WRITES, IO_IN_SYNC, IO_SYNCS, IO_ERRORS, IO_NAME, IO_MODULE };
enum memory_column {
	MEMORY_PID, MEMORY_RSS, MEMORY_ANON, MEMORY_FILE, MEMORY_SHARED,
	MEMORY_SWAP, MEMORY_MAJOR, MEMORY_MINOR, MEMORY_PROCESS
};
enum block_column { BLOCK_WALL, BLOCK_GAS_USED, BLOCK_SPEED, BLOCK_TXS, BLOCK_TIME, BLOCK_MOSTLY, BLOCK_NAME, BLOCK_START };
enum task_column { TASK_POLL_SHARE, TASK_POLLS, TASK_MEAN, TASK_LONGEST, TASK_QUEUE, TASK_NAME };
enum series_column { SERIES_FIRST, SERIES_LAST, SERIES_LEAST, SERIES_MOST, SERIES_NAME, SERIES_UNIT };

struct page_kind {
	const char *name, *title;
	const struct column *columns; /* of its first table */
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

/* The page of tasks (taskpage.c). */
extern const struct column page_task_columns[];
void page_fill_tasks(struct table *t, struct model *m, unsigned variant);

/* Returns the duration of the view. */
uint64_t page_duration_ns(const struct model *m);
/* Identifies a row by its name. */
uint64_t page_id(const char *name, const char *module);
