/*
 * perfdatareader.h - the records of perf.data, one after the other, those in COMPRESSED records among them.
 *
 * Records lie in chunks of some 100 KB; who keeps a record keeps its chunk. perf compresses all as one stream of zstd, cut into
 * records where its buffer was full: also in the middle of what it packed.
 *
 *	perfdatareader_init_fd(&r, fd, offset, end);
 *	while ((n = perfdatareader_next(&r, &record, &err)) > 0)
 *		...
 *	perfdatareader_done(&r);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/perf/perfdataattr.h"

struct buf;
struct err;
struct stream;

struct perfdatachunk {
	size_t users, capacity;
	uint8_t data[];
};
void perfdatachunk_keep(struct perfdatachunk *c);
void perfdatachunk_free(struct perfdatachunk *c); /* one user less; NULL is fine */

struct perfdatarecord {
	const struct perfdataheader *h; /* whole; aligned or not */
	struct perfdatachunk *chunk;       /* that it lies in: until the next call, or as long as it is kept */
	uint64_t offset;                   /* in the input, for messages; of a packed one: of what packs it */
};

struct perfdatawindow {
	struct perfdatachunk *chunk;
	size_t from, n; /* bytes that were not taken yet */
};

struct perfdatareader {
	/* Private. */
	int fd;
	uint64_t pos, end;     /* of fd */
	struct stream *stream; /* else */
	uint64_t offset;       /* in the input, of the first byte in plain */
	struct perfdatawindow plain, unpacked;
	struct ZSTD_DCtx_s *zstd;
	struct perfdatachunk *packed_chunk;
	const uint8_t *packed;
	size_t packed_n;
	uint64_t packed_offset;
	bool held;             /* zstd has bytes for which there was no room */
	bool cut; /* out: the input ended in the middle of a record */
};

void perfdatareader_init_fd(struct perfdatareader *r, int fd, uint64_t offset, uint64_t end);
void perfdatareader_init_stream(struct perfdatareader *r, struct stream *stream);
void perfdatareader_done(struct perfdatareader *r);

/* 1, 0 at the end, or a negative errno. */
int perfdatareader_next(struct perfdatareader *r, struct perfdatarecord *ret, struct err *err);
/* The bytes after the record that came last; ret may be NULL to skip them. Fewer where the input ends: cut is set. */
int perfdatareader_after(struct perfdatareader *r, uint64_t n, struct buf *ret, struct err *err);
