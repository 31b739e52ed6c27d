/*
 * sectionfile.h - unpacks a compressed section into a file and maps it, so that it is page cache and not
 * anonymous memory. It is written piece by piece: a full disk is an error here, where a mapping would raise
 * SIGBUS.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct err;

/* type is ch_type (1 zlib, 2 zstd). Appends to fd; the caller unmaps *ret (size bytes, read-only). */
int sectionfile_unpack(int fd, uint32_t type, const uint8_t *in, size_t in_n, uint64_t size, const uint8_t **ret,
		       struct err *err);
