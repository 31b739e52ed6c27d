/*
 * snappy.h - bytes in Snappy's block format, which Prometheus demands of a remote write. Only packs.
 */
#pragma once

#include <stddef.h>

struct buf;

/* Appends to out; n is below 4 GiB, as the format has it. The same bytes give the same bytes. */
void snappy_pack(struct buf *out, const void *data, size_t n);
