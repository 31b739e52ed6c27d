/*
 * stream.h - the bytes of a file, a pipe or memory, decompressed where they are gzip, zstd or xz.
 *
 * What is compressed is seen by its first bytes, not by a name. Members that follow each other are one text, as gzip, zstd and
 * xz join them. Memory is bounded: a window of 128 MB at most, which a hostile file may ask for. What comes out is not: a reader
 * that keeps it has a limit of its own (stream_whole()).
 *
 *	struct stream *s = stream_open(fd);
 *	while ((n = stream_read(s, piece, sizeof(piece), &err)) > 0)
 *		...
 *	stream_free(s);
 *
 * Sentences of errors do not name the file: the caller, who opened it, puts its name before them. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct stream;

enum { STREAM_PEEK_BYTES = 64 << 10 };

/* fd is the caller's, and outlives the stream. */
struct stream *stream_open(int fd);
/* The same for bytes in memory, which outlive the stream. */
struct stream *stream_of(const void *data, size_t n);
void stream_free(struct stream *s); /* NULL is fine */
void stream_freep(struct stream **s);

/* At least one byte unless the end is reached: 0. Negative errno with a sentence: it cannot be read, is damaged or cut. */
ssize_t stream_read(struct stream *s, void *data, size_t n, struct err *err);
/* The next bytes without taking them: at most STREAM_PEEK_BYTES, fewer only where the end comes first. *ret lives until the
 * next call. */
ssize_t stream_peek(struct stream *s, const char **ret, struct err *err);
/* Where the next byte is in what comes out: for messages. */
uint64_t stream_offset(const struct stream *s);
/* "gzip", "zstd", "xz"; NULL: the bytes are as they were. After the first read or peek. */
const char *stream_packed(const struct stream *s);
/* About how many bytes will come; 0: not known. */
uint64_t stream_size_hint(const struct stream *s);
/* When the file was written, ns since 1970; 0: it is none. */
uint64_t stream_written_ns(const struct stream *s);

/* All bytes from here on, with a NUL after them. More than limit: -EFBIG with a sentence. Caller frees *ret. */
int stream_whole(struct stream *s, size_t limit, char **ret, size_t *ret_n, struct err *err);
/* For readers that seek: a descriptor with the whole input from its beginning, whether or not some was read. That of the file
 * itself where it is one and is not packed; else memory with a copy of at most limit bytes. Belongs to the stream;
 * its position is anywhere: pread(). */
int stream_seekable(struct stream *s, size_t limit, int *ret_fd, struct err *err);
