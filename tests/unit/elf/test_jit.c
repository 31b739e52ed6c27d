#include <elf.h>
#include <errno.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "elf/jit.h"
#include "test.h"

struct jit_names {
	char name[8][64];
	uint32_t line[8];
};

static void got_jit(void *context, size_t index, const struct symbols_call *calls, size_t count)
{
	struct jit_names *n = context;

	snprintf(n->name[index], 64, "%s", count ? calls[0].name : "-");
	n->line[index] = count ? calls[0].line : 0;
}

static void jit_map(void **state)
{
	const char text[] = "1000 100 old one\n1080 40 new one\nzz 10 bad\n2000 0 empty\n"
			    "ffffffffffffff00 200 wraps\n"
			    "0x3000 0x10 with prefix\n5000 10\n4000 20 last";
	const uint64_t addresses[] = { 0x1000, 0x1080, 0x10bf, 0x10c0, 0x2000, 0x3008, 0x401f, 0x4020 };
	struct jit *j = jit_new(addresses, 8);
	struct jit_names n;

	assert_int_equal(jit_parse_map(j, text, strlen(text)), 2);
	jit_resolve(j, got_jit, &n);
	assert_string_equal(n.name[0], "old one");
	assert_string_equal(n.name[1], "new one");
	assert_string_equal(n.name[2], "new one");
	assert_string_equal(n.name[3], "old one");
	assert_string_equal(n.name[4], "-");
	assert_string_equal(n.name[5], "with prefix");
	assert_string_equal(n.name[6], "last");
	assert_string_equal(n.name[7], "-");
	jit_free(j);
}

static void put32(struct buf *b, uint32_t v)
{
	buf_add(b, &v, 4);
}

static void put64(struct buf *b, uint64_t v)
{
	buf_add(b, &v, 8);
}

static void put_load(struct buf *b, uint64_t time, uint64_t address, uint64_t size, const char *name)
{
	put32(b, 0);
	put32(b, 16 + 40 + strlen(name) + 1 + 4);
	put64(b, time);
	put32(b, 1);
	put32(b, 1);
	put64(b, address);
	put64(b, address);
	put64(b, size);
	put64(b, 0);
	buf_add(b, name, strlen(name) + 1);
	put32(b, 0xcccccccc); /* code */
}

static void put_header(struct buf *b, uint64_t flags)
{
	put32(b, 0x4a695444);
	put32(b, 1);
	put32(b, 40);
	put32(b, EM_X86_64);
	put64(b, 0);
	put64(b, 0);
	put64(b, flags);
}

static void got_past(void *context, size_t index, const struct symbols_call *calls, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buf_printf(context, "%zu %s@%u ", index, calls[i].name, calls[i].line);
}

/* Code in the place of other code: which name held when. */
static void jit_replaced(void **state)
{
	const uint64_t addresses[] = { 0x1000, 0x1010, 0x2000, 0x3004 }, ms = 1000000, base = 5000 * ms;

	for (uint64_t flags = 0; flags < 2; flags++) {
		struct jit *j = jit_new(addresses, 4);
		struct buf b = { 0 }, past = { 0 };

		put_header(&b, flags);
		put_load(&b, 10 * ms, 0x1000, 0x100, "long_before");
		put_load(&b, 20 * ms, 0x1000, 0x100, "before");
		put_load(&b, base + 7 * ms, 0x1010, 0x100, "seven");
		put_load(&b, base + 8 * ms, 0x1010, 0x80, "seven"); /* the same again */
		put_load(&b, base + 9 * ms, 0x1000, 0x100, "nine");
		put_load(&b, base + 1 * ms, 0x2000, 0x100, "alone");
		assert_int_equal(jit_parse_dump(j, b.data, b.n, NULL), 0);
		jit_history(j, base, got_past, &past);
		/* Times of another clock say nothing. */
		assert_string_equal(flags ? (past.n ? past.data : "") : past.data,
				    flags ? "" : "0 before@0 0 nine@9 1 before@0 1 seven@7 1 nine@9 ");
		buf_done(&b);
		buf_done(&past);
		jit_free(j);
	}
}

static void jit_dump(void **state)
{
	const uint64_t addresses[] = { 0x1000, 0x1010, 0x2000, 0x3004 };
	struct jit *j = jit_new(addresses, 4);
	struct buf b = { 0 };
	struct jit_names n;
	struct err err = { 0 };

	put_header(&b, 0);
	put_load(&b, 200, 0x1000, 0x100, "newer");
	put_load(&b, 100, 0x1000, 0x100, "older"); /* threads write out of order: time decides */
	put32(&b, 2); /* lines, for the next load */
	put32(&b, 16 + 16 + 2 * 16 + 5 + 2);
	put64(&b, 250);
	put64(&b, 0x2000);
	put64(&b, 2);
	put64(&b, 0x2000);
	put32(&b, 7);
	put32(&b, 0);
	buf_add(&b, "a.js", 5);
	put64(&b, 0x2008);
	put32(&b, 9);
	put32(&b, 0);
	buf_add(&b, "\xff", 2);
	put_load(&b, 250, 0x2000, 0x10, "lines");
	put32(&b, 1); /* moved */
	put32(&b, 16 + 48);
	put64(&b, 300);
	put64(&b, 0);
	put64(&b, 0x3000);
	put64(&b, 0x2000);
	put64(&b, 0x3000);
	put64(&b, 0x10);
	put64(&b, 0);
	assert_int_equal(jit_parse_dump(j, b.data, b.n, &err), 0);
	assert_int_equal(jit_count(j), 4);
	jit_resolve(j, got_jit, &n);
	assert_string_equal(n.name[0], "newer");
	assert_string_equal(n.name[1], "newer");
	assert_string_equal(n.name[2], "lines");
	assert_int_equal(n.line[2], 7);
	assert_string_equal(n.name[3], "lines");
	jit_free(j);
	/* Cut off anywhere. */
	for (size_t i = 0; i < b.n; i++) {
		_cleanup_free_ char *copy = mem_alloc(i + 1);

		memcpy(copy, b.data, i);
		j = jit_new(addresses, 4);
		if (i < 40)
			assert_int_equal(jit_parse_dump(j, copy, i, &err), -EINVAL);
		else
			assert_int_equal(jit_parse_dump(j, copy, i, &err), 0);
		jit_free(j);
	}
	buf_done(&b);
}

/* A map that names one address a million times: what is kept does not grow with it. */
static void jit_bounded(void **state)
{
	const uint64_t addresses[] = { 0x1000, 0x2000 };
	struct jit *j = jit_new(addresses, 2);
	struct buf b = { 0 };
	struct jit_names n;

	buf_printf(&b, "2000 10 kept\n");
	for (int i = 0; i < 3000000; i++)
		buf_printf(&b, "%x 10 f%d\n", i % 2 ? 0x1000 : 0x5000, i);
	assert_int_equal(jit_parse_map(j, b.data, b.n), 0);
	assert_true(jit_count(j) <= 600000);
	jit_resolve(j, got_jit, &n);
	assert_string_equal(n.name[0], "f2999999");
	assert_string_equal(n.name[1], "kept");
	jit_free(j);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jit_map),
		cmocka_unit_test(jit_dump),
		cmocka_unit_test(jit_replaced),
		cmocka_unit_test(jit_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
