/*
 * protobuf.h - reads and writes the wire format of protocol buffers: numbers, bytes and messages within messages.
 *
 *	struct protobuf_field f;
 *	struct reader r = reader_of(data, n);
 *	while (protobuf_next(&r, &f))
 *		if (f.number == 1)
 *			use(f.value);
 *	if (r.failed)
 *		...
 *
 *	size_t begin = protobuf_open(&out, 2);		// a message in field 2
 *	protobuf_put_uint(&out, 1, id);
 *	protobuf_close(&out, begin);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { PROTOBUF_VARINT, PROTOBUF_FIXED64, PROTOBUF_BYTES, PROTOBUF_FIXED32 = 5 };

struct protobuf_field {
	uint32_t number;
	uint8_t wire;        /* of the above */
	uint64_t value;      /* of numbers, as on the wire */
	const uint8_t *data; /* of bytes: n of them, not NULL even where n is 0 */
	size_t n;
};

/* False at the end and when the reader failed: a group, a length beyond the end, field 0 or one above 2^29 - 1. */
bool protobuf_next(struct reader *r, struct protobuf_field *f);
/* The reader of a message, a packed list or a string that is in a field. */
struct reader protobuf_inside(const struct protobuf_field *f);
/* sint32 and sint64. */
int64_t protobuf_zigzag(uint64_t value);

/* Calls fn for each number of a repeated field: one, or all of a packed list (varints). False: it is damaged. */
typedef void protobuf_number_fn(void *context, uint64_t value);
bool protobuf_numbers(const struct protobuf_field *f, protobuf_number_fn *fn, void *context);

/* Fields with the default value are written, too: leave them out where that matters. */
void protobuf_put_varint(struct buf *b, uint64_t value); /* without a field: within a packed list */
void protobuf_put_uint(struct buf *b, uint32_t field, uint64_t value); /* also int64, bool, enum */
void protobuf_put_fixed64(struct buf *b, uint32_t field, uint64_t value);
void protobuf_put_double(struct buf *b, uint32_t field, double value);
void protobuf_put_bytes(struct buf *b, uint32_t field, const void *data, size_t n);
void protobuf_put_string(struct buf *b, uint32_t field, const char *s);
/* A message or packed list: what is put between these two calls is in it. */
size_t protobuf_open(struct buf *b, uint32_t field);
void protobuf_close(struct buf *b, size_t begin);
