/*
 * logblocks.h - the blocks of a node's log by itself, without a recording: what `gasflame blocks LOG` shows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;

struct logblocks_options {
	char **path;         /* the log, "-" for the standard input; borrowed */
	const char *client;  /* whose lines; NULL = whoever speaks */
	const char *pattern; /* a user's own instead; NULL = none */
	const char *output;  /* NULL or "-": the standard output */
	size_t limit;        /* rows of the table: the slowest; 0 = all */
	bool by_time;        /* rows in their order, not slowest first */
	bool json, csv;
};

/* Is it a log, not a capture? By its content, and the standard input is one. False also for what is not there. */
bool logblocks_is_log(const char *path);
/* 0, or a negative errno with a sentence; -ENODATA: no line of it is about a block, and JSON says so, too. */
int logblocks_run(const struct logblocks_options *o, struct err *err);
