/*
 * unpack.h - decompresses gzip, zstd and xz, a piece at a time. For stream.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct unpack;

/* The name of the format in which packed bytes begin like these; NULL: they are not packed. */
const char *unpack_probe(const void *data, size_t n);
/* NULL and a sentence: no memory for it. */
struct unpack *unpack_new(const char *format, struct err *err);
void unpack_free(struct unpack *u); /* NULL is fine */

/*
 * Takes packed bytes from *in and puts plain ones to out: both may be only a part. ended: no packed bytes come after these.
 * in_n is at least 6 unless ended, out_n at least 1. Zeros between members and after the last one are passed over; other
 * bytes after the last one are ignored after gzip, as its own tool does, and damage after the others.
 * Returns the plain bytes; 0 where more packed bytes are needed, or at the end, if *ret_end. -EINVAL: damaged, -EPIPE: cut,
 * -ENOMEM: it wants more memory than 128 MB.
 */
long unpack_some(struct unpack *u, const void **in, size_t *in_n, bool ended, void *out, size_t out_n, bool *ret_end,
		 struct err *err);
