/*
 * pagepack.c - compression of a page's columns.
 *
 * Columns of small numbers repeat little but are uneven: for those a search for repetitions costs most of
 * the time and gains nothing, it may even lose. What suits a long column, a piece of it tells.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include <zlib.h>

#include "export/page/pagedata.h"

enum { THREADS = 4, WORTH_A_THREAD = 1 << 20, LONG = 1 << 18, PIECE = 1 << 16 };

struct way {
	int level, strategy;
	unsigned percent; /* of the size that it must be, at most, to be preferred to those before it */
};

/* Fastest first. */
static const struct way ways[] = {
	{ 1, Z_HUFFMAN_ONLY, 100 },
	{ 1, Z_RLE, 100 },
	{ 4, Z_DEFAULT_STRATEGY, 97 },
	{ 6, Z_DEFAULT_STRATEGY, 90 },
};
static const struct way thorough = { 6, Z_DEFAULT_STRATEGY, 100 };

static int deflate_all(const void *data, size_t n, const struct way *way, struct buf *out)
{
	z_stream z = { .next_in = (void *)(uintptr_t)data };
	unsigned char piece[1 << 15];
	int r;

	if (deflateInit2(&z, way->level, Z_DEFLATED, -15, 9, way->strategy) != Z_OK)
		return -ENOMEM;
	do {
		/* zlib's sizes have 32 bits. */
		uint32_t part = n < (1u << 30) ? n : 1u << 30;

		if (!z.avail_in) {
			z.avail_in = part;
			n -= part;
		}
		z.next_out = piece;
		z.avail_out = sizeof(piece);
		r = deflate(&z, n ? Z_NO_FLUSH : Z_FINISH);
		buf_add(out, piece, sizeof(piece) - z.avail_out);
	} while (r == Z_OK || r == Z_BUF_ERROR);
	deflateEnd(&z);
	return r == Z_STREAM_END ? 0 : -EIO;
}

static const struct way *best_way(const char *data, size_t n)
{
	const struct way *best = &thorough;
	size_t least = 0;

	for (size_t i = 0; n > LONG && i < ARRAY_LEN(ways); i++) {
		struct buf out = { 0 };

		if (!deflate_all(data + n / 2, PIECE, &ways[i], &out) &&
		    (!i || out.n * 100 <= least * ways[i].percent)) {
			best = &ways[i];
			least = out.n;
		}
		buf_done(&out);
	}
	return best;
}

int page_pack(const void *data, size_t n, struct buf *out)
{
	return deflate_all(data, n, best_way(data, n), out);
}

struct work {
	struct page_columns *c;
	atomic_size_t next;
	atomic_int failed;
};

static void *pack_some(void *context)
{
	struct work *w = context;
	size_t i;

	while ((i = atomic_fetch_add(&w->next, 1)) < w->c->list.n) {
		struct page_column *column = &w->c->list.v[i];
		int r = page_pack(column->raw.data, column->raw.n, &column->packed);

		if (r)
			atomic_store(&w->failed, r);
		column->raw_bytes = column->raw.n;
		buf_done(&column->raw);
	}
	return NULL;
}

int page_columns_pack(struct page_columns *c)
{
	struct work w = { .c = c };
	pthread_t threads[THREADS];
	size_t n = 0, all = 0;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (size_t i = 0; i < c->list.n; i++)
		all += c->list.v[i].raw.n;
	/* This thread works too; a thread that cannot be started is not needed. */
	while (n < THREADS && (long)n + 1 < cpus && all / WORTH_A_THREAD > n &&
	       !pthread_create(&threads[n], NULL, pack_some, &w))
		n++;
	pack_some(&w);
	while (n)
		pthread_join(threads[--n], NULL);
	return atomic_load(&w.failed);
}
