#include "base/file/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file/stream.h"
#include "base/mem.h"

enum { PIECE_BYTES = 1 << 20 };

struct lines lines_of(struct stream *stream)
{
	return (struct lines){ .stream = stream };
}

void lines_done(struct lines *l)
{
	free(l->data);
	l->data = NULL;
}

/* Reads more after the bytes that are there. */
static int refill(struct lines *l, struct err *err)
{
	ssize_t n;

	if (l->from) {
		memmove(l->data, l->data + l->from, l->to - l->from);
		l->to -= l->from;
		l->from = 0;
	}
	if (l->to > LINES_LONGEST)
		return err_set(err, EFBIG, "line %llu: it is longer than %d MB", (unsigned long long)l->number + 1, LINES_LONGEST >> 20);
	if (l->to + 1 >= l->capacity) {
		l->capacity = l->capacity ? l->capacity * 2 : PIECE_BYTES;
		l->data = mem_resize(l->data, l->capacity, 1);
	}
	n = stream_read(l->stream, l->data + l->to, l->capacity - l->to - 1, err);
	if (n < 0)
		return n;
	if (l->limit && stream_offset(l->stream) > l->limit)
		return err_set(err, EFBIG, "its text is longer than %llu MB", (unsigned long long)l->limit >> 20);
	for (char *s = l->data + l->to; (s = memchr(s, 0, l->data + l->to + n - s)); s++)
		*s = 1;
	l->to += n;
	l->ended = !n;
	return 0;
}

/* Where the next line ends; NULL: there is none, or an error is in *ret. */
static char *find_end(struct lines *l, int *ret, struct err *err)
{
	size_t searched = 0;

	*ret = l->data ? 0 : refill(l, err);
	while (!*ret) {
		char *s = l->data + l->from;
		char *end = l->to > l->from + searched ? memchr(s + searched, '\n', l->to - l->from - searched) : NULL;

		if (end)
			return end;
		searched = l->to - l->from;
		if (l->ended)
			return searched ? l->data + l->to : NULL;
		*ret = refill(l, err);
	}
	return NULL;
}

int lines_next(struct lines *l, char **ret, size_t *ret_n, struct err *err)
{
	int r;
	char *end = find_end(l, &r, err);

	if (!end)
		return r;
	*ret = l->data + l->from;
	*ret_n = end - *ret;
	l->cut = end == l->data + l->to;
	l->from = end - l->data + !l->cut;
	*end = 0;
	if (!l->cut && *ret_n && (*ret)[*ret_n - 1] == '\r')
		(*ret)[--*ret_n] = 0;
	l->number++;
	return 1;
}
