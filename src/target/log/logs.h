/*
 * logs.h - follows a log as it grows, and hands out its lines with the time at which each was seen.
 *
 * A file is read from its end on. When it is rotated (its name refers to another file) the old one is read to
 * its end, then the new one from its beginning; when it becomes shorter it is read from its beginning. A file
 * that is not there yet is waited for. Pipes are read as they are. A line that is longer than LOGS_LINE is
 * cut there, and an unfinished last line is dropped; both are counted.
 *
 *	r = logs_open("node.log", -1, &l, &err);
 *	while (logs_wait(l, 100, got_line, context) >= 0)
 *		;
 *	logs_close(l);
 *
 * One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct logs;

enum { LOGS_LINE = 16384 };

/* line: without its newline, NUL-terminated; may hold any other byte, and NULs become spaces. */
typedef void logs_fn(void *context, char *line, size_t n, uint64_t time_mono_ns);

struct logs_counts {
	uint64_t lines, rotated, shortened, too_long, unfinished;
};

/* fd >= 0: reads that descriptor and takes it over; path is only its name. *ret_missing (may be NULL): the
 * file is not there yet. */
int logs_open(const char *path, int fd, struct logs **ret, bool *ret_missing, struct err *err);
/* Skips the lines that are there by now: their time is not known. */
void logs_skip(struct logs *l);
/* Waits until there is something new, at most so long, and hands out the lines. 0; 1 when a pipe ended;
 * -errno when the log cannot be read any more. */
int logs_wait(struct logs *l, int timeout_ms, logs_fn *fn, void *context);
const struct logs_counts *logs_counted(const struct logs *l);
void logs_close(struct logs *l); /* NULL is fine */
