/*
 * fuzz_stream.c - bytes that may be packed by gzip, zstd or xz.
 *
 * A file is read at once, within a limit, and in small pieces with peeking in between: both must give the same bytes and
 * the same end.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 1 << 16 };

/* 0 at the end, 1 past the limit. */
static int in_pieces(struct stream *s, size_t piece, struct buf *out)
{
	char some[512];
	const char *next;
	ssize_t n;

	for (size_t i = 0;; i++) {
		ssize_t peeked = i % 7 == 3 ? stream_peek(s, &next, NULL) : -1;
		char first = peeked > 0 ? *next : 0;

		n = stream_read(s, some, piece, NULL);
		if (n <= 0)
			return n;
		if ((size_t)n > piece || (peeked > 0 && some[0] != first) || !peeked)
			abort();
		buf_add(out, some, n);
		if (stream_offset(s) != out->n)
			abort();
		if (out->n > LIMIT)
			return 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream *s = stream_of(data, size);
	struct buf out = { 0 };
	struct err err = { 0 };
	char *all = NULL;
	size_t n = 0;
	int whole = stream_whole(s, LIMIT, &all, &n, &err), pieces;

	if (whole && (!err.code || !*err.text))
		abort();
	stream_free(s);
	s = stream_of(data, size);
	pieces = in_pieces(s, 1 + size % 512, &out);
	if (!whole && (pieces || out.n != n || (n && memcmp(out.data, all, n))))
		abort();
	if (whole && !pieces)
		abort();
	stream_free(s);
	buf_done(&out);
	free(all);
	return 0;
}
