/*
 * gzip.h - bytes as a member of gzip, without a name or a time: the same bytes give the same file.
 */
#pragma once

#include <stddef.h>

struct buf;

/* Appends to out. */
void gzip_pack(struct buf *out, const void *data, size_t n);
