/* Snappy's block format, against a decoder of its own. */
#include "test.h"

#include "base/buf.h"
#include "base/codec/snappy.h"
#include "base/mem.h"
#include "random.h"

static struct random dice = { 1 };

/* n bytes of the element's own number, little-endian. */
static size_t number(const uint8_t *p, unsigned n)
{
	size_t value = 0;

	for (unsigned i = 0; i < n; i++)
		value |= (size_t)p[i] << 8 * i;
	return value;
}

/* By the description of the format; anything that it does not allow fails. */
static struct buf unpack(const struct buf *in)
{
	struct reader r = reader_of(in->data, in->n);
	size_t length = reader_uleb(&r), begin = r.pos;
	struct buf out = { 0 };

	for (size_t at = begin; at < in->n;) {
		const uint8_t *p = (const uint8_t *)in->data + at;
		size_t n = p[0] >> 2, distance;

		if ((p[0] & 3) == 0) {
			unsigned more = n < 60 ? 0 : n - 59;

			n = (more ? number(p + 1, more) : n) + 1;
			assert_true(at + 1 + more + n <= in->n);
			buf_add(&out, p + 1 + more, n);
			at += 1 + more + n;
			continue;
		}
		if ((p[0] & 3) == 1) {
			distance = (size_t)(p[0] >> 5) << 8 | p[1];
			n = (p[0] >> 2 & 7) + 4;
			at += 2;
		} else {
			assert_int_equal(p[0] & 3, 2);
			distance = number(p + 1, 2);
			n++;
			at += 3;
		}
		assert_true(at <= in->n && distance && distance <= out.n);
		while (n--)
			buf_putc(&out, out.data[out.n - distance]);
	}
	assert_int_equal(out.n, length);
	return out;
}

static size_t check(const void *data, size_t n)
{
	struct buf packed = { 0 }, plain;
	size_t size;

	snappy_pack(&packed, data, n);
	plain = unpack(&packed);
	assert_int_equal(plain.n, n);
	if (n)
		assert_memory_equal(plain.data, data, n);
	size = packed.n;
	buf_done(&packed);
	buf_done(&plain);
	return size;
}

static void test_sizes(void **state)
{
	static const size_t sizes[] = { 0, 1, 2, 3, 4, 5, 59, 60, 61, 62, 64, 65, 67, 68, 69, 255, 256, 257, 258, 65535, 65536, 65537, 65540, 200000 };
	uint8_t *data = mem_alloc(200000);

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		/* All the same, a period that is near, one that is far, and nothing to be had. */
		for (size_t period = 1; period < 100000; period *= 7) {
			for (size_t k = 0; k < sizes[i]; k++)
				data[k] = k % period * 2654435761u >> 13;
			check(data, sizes[i]);
		}
		for (size_t k = 0; k < sizes[i]; k++)
			data[k] = random_next(&dice) >> 20;
		assert_true(check(data, sizes[i]) <= sizes[i] + sizes[i] / 100 + 16);
	}
	free(data);
}

static void test_packs(void **state)
{
	struct buf text = { 0 };

	for (int i = 0; i < 1000; i++)
		buf_printf(&text, "gasflame_time_seconds_total{state=\"cpu\",target=\"reth-%d\"} %d\n", i % 10, i);
	assert_true(check(text.data, text.n) < text.n / 4);
	buf_done(&text);
}

static void test_random(void **state)
{
	uint8_t data[3000];

	for (int round = 0; round < 300; round++) {
		unsigned letters = 1 + random_next(&dice) % 6;
		size_t n = random_next(&dice) % sizeof(data);

		for (size_t i = 0; i < n; i++)
			data[i] = 'a' + (random_next(&dice) >> 8) % letters;
		check(data, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_sizes), cmocka_unit_test(test_packs), cmocka_unit_test(test_random) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
