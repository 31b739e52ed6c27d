/*
 * textlines.h - the lines of a stream, one at a time, in bounded memory.
 *
 *	struct textlines t;
 *	textlines_init(&t, stream, 1 << 30);
 *	while ((r = textlines_next(&t, &line, &n, &err)) > 0)
 *		puts(line);
 *	textlines_done(&t);
 *
 * A line ends at a newline, before which a carriage return is dropped, or at the end of the text.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct err;
struct stream;

enum { TEXTLINES_LONGEST = 16 << 20 }; /* bytes of a line; a longer one is an error */

struct textlines {
	uint64_t number; /* of the last line, from 1 */
	/* The rest is private. */
	struct stream *in;
	uint64_t limit;
	struct buf text;
	size_t at; /* where the next line begins */
	int ended;
};

/* A text of more bytes than limit is an error: what readers keep of it is bounded by it. */
void textlines_init(struct textlines *t, struct stream *in, uint64_t limit);
void textlines_done(struct textlines *t);
/* 1 and the next line, which may be changed, has a NUL after it and lives until the next call; 0: there is no more. */
int textlines_next(struct textlines *t, char **ret, size_t *ret_n, struct err *err);
