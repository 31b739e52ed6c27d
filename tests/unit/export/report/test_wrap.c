#include "test.h"

#include "base/buf.h"
#include "export/report/wrap.h"

static void wraps(size_t columns, const char *text, const char *expected)
{
	struct buf b = { 0 };
	size_t from;

	buf_puts(&b, "what is before stays as it is, however long\n");
	from = b.n;
	buf_puts(&b, text);
	wrap_lines(&b, from, columns);
	buf_putc(&b, 0);
	assert_string_equal(b.data + from, expected);
	buf_done(&b);
}

static void lines_that_fit_stay(void **state)
{
	wraps(40, "a   table  row\n\n  of spaces \n", "a   table  row\n\n  of spaces \n");
	wraps(0, "as long as it likes, without any terminal\n", "as long as it likes, without any terminal\n");
	wraps(40, "", "");
	wraps(40, "no line feed", "no line feed");
}

static void long_lines_break_between_words(void **state)
{
	wraps(20, "one two three four five six\nseven\n", "one two three four\n  five six\nseven\n");
	wraps(20, "  chain  1 ms  a waited: lock\n", "  chain  1 ms  a\n    waited: lock\n");
}

static void words_stay_whole(void **state)
{
	wraps(20, "a abcdefghijklmnopqrstuvwxyz b\n", "a\n  abcdefghijklmnopqrstuvwxyz\n  b\n");
	wraps(5, "twenty columns are the least\n", "twenty columns are\n  the least\n");
}

static void colours_take_no_room(void **state)
{
	wraps(20, "\033[1mtwenty columns wide\033[0m!\n", "\033[1mtwenty columns wide\033[0m!\n");
	wraps(20, "\033[", "\033[");
	wraps(20, "\033[1;2", "\033[1;2");
}

static void wide_characters_are_two(void **state)
{
	wraps(20, "漢字漢字 漢字漢字 漢字漢字\n", "漢字漢字 漢字漢字\n  漢字漢字\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_that_fit_stay),
		cmocka_unit_test(long_lines_break_between_words),
		cmocka_unit_test(words_stay_whole),
		cmocka_unit_test(colours_take_no_room),
		cmocka_unit_test(wide_characters_are_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
