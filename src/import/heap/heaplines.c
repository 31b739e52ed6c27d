#include "import/heap/heaplines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file/stream.h"
#include "base/mem.h"

enum { PIECE = 64 << 10, LONGEST = 1 << 20 };

void heaplines_done(struct heaplines *l)
{
	free(l->data);
	*l = (struct heaplines){ 0 };
}

/* Reads on behind what is there. One byte more than the capacity counts is for the NUL of a line without an end. */
static int fill(struct heaplines *l, struct err *err)
{
	ssize_t r;

	if (l->at)
		memmove(l->data, l->data + l->at, l->n - l->at);
	l->n -= l->at;
	l->at = 0;
	if (l->capacity - l->n < PIECE) {
		l->capacity = l->capacity ? l->capacity * 2 : 4 * PIECE;
		l->data = mem_resize(l->data, l->capacity + 1, 1);
	}
	r = stream_read(l->in, l->data + l->n, l->capacity - l->n, err);
	if (r < 0)
		return r;
	l->end = !r;
	l->n += r;
	return 0;
}

int heaplines_next(struct heaplines *l, char **ret, size_t *ret_n, struct err *err)
{
	size_t seen = 0;
	int r = l->data ? 0 : fill(l, err);

	while (!r) {
		char *start = l->data + l->at, *end = l->n - l->at > seen ? memchr(start + seen, '\n', l->n - l->at - seen) : NULL;
		size_t n = end ? (size_t)(end - start) : l->n - l->at;

		if (n > LONGEST)
			return err_set(err, EINVAL, "line %llu: longer than %d bytes", (unsigned long long)l->number + 1, LONGEST);
		if (end || (l->end && n)) {
			l->at += n + !!end;
			l->number++;
			l->cut = !end;
			start[n] = '\0';
			*ret = start;
			*ret_n = n;
			return 1;
		}
		if (l->end)
			return 0;
		seen = n;
		r = fill(l, err);
	}
	return r;
}
