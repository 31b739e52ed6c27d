#include "base/codec/protobuf.h"

#include <string.h>

#include "base/mem.h"

enum { LENGTH_ROOM = 1, VARINT_MAX = 10, NUMBER_MAX = (1 << 29) - 1 };

/* A varint of more bytes than any number needs is damage. */
static uint64_t take_varint(struct reader *r)
{
	size_t begin = r->pos;
	uint64_t value = reader_uleb(r);

	r->failed |= r->pos - begin > VARINT_MAX;
	return value;
}

bool protobuf_next(struct reader *r, struct protobuf_field *f)
{
	uint64_t key;

	if (!reader_more(r))
		return false;
	key = take_varint(r);
	*f = (struct protobuf_field){ .number = key >> 3, .wire = key & 7 };
	r->failed |= !f->number || key >> 3 > NUMBER_MAX;
	switch (f->wire) {
	case PROTOBUF_VARINT:
		f->value = take_varint(r);
		break;
	case PROTOBUF_FIXED64:
		f->value = reader_u64(r);
		break;
	case PROTOBUF_FIXED32:
		f->value = reader_u32(r);
		break;
	case PROTOBUF_BYTES:
		f->n = take_varint(r);
		f->data = reader_bytes(r, f->n);
		r->failed |= !f->data;
		break;
	default:
		r->failed = true;
	}
	return !r->failed;
}

struct reader protobuf_inside(const struct protobuf_field *f)
{
	return reader_of(f->data, f->n);
}

int64_t protobuf_zigzag(uint64_t value)
{
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

bool protobuf_numbers(const struct protobuf_field *f, protobuf_number_fn *fn, void *context)
{
	struct reader r = protobuf_inside(f);

	if (f->wire != PROTOBUF_BYTES) {
		fn(context, f->value);
		return true;
	}
	while (reader_more(&r)) {
		uint64_t value = take_varint(&r);

		if (!r.failed)
			fn(context, value);
	}
	return !r.failed;
}

static size_t encode(uint8_t out[VARINT_MAX], uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		out[n++] = value | 0x80;
	out[n++] = value;
	return n;
}

void protobuf_put_varint(struct buf *b, uint64_t value)
{
	uint8_t bytes[VARINT_MAX];

	buf_add(b, bytes, encode(bytes, value));
}

static void put_key(struct buf *b, uint32_t field, unsigned wire)
{
	protobuf_put_varint(b, (uint64_t)field << 3 | wire);
}

void protobuf_put_uint(struct buf *b, uint32_t field, uint64_t value)
{
	put_key(b, field, PROTOBUF_VARINT);
	protobuf_put_varint(b, value);
}

void protobuf_put_fixed64(struct buf *b, uint32_t field, uint64_t value)
{
	uint8_t bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = value >> 8 * i;
	put_key(b, field, PROTOBUF_FIXED64);
	buf_add(b, bytes, sizeof(bytes));
}

void protobuf_put_double(struct buf *b, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	protobuf_put_fixed64(b, field, bits);
}

void protobuf_put_bytes(struct buf *b, uint32_t field, const void *data, size_t n)
{
	put_key(b, field, PROTOBUF_BYTES);
	protobuf_put_varint(b, n);
	buf_add(b, data, n);
}

void protobuf_put_string(struct buf *b, uint32_t field, const char *s)
{
	protobuf_put_bytes(b, field, s, strlen(s));
}

/* Most messages have a length of one byte, for which there is room; a longer one moves its content. */
size_t protobuf_open(struct buf *b, uint32_t field)
{
	put_key(b, field, PROTOBUF_BYTES);
	buf_putc(b, 0);
	return b->n;
}

void protobuf_close(struct buf *b, size_t begin)
{
	uint8_t bytes[VARINT_MAX];
	size_t n = b->n - begin, length = encode(bytes, n);

	if (length > LENGTH_ROOM) {
		buf_add(b, bytes, length - LENGTH_ROOM); /* makes room */
		memmove(b->data + begin + length - LENGTH_ROOM, b->data + begin, n);
	}
	memcpy(b->data + begin - LENGTH_ROOM, bytes, length);
}
