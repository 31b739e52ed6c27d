/*
 * packedsymbols.h - the symbols of a set of addresses, packed into one run of bytes.
 *
 * The unprivileged child fills it, the parent checks it, the cache stores it:
 *
 *	header | addresses[count] | spans[count] | calls[call_count] | strings
 *
 * span i names the calls of address i, innermost first; a call holds offsets into
 * strings, where each string ends in a NUL. Native byte order: it never leaves the
 * machine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct buf;
struct symbols_call;

enum { PACKEDSYMBOLS_MAX_DEPTH = 1024 }; /* inlined calls of one address; deeper ones are dropped */

struct packedsymbols_header {
	uint32_t count, call_count, string_bytes, zero;
};
struct packedsymbols_span {
	uint32_t first, count;
};
struct packedsymbols_call {
	uint32_t linkage, name, file, line;
};
_Static_assert(sizeof(struct packedsymbols_header) == 16 && sizeof(struct packedsymbols_call) == 16, "no padding");

/* A checked view of packed bytes, which the caller keeps. */
struct packedsymbols {
	const uint64_t *addresses;
	const struct packedsymbols_span *spans;
	const struct packedsymbols_call *calls;
	const char *strings;
	uint32_t count, call_count, string_bytes;
};

/* Checks every count and offset. data is 8-byte aligned and must not change afterwards. */
bool packedsymbols_open(const void *data, size_t n, struct packedsymbols *ret);
/* Finds the index of an address; addresses must be sorted (the cache's are). False if it is not there. */
bool packedsymbols_find(const struct packedsymbols *names, uint64_t address, uint32_t *ret_index);
bool packedsymbols_sorted(const struct packedsymbols *names);
/* Stores the calls of address i in out[] and returns how many there are. */
uint32_t packedsymbols_calls(const struct packedsymbols *names, uint32_t i, struct symbols_call *out, uint32_t max);

struct packedsymbols_builder {
	struct strtab strings;
	VEC(uint64_t) addresses;
	VEC(struct packedsymbols_span) spans;
	VEC(struct packedsymbols_call) calls; /* with string ids in place of offsets */
};
void packedsymbols_builder_init(struct packedsymbols_builder *b);
void packedsymbols_builder_done(struct packedsymbols_builder *b);
/* Adds an address with its calls (count may be 0); calls[].name is the name. */
void packedsymbols_builder_add(struct packedsymbols_builder *b, uint64_t address, const struct symbols_call *calls,
			       size_t count);
/* Appends the packed form to out; false when it would not fit 32-bit offsets. */
bool packedsymbols_builder_pack(const struct packedsymbols_builder *b, struct buf *out);
