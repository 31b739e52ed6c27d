/*
 * heappprof.h - the heap dumps that nodes offer over HTTP: pprof's protobuf, usually gzipped, which the
 * node makes from jemalloc's.
 *
 * Its bytes are estimates already. Addresses are those of the process, or (newer nodes) those of the mapped
 * files; it may contain names, for readers without the files. Only the fields that a heap needs are read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct heapv2;

bool heappprof_probe(const char *data, size_t n);
/* heapv2_done() in any case. -EINVAL: something else, -EPROTO: no heap in it. */
int heappprof_parse(const char *data, size_t n, struct heapv2 *ret, struct err *err);
/* The same for data that is already decompressed. */
int heappprof_read(const char *data, size_t n, struct heapv2 *ret, struct err *err);
