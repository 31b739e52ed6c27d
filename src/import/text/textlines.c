#include "import/text/textlines.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/file/stream.h"

enum { PIECE_BYTES = 64 << 10 };

void textlines_init(struct textlines *t, struct stream *in, uint64_t limit)
{
	*t = (struct textlines){ .in = in, .limit = limit };
}

void textlines_done(struct textlines *t)
{
	buf_done(&t->text);
}

/* Moves what is left to the front and reads more. */
static int fill(struct textlines *t, struct err *err)
{
	char piece[PIECE_BYTES];
	ssize_t n = stream_read(t->in, piece, sizeof(piece), err);

	if (n < 0)
		return n;
	if (stream_offset(t->in) > t->limit)
		return err_set(err, EFBIG, "line %llu: it is longer than %llu bytes", (unsigned long long)t->number + 1,
			       (unsigned long long)t->limit);
	if (t->at) {
		memmove(t->text.data, t->text.data + t->at, t->text.n - t->at);
		t->text.n -= t->at;
		t->at = 0;
	}
	buf_add(&t->text, piece, n);
	t->ended = !n;
	return 0;
}

int textlines_next(struct textlines *t, char **ret, size_t *ret_n, struct err *err)
{
	size_t seen = 0, n;
	char *end = NULL;
	int r;

	for (;;) {
		if (t->text.n > t->at + seen)
			end = memchr(t->text.data + t->at + seen, '\n', t->text.n - t->at - seen);
		if (end || t->ended)
			break;
		seen = t->text.n - t->at;
		if (seen > TEXTLINES_LONGEST)
			return err_set(err, EFBIG, "line %llu: it is longer than %d MB", (unsigned long long)t->number + 1,
				       TEXTLINES_LONGEST >> 20);
		r = fill(t, err);
		if (r)
			return r;
	}
	if (!end && t->at == t->text.n)
		return 0;
	n = end ? (size_t)(end - t->text.data) - t->at : t->text.n - t->at;
	*ret = t->text.data + t->at;
	t->at += n + !!end;
	if (n && (*ret)[n - 1] == '\r')
		n--;
	(*ret)[n] = 0;
	*ret_n = n;
	t->number++;
	return 1;
}
