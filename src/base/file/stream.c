#include "base/file/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/unpack.h"
#include "base/mem.h"

enum { PACKED_BYTES = 256 << 10, MAGIC_BYTES = 6, FIRST_BYTES = 1 << 16 };

struct stream {
	int fd;
	bool in_memory;
	const char *memory;
	size_t memory_n;
	uint64_t size, written_ns; /* of a file; 0: it is none */
	bool file;

	bool begun;  /* the first bytes were looked at */
	bool ended;  /* the source has no more */
	bool over;   /* so has what comes out */
	const char *format;
	struct unpack *unpack;
	char *packed; /* bytes of the source that were read and not used */
	size_t packed_from, packed_n;

	char *peeked;
	size_t peeked_from, peeked_n;
	uint64_t offset;
	int copy; /* for stream_seekable() */
};

static struct stream *make(void)
{
	struct stream *s = mem_alloc(sizeof(*s));

	s->fd = s->copy = -1;
	return s;
}

struct stream *stream_open(int fd)
{
	struct stream *s = make();
	struct stat st;

	s->fd = fd;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		s->file = true;
		s->size = st.st_size;
		if (st.st_mtim.tv_sec > 0)
			s->written_ns = st.st_mtim.tv_sec * 1000000000ULL + st.st_mtim.tv_nsec;
	}
	return s;
}

struct stream *stream_of(const void *data, size_t n)
{
	struct stream *s = make();

	s->in_memory = true;
	s->memory = data;
	s->memory_n = s->size = n;
	return s;
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	unpack_free(s->unpack);
	fd_close(&s->copy);
	free(s->packed);
	free(s->peeked);
	free(s);
}

void stream_freep(struct stream **s)
{
	stream_free(*s);
}

const char *stream_packed(const struct stream *s)
{
	return s->format;
}

uint64_t stream_offset(const struct stream *s)
{
	return s->offset;
}

uint64_t stream_written_ns(const struct stream *s)
{
	return s->written_ns;
}

uint64_t stream_size_hint(const struct stream *s)
{
	enum { USUAL_RATIO = 8 };

	return s->format ? MIN(s->size, UINT64_MAX / USUAL_RATIO) * USUAL_RATIO : s->size;
}

/* Bytes of the source. 0: its end. */
static ssize_t take(struct stream *s, void *data, size_t n, struct err *err)
{
	ssize_t got;

	if (s->in_memory) {
		got = MIN(n, s->memory_n);
		memcpy(data, s->memory, got);
		s->memory += got;
		s->memory_n -= got;
	} else {
		do
			got = read(s->fd, data, n);
		while (got < 0 && errno == EINTR);
	}
	if (got < 0)
		return err_errno(err, errno, "cannot read it");
	if (!got && n)
		s->ended = true;
	return got;
}

/* Looks whether the source is packed. */
static int begin(struct stream *s, struct err *err)
{
	if (!s->packed)
		s->packed = mem_resize(NULL, PACKED_BYTES, 1);
	while (s->packed_n < MAGIC_BYTES && !s->ended) {
		ssize_t n = take(s, s->packed + s->packed_n, MAGIC_BYTES - s->packed_n, err);

		if (n < 0)
			return n;
		s->packed_n += n;
	}
	s->format = unpack_probe(s->packed, s->packed_n);
	s->unpack = s->format ? unpack_new(s->format, err) : NULL;
	if (s->format && !s->unpack)
		return -ENOMEM;
	s->begun = true;
	return 0;
}

/* Fills the buffer of packed bytes up. */
static int refill(struct stream *s, struct err *err)
{
	ssize_t n;

	memmove(s->packed, s->packed + s->packed_from, s->packed_n);
	s->packed_from = 0;
	n = take(s, s->packed + s->packed_n, PACKED_BYTES - s->packed_n, err);
	if (n < 0)
		return n;
	s->packed_n += n;
	return 0;
}

static ssize_t unpack(struct stream *s, void *data, size_t n, struct err *err)
{
	while (!s->over) {
		const void *in;
		size_t left;
		long got;
		int r;

		if (s->packed_n < MAGIC_BYTES && !s->ended && (r = refill(s, err)))
			return r;
		if (s->packed_n < MAGIC_BYTES && !s->ended)
			continue;
		in = s->packed + s->packed_from;
		left = s->packed_n;
		got = unpack_some(s->unpack, &in, &left, s->ended, data, n, &s->over, err);
		if (got < 0) {
			err_prefix(err, "after %llu bytes", (unsigned long long)(s->offset + s->peeked_n));
			return got;
		}
		s->packed_from = (const char *)in - s->packed;
		s->packed_n = left;
		if (got)
			return got;
	}
	return 0;
}

/* The next bytes that come out, past those that were peeked at. */
static ssize_t next(struct stream *s, void *data, size_t n, struct err *err)
{
	int r = s->begun ? 0 : begin(s, err);

	if (r)
		return r;
	if (!n)
		return 0;
	if (s->format)
		return unpack(s, data, n, err);
	if (s->packed_n) {
		n = MIN(n, s->packed_n);
		memcpy(data, s->packed + s->packed_from, n);
		s->packed_from += n;
		s->packed_n -= n;
		return n;
	}
	return s->ended ? 0 : take(s, data, n, err);
}

ssize_t stream_read(struct stream *s, void *data, size_t n, struct err *err)
{
	ssize_t got;

	if (s->peeked_n) {
		got = MIN(n, s->peeked_n);
		memcpy(data, s->peeked + s->peeked_from, got);
		s->peeked_from += got;
		s->peeked_n -= got;
	} else {
		got = next(s, data, n, err);
	}
	if (got > 0)
		s->offset += got;
	return got;
}

ssize_t stream_peek(struct stream *s, const char **ret, struct err *err)
{
	if (!s->peeked)
		s->peeked = mem_resize(NULL, STREAM_PEEK_BYTES, 1);
	memmove(s->peeked, s->peeked + s->peeked_from, s->peeked_n);
	s->peeked_from = 0;
	while (s->peeked_n < STREAM_PEEK_BYTES) {
		ssize_t n = next(s, s->peeked + s->peeked_n, STREAM_PEEK_BYTES - s->peeked_n, err);

		if (n < 0)
			return n;
		if (!n)
			break;
		s->peeked_n += n;
	}
	*ret = s->peeked;
	return s->peeked_n;
}

static int too_large(const struct stream *s, size_t limit, struct err *err)
{
	return err_set(err, EFBIG, "it has more than %zu MB%s%s: a file of this kind is read at once", limit >> 20,
		       s->format ? " once it is decompressed from " : "", s->format ? s->format : "");
}

/* A larger buffer, of at most limit + 2 bytes: one says that there are too many, one is for the NUL. Hundreds of MB: it may
 * fail. */
static int grow(char **data, size_t *capacity, size_t limit, struct err *err)
{
	size_t most = MIN(limit, SIZE_MAX - 2) + 2, larger = *capacity > most / 2 ? most : *capacity * 2;
	char *moved = realloc(*data, larger);

	if (!moved)
		return err_set(err, ENOMEM, "there is no memory for more than %zu MB of it", *capacity >> 20);
	*data = moved;
	*capacity = larger;
	return 0;
}

int stream_whole(struct stream *s, size_t limit, char **ret, size_t *ret_n, struct err *err)
{
	size_t capacity = FIRST_BYTES / 2, n = 0;
	char *data = NULL;
	ssize_t got = 1;
	int r = 0;

	if (s->file && s->size < limit)
		capacity = MAX(capacity, (size_t)s->size / 2 + 2);
	while (!r && got > 0 && n <= limit) {
		if (!data || n + 1 == capacity)
			r = grow(&data, &capacity, limit, err);
		if (r)
			break;
		got = stream_read(s, data + n, capacity - n - 1, err);
		if (got < 0)
			r = got;
		else
			n += got;
	}
	if (!r && n > limit)
		r = too_large(s, limit, err);
	if (r) {
		free(data);
		return r;
	}
	data[n] = 0;
	*ret = data;
	*ret_n = n;
	return 0;
}

/* Copies the rest to memory. */
static int copy_rest(struct stream *s, size_t limit, struct err *err)
{
	_cleanup_free_ char *piece = mem_resize(NULL, PACKED_BYTES, 1);
	ssize_t n;
	int r;

	while ((n = stream_read(s, piece, PACKED_BYTES, err)) > 0) {
		if (s->offset > limit)
			return too_large(s, limit, err);
		r = fd_write_all(s->copy, piece, n);
		if (r)
			return err_errno(err, -r, "cannot keep it in memory");
	}
	return n;
}

int stream_seekable(struct stream *s, size_t limit, int *ret_fd, struct err *err)
{
	int r = s->begun ? 0 : begin(s, err);

	if (r)
		return r;
	*ret_fd = s->file && !s->format ? s->fd : s->copy;
	if (*ret_fd >= 0)
		return 0;
	if (s->offset)
		return err_set(err, ESPIPE, "it was read already");
	s->copy = memfd_create("gasflame input", MFD_CLOEXEC);
	if (s->copy < 0)
		return err_errno(err, errno, "cannot keep it in memory");
	r = copy_rest(s, limit, err);
	if (r)
		fd_close(&s->copy);
	*ret_fd = s->copy;
	return r;
}
