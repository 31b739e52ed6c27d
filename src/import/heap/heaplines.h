/*
 * heaplines.h - the lines of a stream, one after the other, with their numbers; none is longer than a megabyte.
 *
 *	struct heaplines l = { .in = stream };
 *	while ((r = heaplines_next(&l, &text, &n, err)) > 0)
 *		...
 *	heaplines_done(&l);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct stream;

struct heaplines {
	struct stream *in;
	uint64_t number; /* of the last line, from 1 on */
	bool cut;        /* the last line had no end */
	/* The rest is private. */
	char *data;
	size_t at, n, capacity;
	bool end;
};

/* 1: *ret is a line without its end, and with a NUL after it; it lives until the next call, and may be written to. 0: there is
 * no more. */
int heaplines_next(struct heaplines *l, char **ret, size_t *ret_n, struct err *err);
void heaplines_done(struct heaplines *l);
