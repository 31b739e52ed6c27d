/*
 * lines.h - the lines of a stream, one after the other, in memory that does not grow with it.
 *
 *	struct lines l = lines_of(stream);
 *	while ((r = lines_next(&l, &line, &n, &err)) > 0)
 *		...
 *	lines_done(&l);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct stream;

enum { LINES_LONGEST = 16 << 20 }; /* bytes of a line */

struct lines {
	struct stream *stream;
	uint64_t limit;  /* bytes of all lines, for a reader that keeps much of them; more is -EFBIG. 0: no limit */
	uint64_t number; /* of the line that was returned last, from 1 on */
	bool cut;        /* that line is the last one and has no end: it may be a part of one */
	/* The rest is private. */
	char *data;
	size_t from, to, capacity;
	bool ended;
};

struct lines lines_of(struct stream *stream);
void lines_done(struct lines *l);
/* 1: *ret is a line of *ret_n bytes without its end ("\n", "\r\n") and with a NUL after it; it may be written to, lives until the
 * next call, and a NUL inside of it became a 1. 0: there is none left. Negative errno with a sentence: a line of more than
 * LINES_LONGEST (-EFBIG), more than the limit (-EFBIG), or the stream's error. */
int lines_next(struct lines *l, char **ret, size_t *ret_n, struct err *err);
