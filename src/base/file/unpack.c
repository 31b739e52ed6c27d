#include "base/file/unpack.h"

#include <errno.h>
#include <limits.h>
#include <lzma.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/err.h"
#include "base/mem.h"

enum {
	WINDOW_LOG = 27,               /* zstd's own limit for a command line without --long */
	XZ_MEMORY_BYTES = 128 << 20,   /* xz -9 wants 65 MB */
	MAGIC_BYTES = 6,               /* the longest magic */
};

struct unpack;

struct method {
	const char *name;
	unsigned char magic[6];
	size_t magic_n;
	bool garbage; /* its own tool ignores what follows the last member and is none */
	int (*begin)(struct unpack *u);
	/* As unpack_some(). *ret_end: a member has ended, another may follow. */
	long (*some)(struct unpack *u, const void **in, size_t *in_n, void *out, size_t out_n, bool *ret_end);
	void (*end)(struct unpack *u);
};

struct unpack {
	const struct method *method;
	bool between; /* the last member has ended */
	z_stream gzip;
	ZSTD_DStream *zstd;
	lzma_stream xz;
};

/* --- gzip --- */

static int gzip_begin(struct unpack *u)
{
	return inflateInit2(&u->gzip, 16 + MAX_WBITS) == Z_OK ? 0 : -ENOMEM;
}

static long gzip_some(struct unpack *u, const void **in, size_t *in_n, void *out, size_t out_n, bool *ret_end)
{
	size_t given = MIN(*in_n, (size_t)UINT_MAX / 2), room = MIN(out_n, (size_t)UINT_MAX / 2);
	int r;

	if (u->between && inflateReset(&u->gzip) != Z_OK)
		return -EINVAL;
	u->gzip.next_in = (Bytef *)*in;
	u->gzip.avail_in = given;
	u->gzip.next_out = out;
	u->gzip.avail_out = room;
	r = inflate(&u->gzip, Z_NO_FLUSH);
	*in = u->gzip.next_in;
	*in_n -= given - u->gzip.avail_in;
	*ret_end = r == Z_STREAM_END;
	if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
		return r == Z_MEM_ERROR ? -ENOMEM : -EINVAL;
	return room - u->gzip.avail_out;
}

static void gzip_end(struct unpack *u)
{
	inflateEnd(&u->gzip);
}

/* --- zstd --- */

static int zstd_begin(struct unpack *u)
{
	u->zstd = ZSTD_createDStream();
	if (!u->zstd)
		return -ENOMEM;
	ZSTD_DCtx_setParameter(u->zstd, ZSTD_d_windowLogMax, WINDOW_LOG);
	return 0;
}

static long zstd_some(struct unpack *u, const void **in, size_t *in_n, void *out, size_t out_n, bool *ret_end)
{
	ZSTD_inBuffer from = { *in, *in_n, 0 };
	ZSTD_outBuffer to = { out, out_n, 0 };
	size_t r = ZSTD_decompressStream(u->zstd, &to, &from);

	*in = (const char *)*in + from.pos;
	*in_n -= from.pos;
	*ret_end = !r;
	if (!ZSTD_isError(r))
		return to.pos;
	return ZSTD_getErrorCode(r) == ZSTD_error_frameParameter_windowTooLarge ? -ENOMEM : -EINVAL;
}

static void zstd_end(struct unpack *u)
{
	ZSTD_freeDStream(u->zstd);
}

/* --- xz --- */

static int xz_begin(struct unpack *u)
{
	u->xz = (lzma_stream)LZMA_STREAM_INIT;
	return lzma_stream_decoder(&u->xz, XZ_MEMORY_BYTES, 0) == LZMA_OK ? 0 : -ENOMEM;
}

static long xz_some(struct unpack *u, const void **in, size_t *in_n, void *out, size_t out_n, bool *ret_end)
{
	lzma_ret r;

	if (u->between) {
		lzma_end(&u->xz);
		if (xz_begin(u))
			return -ENOMEM;
	}
	u->xz.next_in = *in;
	u->xz.avail_in = *in_n;
	u->xz.next_out = out;
	u->xz.avail_out = out_n;
	r = lzma_code(&u->xz, LZMA_RUN);
	*in = u->xz.next_in;
	*in_n = u->xz.avail_in;
	*ret_end = r == LZMA_STREAM_END;
	if (r != LZMA_OK && r != LZMA_STREAM_END && r != LZMA_BUF_ERROR)
		return r == LZMA_MEM_ERROR || r == LZMA_MEMLIMIT_ERROR ? -ENOMEM : -EINVAL;
	return out_n - u->xz.avail_out;
}

static void xz_end(struct unpack *u)
{
	lzma_end(&u->xz);
}

enum { GZIP, ZSTD, XZ };

static const struct method methods[] = {
	[GZIP] = { "gzip", { 0x1f, 0x8b, 0x08 }, 3, true, gzip_begin, gzip_some, gzip_end },
	[ZSTD] = { "zstd", { 0x28, 0xb5, 0x2f, 0xfd }, 4, false, zstd_begin, zstd_some, zstd_end },
	[XZ] = { "xz", { 0xfd, '7', 'z', 'X', 'Z', 0 }, 6, false, xz_begin, xz_some, xz_end },
};

/* A frame that zstd skips: pzstd begins with one. */
static bool skipped_frame(const uint8_t *data, size_t n)
{
	return n >= 4 && (data[0] & 0xf0) == 0x50 && data[1] == 0x2a && data[2] == 0x4d && data[3] == 0x18;
}

const char *unpack_probe(const void *data, size_t n)
{
	if (skipped_frame(data, n))
		return methods[ZSTD].name;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (n >= methods[i].magic_n && !memcmp(data, methods[i].magic, methods[i].magic_n))
			return methods[i].name;
	return NULL;
}

struct unpack *unpack_new(const char *format, struct err *err)
{
	struct unpack *u = mem_alloc(sizeof(*u));

	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (!strcmp(format, methods[i].name))
			u->method = &methods[i];
	if (!u->method->begin(u))
		return u;
	free(u);
	err_set(err, ENOMEM, "there is no memory to decompress it");
	return NULL;
}

void unpack_free(struct unpack *u)
{
	if (!u)
		return;
	u->method->end(u);
	free(u);
}

static int cut(const struct unpack *u, struct err *err)
{
	return err_set(err, EPIPE, "it is cut: the %s data have no end", u->method->name);
}

/*
 * What comes after a member: zeros, which tools leave between members and after the last one, and then another member or
 * the end. 1: a member; 0: no more, or not known yet, if *ret_end is false.
 */
static int between(struct unpack *u, const void **in, size_t *in_n, bool ended, bool *ret_end, struct err *err)
{
	const uint8_t *data = *in;
	size_t n = *in_n;

	for (; n && !*data; n--)
		data++;
	*in = data;
	*in_n = n;
	if (n < MAGIC_BYTES && !ended)
		return 0;
	if (unpack_probe(data, n) == u->method->name)
		return 1;
	if (n && n < u->method->magic_n && !memcmp(data, u->method->magic, n))
		return cut(u, err);
	if (n && !u->method->garbage)
		return err_set(err, EINVAL, "after its %s data come bytes that are none", u->method->name);
	*in_n = 0;
	*ret_end = true;
	return 0;
}

long unpack_some(struct unpack *u, const void **in, size_t *in_n, bool ended, void *out, size_t out_n, bool *ret_end,
		 struct err *err)
{
	size_t given;
	bool end = false;
	long n;
	int r;

	*ret_end = false;
	if (u->between && (r = between(u, in, in_n, ended, ret_end, err)) <= 0)
		return r;
	given = *in_n;
	n = u->method->some(u, in, in_n, out, out_n, &end);
	if (n == -ENOMEM)
		return err_set(err, ENOMEM, "its %s data want more than 128 MB to be decompressed", u->method->name);
	if (n < 0)
		return err_set(err, EINVAL, "its %s data are damaged", u->method->name);
	u->between = end;
	/* There may be plain bytes to come where no packed ones are left: only who does nothing at all is at the end. */
	if (!n && !end && *in_n == given)
		return ended ? cut(u, err) : err_set(err, EINVAL, "its %s data are damaged", u->method->name);
	return n;
}
