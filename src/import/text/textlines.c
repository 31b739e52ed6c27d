#include "import/text/textlines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file/stream.h"
#include "base/mem.h"

enum { PIECE_BYTES = 1 << 20, LONGEST_BYTES = 16 << 20 };

struct textlines textlines_of(struct stream *stream)
{
	return (struct textlines){ .stream = stream };
}

void textlines_done(struct textlines *t)
{
	free(t->data);
	t->data = NULL;
}

/* More bytes after those that are there. */
static int refill(struct textlines *t, struct err *err)
{
	ssize_t n;

	if (t->from) {
		memmove(t->data, t->data + t->from, t->to - t->from);
		t->to -= t->from;
		t->from = 0;
	}
	if (t->to > LONGEST_BYTES)
		return err_set(err, EFBIG, "line %llu: it is longer than %d MB", (unsigned long long)t->number + 1, LONGEST_BYTES >> 20);
	if (t->to + 1 >= t->capacity) {
		t->capacity = t->capacity ? t->capacity * 2 : PIECE_BYTES;
		t->data = mem_resize(t->data, t->capacity, 1);
	}
	n = stream_read(t->stream, t->data + t->to, t->capacity - t->to - 1, err);
	if (n < 0)
		return n;
	for (char *s = t->data + t->to; (s = memchr(s, 0, t->data + t->to + n - s)); s++)
		*s = 1;
	t->to += n;
	t->ended = !n;
	return 0;
}

int textlines_next(struct textlines *t, char **ret, size_t *ret_n, struct err *err)
{
	size_t searched = 0;
	char *end;
	int r = t->data ? 0 : refill(t, err);

	if (r)
		return r;
	for (;;) {
		char *s = t->data + t->from;

		end = t->to > t->from + searched ? memchr(s + searched, '\n', t->to - t->from - searched) : NULL;
		if (end)
			break;
		searched = t->to - t->from;
		if (t->ended && !searched)
			return 0;
		if (t->ended) {
			end = t->data + t->to;
			break;
		}
		r = refill(t, err);
		if (r)
			return r;
	}
	*ret = t->data + t->from;
	*ret_n = end - *ret;
	t->from = MIN((size_t)(end - t->data) + 1, t->to);
	*end = 0;
	if (*ret_n && (*ret)[*ret_n - 1] == '\r')
		(*ret)[--*ret_n] = 0;
	t->number++;
	return 1;
}
