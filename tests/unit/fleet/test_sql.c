#include "test.h"

#include "base/buf.h"
#include "fleet/sql.h"

static void assert_literal(const char *s, size_t n, const char *wanted)
{
	struct buf b = { 0 };

	sql_literal_n(&b, s, n);
	assert_string_equal(b.data, wanted);
	buf_done(&b);
}

static void literals(void **state)
{
	static const struct {
		const char *text, *wanted;
	} cases[] = {
		{ "", "''" },
		{ "reth-1", "'reth-1'" },
		{ "'; drop table samples; --", "'\\'; drop table samples; --'" },
		{ "\\", "'\\\\'" },
		{ "\\'", "'\\\\\\''" },
		{ "\\\\'; --", "'\\\\\\\\\\'; --'" },
		{ "''", "'\\'\\''" },
		{ "a\nb\tc\rd", "'a\\nb\\tc\\rd'" },
		{ "\x01\x1b\x7f", "'\\x01\\x1B\\x7F'" },
		{ "größe 东 \xf0\x9f\x94\xa5", "'größe 东 \xf0\x9f\x94\xa5'" },
		{ "\xff\xfe\xbf\x5c\x27", "'\xff\xfe\xbf\\\\\\''" }, /* no UTF-8, and what some encodings take for one character */
		{ "/* */ -- # `x` \" %s {a:String}", "'/* */ -- # `x` \" %s {a:String}'" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_literal(cases[i].text, strlen(cases[i].text), cases[i].wanted);
	assert_literal("a\0'b", 4, "'a\\0\\'b'");
}

/* Whatever the bytes are: no quote that is not escaped before the last one, no line break, and a reader gets them back. */
static void every_pair_of_bytes(void **state)
{
	for (unsigned pair = 0; pair < 65536; pair++) {
		const char text[2] = { pair >> 8, pair & 0xff };
		struct buf b = { 0 };
		size_t n = 0;
		char back[8];

		sql_literal_n(&b, text, 2);
		assert_true(b.n >= 4 && b.data[0] == '\'' && b.data[b.n - 1] == '\'');
		for (size_t i = 1; i < b.n - 1; i++) {
			char c = b.data[i];

			assert_true(c != '\'' && c != '\n' && c);
			if (c == '\\') {
				unsigned value;

				c = b.data[++i];
				assert_true(i < b.n - 1);
				if (c == 'x') {
					assert_int_equal(sscanf(b.data + i + 1, "%2x", &value), 1);
					i += 2;
					c = value;
				} else {
					c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'b' ? '\b' : c == 'f' ? '\f' : c == '0' ? 0 : c;
				}
			}
			back[n++] = c;
		}
		assert_int_equal(n, 2);
		assert_memory_equal(back, text, 2);
		buf_done(&b);
	}
}

static void identifiers(void **state)
{
	struct buf b = { 0 };

	sql_identifier(&b, "gas`flame\\'");
	assert_string_equal(b.data, "`gas\\`flame\\\\\\'`");
	buf_done(&b);
}

static void rows(void **state)
{
	static const unsigned char wanted[] = { 1, 0x34, 0x12, 0x78, 0x56, 0x34, 0x12, 8, 7, 6, 5, 4, 3, 2, 1, 0xfe, 0xff, 0xff, 0xff, 0xff,
						0xff, 0xff, 0xff, 3, 'a', '\t', '\'', 0, 0x80, 1 };
	struct buf b = { 0 };

	sql_row_u8(&b, 1);
	sql_row_u16(&b, 0x1234);
	sql_row_u32(&b, 0x12345678);
	sql_row_u64(&b, 0x0102030405060708);
	sql_row_i64(&b, -2);
	sql_row_string(&b, "a\t'");
	sql_row_string(&b, "");
	sql_row_count(&b, 128);
	assert_int_equal(b.n, sizeof(wanted));
	assert_memory_equal(b.data, wanted, sizeof(wanted));
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(literals),
		cmocka_unit_test(every_pair_of_bytes),
		cmocka_unit_test(identifiers),
		cmocka_unit_test(rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
