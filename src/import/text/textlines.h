/*
 * textlines.h - the lines of a stream, one after the other, in memory that does not grow with it.
 *
 *	struct textlines t = textlines_of(stream);
 *	while ((r = textlines_next(&t, &line, &n, &err)) > 0)
 *		...
 *	textlines_done(&t);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct stream;

struct textlines {
	struct stream *stream;
	uint64_t number; /* of the line that was returned last, from 1 on */
	/* The rest is private. */
	char *data;
	size_t from, to, capacity;
	bool ended;
};

struct textlines textlines_of(struct stream *stream);
void textlines_done(struct textlines *t);
/* 1: *ret is a line of *ret_n bytes without its end ("\n", "\r\n") and with a NUL after it; it lives until the next call, and a
 * NUL inside of it became a 1. 0: there is none left. Negative errno with a sentence: a line of more than 16 MB (-EFBIG), or the
 * stream's error. */
int textlines_next(struct textlines *t, char **ret, size_t *ret_n, struct err *err);
