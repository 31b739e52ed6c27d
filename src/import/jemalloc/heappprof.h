/*
 * heappprof.h - the heap dumps that nodes offer over HTTP: pprof's protobuf, usually gzipped, made of
 * jemalloc's by the node.
 *
 * Its bytes are estimates already. Addresses are those of the process, or (newer nodes) those of the mapped
 * files; names may be in it, for those who do not have the files. Only what a heap needs is read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct heapv2;

bool heappprof_probe(const char *data, size_t n);
/* heapv2_done() in any case. -EINVAL: something else, -EPROTO: no heap in it. */
int heappprof_parse(const char *data, size_t n, struct heapv2 *ret, struct err *err);
/* The same of what is unpacked already. */
int heappprof_read(const char *data, size_t n, struct heapv2 *ret, struct err *err);
