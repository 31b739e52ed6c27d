#include "test.h"

#include "base/codec/protobuf.h"
#include "base/mem.h"

/* Numbers at the borders of a varint's length survive. */
static void numbers(void **state)
{
	static const uint64_t values[] = { 0, 1, 127, 128, 16383, 16384, UINT32_MAX, 1ULL << 63, UINT64_MAX };
	struct buf b = { 0 };
	struct protobuf_field f;
	struct reader r;

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		protobuf_put_uint(&b, 1 + i, values[i]);
		protobuf_put_fixed64(&b, (1 << 29) - 1, values[i]);
	}
	protobuf_put_double(&b, 15, -0.5);
	r = reader_of(b.data, b.n);
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		assert_true(protobuf_next(&r, &f));
		assert_int_equal(f.number, 1 + i);
		assert_int_equal(f.wire, PROTOBUF_VARINT);
		assert_true(f.value == values[i]);
		assert_true(protobuf_next(&r, &f));
		assert_int_equal(f.number, (1 << 29) - 1);
		assert_int_equal(f.wire, PROTOBUF_FIXED64);
		assert_true(f.value == values[i]);
	}
	assert_true(protobuf_next(&r, &f));
	assert_true(f.value == 0xbfe0000000000000ULL);
	assert_false(protobuf_next(&r, &f));
	assert_false(r.failed);
	buf_done(&b);
}

static void zigzag(void **state)
{
	assert_int_equal(protobuf_zigzag(0), 0);
	assert_int_equal(protobuf_zigzag(1), -1);
	assert_int_equal(protobuf_zigzag(2), 1);
	assert_true(protobuf_zigzag(UINT64_MAX - 1) == INT64_MAX);
	assert_true(protobuf_zigzag(UINT64_MAX) == INT64_MIN);
}

/* A message of any length, in messages: its length's own length changes with it. */
static void messages(void **state)
{
	static const size_t lengths[] = { 0, 1, 100, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 16370, 16383, 16384, 16390, 2100000 };
	_cleanup_free_ char *text = mem_alloc(2100000);

	memset(text, 'x', 2100000);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct buf b = { 0 };
		struct protobuf_field outer, inner, f;
		struct reader r, in;
		size_t one, two;

		protobuf_put_uint(&b, 9, 9);
		one = protobuf_open(&b, 2);
		two = protobuf_open(&b, 3);
		protobuf_put_bytes(&b, 4, text, lengths[i]);
		protobuf_close(&b, two);
		protobuf_put_uint(&b, 5, 7);
		protobuf_close(&b, one);
		protobuf_put_string(&b, 6, "end");
		r = reader_of(b.data, b.n);
		assert_true(protobuf_next(&r, &f));
		assert_true(protobuf_next(&r, &outer));
		in = protobuf_inside(&outer);
		assert_true(protobuf_next(&in, &inner));
		assert_int_equal(inner.number, 3);
		assert_true(protobuf_next(&in, &f));
		assert_int_equal(f.value, 7);
		assert_false(protobuf_next(&in, &f));
		in = protobuf_inside(&inner);
		assert_true(protobuf_next(&in, &f));
		assert_int_equal(f.n, lengths[i]);
		assert_non_null(f.data);
		assert_memory_equal(f.data, text, lengths[i]);
		assert_true(protobuf_next(&r, &f));
		assert_int_equal(f.n, 3);
		assert_memory_equal(f.data, "end", 3);
		assert_false(protobuf_next(&r, &f));
		assert_false(r.failed || in.failed);
		buf_done(&b);
	}
}

static void add(void *context, uint64_t value)
{
	*(uint64_t *)context = *(uint64_t *)context * 1000 + value;
}

static void packed_and_single(void **state)
{
	uint64_t seen = 0;
	struct buf b = { 0 };
	struct protobuf_field f;
	struct reader r;
	size_t list = protobuf_open(&b, 1);

	protobuf_put_varint(&b, 1);
	protobuf_put_varint(&b, 300);
	protobuf_put_varint(&b, 2);
	protobuf_close(&b, list);
	protobuf_put_uint(&b, 1, 5);
	r = reader_of(b.data, b.n);
	while (protobuf_next(&r, &f))
		assert_true(protobuf_numbers(&f, add, &seen));
	assert_int_equal(seen, 1300002005);
	/* Its last number is cut. */
	f = (struct protobuf_field){ .wire = PROTOBUF_BYTES, .data = (const uint8_t *)"\x01\x80", .n = 2 };
	seen = 0;
	assert_false(protobuf_numbers(&f, add, &seen));
	assert_int_equal(seen, 1);
	buf_done(&b);
}

static void damage(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} bad[] = {
		{ "\x00\x01", 2 },                                          /* field 0 */
		{ "\x80\x80\x80\x80\x10\x01", 6 },                          /* field 2^29 */
		{ "\x0b\x0c", 2 },                                          /* a group */
		{ "\x0e", 1 }, { "\x0f", 1 },                               /* no such wire types */
		{ "\x08", 1 }, { "\x08\x80", 2 },                           /* cut numbers */
		{ "\x09\x01\x02\x03\x04\x05\x06\x07", 8 }, { "\x0d\x01\x02\x03", 4 },
		{ "\x0a", 1 }, { "\x0a\x02x", 3 },                          /* a length beyond the end */
		{ "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x", 12 },    /* of 2^64 - 1 */
		{ "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12 }, /* a number of 11 bytes */
		{ "\x88\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00\x01", 12 }, /* and a key */
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		/* A copy that ends where it ends, for the sanitizer. */
		_cleanup_free_ uint8_t *copy = mem_alloc(bad[i].n);
		struct protobuf_field f;
		struct reader r;

		memcpy(copy, bad[i].bytes, bad[i].n);
		r = reader_of(copy, bad[i].n);
		assert_false(protobuf_next(&r, &f));
		assert_true(r.failed);
		assert_false(protobuf_next(&r, &f));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(zigzag),
		cmocka_unit_test(messages),
		cmocka_unit_test(packed_and_single),
		cmocka_unit_test(damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
