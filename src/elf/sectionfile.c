#include "elf/sectionfile.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/err.h"
#include "base/mem.h"

enum { PIECE = 256 << 10, PAGE = 4096 };

struct out {
	int fd;
	uint64_t offset, written, size;
	int error;
};

/* Returns false when the section is larger than it claimed, or the file cannot be written. */
static bool put(struct out *o, const uint8_t *data, size_t n)
{
	if (n > o->size - o->written)
		return false;
	while (n) {
		ssize_t w = pwrite(o->fd, data, n, o->offset + o->written);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			o->error = w ? errno : EIO;
			return false;
		}
		data += w;
		n -= w;
		o->written += w;
	}
	return true;
}

static bool stream_zlib(struct out *o, uint8_t *piece, const uint8_t *in, size_t in_n)
{
	z_stream z = { .next_in = (Bytef *)in };
	int r = Z_OK;

	if (inflateInit(&z) != Z_OK)
		return false;
	while (r == Z_OK) {
		z.avail_in = MIN(in_n - (z.next_in - in), 1u << 30); /* zlib counts in 32 bits */
		z.next_out = piece;
		z.avail_out = PIECE;
		r = inflate(&z, Z_NO_FLUSH);
		if ((r == Z_OK || r == Z_STREAM_END) && !put(o, piece, PIECE - z.avail_out))
			r = Z_DATA_ERROR;
	}
	inflateEnd(&z);
	return r == Z_STREAM_END;
}

static bool stream_zstd(struct out *o, uint8_t *piece, const uint8_t *in, size_t in_n)
{
	ZSTD_DStream *z = ZSTD_createDStream();
	ZSTD_inBuffer input = { in, in_n, 0 };
	bool ok = z != NULL;

	/* A frame's window is held in memory: honest files need no more than zstd --long=27. */
	if (ok)
		ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, 27);
	while (ok && o->written < o->size) {
		ZSTD_outBuffer output = { piece, PIECE, 0 };
		size_t before = input.pos, r = ZSTD_decompressStream(z, &output, &input);

		ok = !ZSTD_isError(r) && (output.pos || input.pos > before) && put(o, piece, output.pos);
	}
	ZSTD_freeDStream(z);
	return ok;
}

int sectionfile_unpack(int fd, uint32_t type, const uint8_t *in, size_t in_n, uint64_t size, const uint8_t **ret,
		       struct err *err)
{
	_cleanup_free_ uint8_t *piece = mem_resize(NULL, PIECE, 1);
	struct out o = { .fd = fd, .size = size };
	off_t end = lseek(fd, 0, SEEK_END);
	bool ok = false;
	void *mapped;

	if (end < 0)
		return err_errno(err, errno, "cannot append to the scratch file");
	o.offset = ((uint64_t)end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	if (type == ELFCOMPRESS_ZLIB)
		ok = stream_zlib(&o, piece, in, in_n);
	else if (type == 2 /* ELFCOMPRESS_ZSTD, newer than Debian 12's elf.h */)
		ok = stream_zstd(&o, piece, in, in_n);
	if (o.error)
		return err_errno(err, o.error, "cannot write to the scratch file");
	if (!ok || o.written != size)
		return err_set(err, EBADMSG, "it does not decompress");
	mapped = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, o.offset);
	if (mapped == MAP_FAILED)
		return err_errno(err, errno, "cannot map the scratch file");
	*ret = mapped;
	return 0;
}
