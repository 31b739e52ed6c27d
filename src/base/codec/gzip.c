#include "base/codec/gzip.h"

#include <limits.h>
#include <stdint.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/mem.h"

enum { GZIP = 16, MEMORY = 8 };

/* zlib counts what is left in 32 bits. */
void gzip_pack(struct buf *out, const void *data, size_t n)
{
	z_stream z = { .next_in = (Bytef *)data };
	char piece[32 << 10];
	int r = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP + MAX_WBITS, MEMORY, Z_DEFAULT_STRATEGY);

	if (r != Z_OK)
		mem_exhausted();
	do {
		size_t part = MIN(n, (size_t)INT_MAX);

		if (!z.avail_in) {
			z.avail_in = part;
			n -= part;
		}
		z.next_out = (Bytef *)piece;
		z.avail_out = sizeof(piece);
		r = deflate(&z, n ? Z_NO_FLUSH : Z_FINISH);
		buf_add(out, piece, sizeof(piece) - z.avail_out);
	} while (r != Z_STREAM_END);
	deflateEnd(&z);
}
