/*
 * jit.h - symbols of JIT-compiled code: perf-PID.map and jitdump files.
 *
 * The target writes both, so the parsers take any input and run in the unprivileged
 * child: entries that do not parse are skipped, and only entries at one of the
 * wanted addresses are kept, so that memory grows with the addresses and not with
 * the file. Where ranges overlap (code that was thrown away and its place used
 * again) the last one wins: by line in a map, by time in a dump.
 *
 *	j = jit_new(addresses, n);
 *	jit_parse_map(j, text, size);
 *	jit_resolve(j, got, context);
 *	jit_free(j);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "elf/symbols.h"

struct err;
struct jit;

/* addresses ascend and outlive the jit; so do the bytes that are parsed. */
struct jit *jit_new(const uint64_t *addresses, size_t n);
void jit_free(struct jit *j);
/* Parses lines of "START SIZE name", hexadecimal. Returns how many lines did not parse. */
size_t jit_parse_map(struct jit *j, const char *text, size_t n);
/* Parses a dump; a truncated one gives the entries that it has. -EINVAL if it is no jitdump of this
 * machine. */
int jit_parse_dump(struct jit *j, const void *data, size_t n, struct err *err);
size_t jit_count(const struct jit *j); /* functions that were kept */
/* Calls got once for each address, with no or one call. */
void jit_resolve(const struct jit *j, symbols_got_fn *got, void *context);
/* Calls got once for each address where code of a dump was replaced by code of another name, with its names in order of
 * time: line is when each was written, in ms after base_ns (CLOCK_MONOTONIC; 0 = before). None of a dump whose times are
 * of another clock, and none if there are too many. */
void jit_history(const struct jit *j, uint64_t base_ns, symbols_got_fn *got, void *context);
