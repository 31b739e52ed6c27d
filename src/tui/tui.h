/*
 * tui.h - `top` on a terminal, and as tables into a pipe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/page.h"

struct err;
struct scope;
struct source;

struct tui_options {
	enum page page;        /* at first; PAGE_COUNT: not said */
	uint64_t interval_ns;  /* between refreshes */
	uint64_t window_ns;    /* how much of the past is shown; 0: since the start */
	uint64_t count;        /* refreshes, 0 = until the end */
	size_t limit;          /* batch: rows of a table, 0 = all */
	unsigned columns;      /* batch: width of a line */
	const char *filter;    /* may be NULL */
	bool json;             /* batch: a line of JSON a refresh */
};

/* On the terminal, until the user leaves. scope's strings are taken over. */
int tui_run(const struct source *source, const struct tui_options *o, const struct scope *scope,
	    struct err *err);
/* Into stdout. 0, or 1 when the target ended before the last refresh. */
int tui_batch(const struct source *source, const struct tui_options *o, const struct scope *scope,
	      struct err *err);
/* For signal handlers: batch ends at the next opportunity. */
void tui_stop(void);
