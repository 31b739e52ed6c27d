#include "import/perf/perfdatareader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/stream.h"
#include "base/mem.h"

enum { CHUNK_BYTES = 256 << 10, RECORD_BYTES = 1 << 16, RECORD_COMPRESSED = 81, RECORD_COMPRESSED2 = 83 };

static struct perfdatachunk *make_chunk(void)
{
	struct perfdatachunk *c = mem_resize(NULL, sizeof(*c) + CHUNK_BYTES, 1);

	*c = (struct perfdatachunk){ .users = 1, .capacity = CHUNK_BYTES };
	return c;
}

void perfdatachunk_keep(struct perfdatachunk *c)
{
	c->users++;
}

void perfdatachunk_free(struct perfdatachunk *c)
{
	if (c && !--c->users)
		free(c);
}

void perfdatareader_init_fd(struct perfdatareader *r, int fd, uint64_t offset, uint64_t end)
{
	*r = (struct perfdatareader){ .fd = fd, .pos = offset, .end = end, .offset = offset };
}

void perfdatareader_init_stream(struct perfdatareader *r, struct stream *stream)
{
	*r = (struct perfdatareader){ .fd = -1, .stream = stream, .offset = stream_offset(stream) };
}

void perfdatareader_done(struct perfdatareader *r)
{
	perfdatachunk_free(r->plain.chunk);
	perfdatachunk_free(r->unpacked.chunk);
	perfdatachunk_free(r->packed_chunk);
	ZSTD_freeDCtx(r->zstd);
	*r = (struct perfdatareader){ .fd = -1 };
}

/* Makes room for a record after what is there. */
static void make_room(struct perfdatawindow *w)
{
	struct perfdatachunk *old = w->chunk;

	if (old && old->capacity - w->from - w->n >= RECORD_BYTES)
		return;
	w->chunk = make_chunk();
	if (w->n)
		memcpy(w->chunk->data, old->data + w->from, w->n);
	w->from = 0;
	perfdatachunk_free(old);
}

/* More bytes of the input; 0: its end. */
static ssize_t fill(struct perfdatareader *r, struct err *err)
{
	struct perfdatawindow *w = &r->plain;
	size_t room;
	uint8_t *to;
	ssize_t n;

	make_room(w);
	to = w->chunk->data + w->from + w->n;
	room = w->chunk->capacity - w->from - w->n;
	if (r->stream) {
		n = stream_read(r->stream, to, room, err);
	} else {
		do
			n = pread(r->fd, to, MIN(room, r->end - r->pos), r->pos);
		while (n < 0 && errno == EINTR);
		if (n < 0)
			return err_errno(err, errno, "byte %llu: cannot read it", (unsigned long long)r->pos);
		r->pos += n;
	}
	if (n > 0)
		w->n += n;
	return n;
}

/* 1: a whole record is there, 0: not yet. */
static int look(const struct perfdatawindow *w, uint64_t offset, const struct perfdataheader **ret, struct err *err)
{
	const struct perfdataheader *h;

	if (w->n < sizeof(*h))
		return 0;
	h = (const void *)(w->chunk->data + w->from);
	if (h->size < sizeof(*h))
		return err_set(err, EINVAL, "byte %llu: a record of %u bytes is too short to be one", (unsigned long long)offset,
			       h->size);
	*ret = h;
	return h->size <= w->n;
}

static void take(struct perfdatawindow *w, size_t n)
{
	w->from += n;
	w->n -= n;
}

/* A record that is a piece of the packed stream. */
static void begin_packed(struct perfdatareader *r, const struct perfdataheader *h)
{
	size_t head = sizeof(*h), n = h->size - head;
	uint64_t told;

	perfdatachunk_free(r->packed_chunk);
	r->packed_chunk = r->plain.chunk;
	perfdatachunk_keep(r->packed_chunk);
	if (h->type == RECORD_COMPRESSED2) {
		/* The kind with padding says how many bytes are packed ones. */
		if (n >= 8) {
			memcpy(&told, (const uint8_t *)h + head, 8);
			head += 8;
			n = MIN(n - 8, told);
		} else {
			n = 0;
		}
	}
	r->packed = (const uint8_t *)h + head;
	r->packed_n = n;
	r->packed_offset = r->offset;
}

static int unpack(struct perfdatareader *r, struct err *err)
{
	struct perfdatawindow *w = &r->unpacked;
	ZSTD_inBuffer in = { r->packed, r->packed_n, 0 };
	ZSTD_outBuffer out;
	size_t result;

	if (!r->zstd && !(r->zstd = ZSTD_createDCtx()))
		mem_exhausted();
	make_room(w);
	out = (ZSTD_outBuffer){ w->chunk->data + w->from + w->n, w->chunk->capacity - w->from - w->n, 0 };
	result = ZSTD_decompressStream(r->zstd, &out, &in);
	if (ZSTD_isError(result))
		return err_set(err, EINVAL, "byte %llu: a compressed record is damaged: %s", (unsigned long long)r->packed_offset,
			       ZSTD_getErrorName(result));
	w->n += out.pos;
	r->packed += in.pos;
	r->packed_n -= in.pos;
	r->held = out.pos == out.size;
	if (!out.pos && !in.pos && r->packed_n)
		return err_set(err, EINVAL, "byte %llu: a compressed record leads nowhere", (unsigned long long)r->packed_offset);
	return 0;
}

int perfdatareader_next(struct perfdatareader *r, struct perfdatarecord *ret, struct err *err)
{
	int n;

	for (;;) {
		n = look(&r->unpacked, r->packed_offset, &ret->h, err);
		if (n > 0) {
			ret->chunk = r->unpacked.chunk;
			ret->offset = r->packed_offset;
			take(&r->unpacked, ret->h->size);
		}
		if (n)
			return n;
		if (r->packed_n || r->held) {
			n = unpack(r, err);
			if (n < 0)
				return n;
			continue;
		}
		n = look(&r->plain, r->offset, &ret->h, err);
		if (n < 0)
			return n;
		if (!n) {
			n = fill(r, err);
			if (n > 0)
				continue;
			r->cut |= !n && (r->plain.n || r->unpacked.n);
			return n;
		}
		ret->chunk = r->plain.chunk;
		ret->offset = r->offset;
		if (ret->h->type == RECORD_COMPRESSED || ret->h->type == RECORD_COMPRESSED2)
			begin_packed(r, ret->h);
		take(&r->plain, ret->h->size);
		r->offset += ret->h->size;
		if (ret->h->type != RECORD_COMPRESSED && ret->h->type != RECORD_COMPRESSED2)
			return 1;
	}
}

int perfdatareader_after(struct perfdatareader *r, uint64_t n, struct buf *ret, struct err *err)
{
	while (n) {
		size_t now = MIN(n, r->plain.n);
		ssize_t got;

		if (ret && now)
			buf_add(ret, r->plain.chunk->data + r->plain.from, now);
		take(&r->plain, now);
		r->offset += now;
		n -= now;
		/* A file need not be read for what is skipped. */
		if (n && !ret && !r->stream) {
			now = MIN(n, r->end - r->pos);
			r->pos += now;
			r->offset += now;
			n -= now;
		}
		if (!n)
			break;
		got = fill(r, err);
		if (got < 0)
			return got;
		if (!got) {
			r->cut = true;
			break;
		}
	}
	return 0;
}
