/*
 * The format: the length as a varint, then elements. A literal has its length in the tag and its bytes behind it; a copy has a length and
 * how far back it begins. Data are packed in pieces of 64 KiB, so that a distance fits into 16 bits.
 */
#include "base/codec/snappy.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/codec/protobuf.h"
#include "base/mem.h"

enum {
	PIECE_BYTES = 1 << 16,
	TABLE_BITS = 13,
	LEAST_MATCH = 4,
	TAG_LITERAL = 0, TAG_COPY_NEAR = 1, TAG_COPY = 2,
	LITERAL_SHORT = 60,              /* longer ones have their length behind the tag */
	NEAR_LEAST = 4, NEAR_MOST = 11, NEAR_DISTANCE = 1 << 11,
	COPY_MOST = 64,
};

static uint32_t load(const uint8_t *p)
{
	uint32_t x;

	memcpy(&x, p, sizeof(x));
	return x;
}

static uint32_t slot_of(uint32_t x)
{
	return x * 0x9e3779b1u >> (32 - TABLE_BITS);
}

static void put_byte(struct buf *out, unsigned byte)
{
	buf_putc(out, (char)byte);
}

static void put_literal(struct buf *out, const uint8_t *data, size_t n)
{
	size_t length = n - 1;

	if (!n)
		return;
	if (n <= LITERAL_SHORT) {
		put_byte(out, length << 2 | TAG_LITERAL);
	} else if (length < 1 << 8) {
		put_byte(out, LITERAL_SHORT << 2 | TAG_LITERAL);
		put_byte(out, length);
	} else {
		/* A piece is no longer than two bytes can say. */
		put_byte(out, (LITERAL_SHORT + 1) << 2 | TAG_LITERAL);
		put_byte(out, length & 0xff);
		put_byte(out, length >> 8);
	}
	buf_add(out, data, n);
}

static void put_copy(struct buf *out, size_t distance, size_t n)
{
	while (n) {
		/* What is left must not be shorter than a near copy can be: the next one may then be near. */
		size_t part = n <= COPY_MOST ? n : n < COPY_MOST + NEAR_LEAST ? COPY_MOST - NEAR_LEAST : COPY_MOST;

		if (part >= NEAR_LEAST && part <= NEAR_MOST && distance < NEAR_DISTANCE) {
			put_byte(out, distance >> 8 << 5 | (part - NEAR_LEAST) << 2 | TAG_COPY_NEAR);
			put_byte(out, distance & 0xff);
		} else {
			put_byte(out, (part - 1) << 2 | TAG_COPY);
			put_byte(out, distance & 0xff);
			put_byte(out, distance >> 8);
		}
		n -= part;
	}
}

/* table: where in the piece four bytes were seen last, by their hash; all are 0. */
static void pack_piece(struct buf *out, const uint8_t *data, size_t n, uint16_t *table)
{
	size_t literal = 0, at = 1; /* 0 in the table: nowhere, or at the begin */

	while (n >= LEAST_MATCH && at + LEAST_MATCH <= n) {
		uint32_t here = load(data + at);
		uint16_t *slot = &table[slot_of(here)];
		size_t from = *slot, length = LEAST_MATCH;

		*slot = at;
		if (load(data + from) != here) {
			/* The longer nothing is found, the fewer places are looked at: what does not pack is not worth the time. */
			at += 1 + (at - literal) / 32;
			continue;
		}
		while (at + length < n && data[from + length] == data[at + length])
			length++;
		put_literal(out, data + literal, at - literal);
		put_copy(out, at - from, length);
		at += length;
		literal = at;
	}
	put_literal(out, data + literal, n - literal);
}

void snappy_pack(struct buf *out, const void *data, size_t n)
{
	uint16_t *table = mem_alloc(sizeof(*table) << TABLE_BITS);

	protobuf_put_varint(out, n);
	for (size_t at = 0; at < n; at += PIECE_BYTES) {
		memset(table, 0, sizeof(*table) << TABLE_BITS);
		pack_piece(out, (const uint8_t *)data + at, MIN(n - at, (size_t)PIECE_BYTES), table);
	}
	mem_freep(&table);
}
