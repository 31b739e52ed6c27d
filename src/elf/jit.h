/*
 * jit.h - names of code that a process made itself: perf-PID.map and jitdump files.
 *
 * Both are text or bytes of the target's own making, so the parsers take any
 * input and run in the unprivileged child: what does not parse is skipped, and
 * only what lies at one of the addresses asked for is kept, so that memory grows
 * with them and not with the file. Where ranges overlap (code that was thrown
 * away and its place used again) the last one wins: by line in a map, by time in
 * a dump.
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
/* Lines of "START SIZE name", hexadecimal. How many lines did not parse. */
size_t jit_parse_map(struct jit *j, const char *text, size_t n);
/* A dump that is cut off gives what it has. -EINVAL if it is no jitdump of this machine. */
int jit_parse_dump(struct jit *j, const void *data, size_t n, struct err *err);
size_t jit_count(const struct jit *j); /* functions that were kept */
/* got is called once for each address, with no or one call. */
void jit_resolve(const struct jit *j, symbols_got_fn *got, void *context);
