/* test_textlines.c - lines of a stream: their ends, their numbers, the last one, and those that are too long. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/lines.h"
#include "base/file/stream.h"
#include "base/mem.h"

/* "[a][b]", with a ! after a line that is cut. */
static struct buf split(const char *text, size_t n)
{
	struct stream *in = stream_of(text, n);
	struct lines l = lines_of(in);
	struct buf out = { 0 };
	uint64_t number = 0;
	char *line;
	size_t length;
	int r;

	while ((r = lines_next(&l, &line, &length, NULL)) > 0) {
		assert_int_equal(strlen(line), length);
		assert_int_equal(l.number, ++number);
		buf_printf(&out, "[%s]%s", line, l.cut ? "!" : "");
	}
	assert_int_equal(r, 0);
	lines_done(&l);
	stream_free(in);
	return out;
}

static void expect(const char *text, size_t n, const char *wanted)
{
	struct buf out = split(text, n);

	assert_string_equal(out.n ? out.data : "", wanted);
	buf_done(&out);
}

static void ends(void **state)
{
	expect("", 0, "");
	expect("\n", 1, "[]");
	expect("a\nb\n", 4, "[a][b]");
	expect("a\r\n\r\nb", 6, "[a][][b]!");
	expect("a\0b\n", 4, "[a\1b]");
	expect("a\rb\r", 4, "[a\rb\r]!");
}

/* Lines that lie across the pieces in which a stream is read. */
static void long_texts(void **state)
{
	enum { LINES = 300, LENGTH = 9973 };
	_cleanup_(buf_done) struct buf text = { 0 };
	struct stream *in;
	struct lines l;
	char *line;
	size_t n;

	for (int i = 0; i < LINES; i++) {
		for (int k = 0; k < LENGTH; k++)
			buf_putc(&text, 'a' + i % 26);
		buf_putc(&text, '\n');
	}
	in = stream_of(text.data, text.n);
	l = lines_of(in);
	for (int i = 0; i < LINES; i++) {
		assert_int_equal(lines_next(&l, &line, &n, NULL), 1);
		assert_int_equal(n, LENGTH);
		assert_int_equal(line[0], 'a' + i % 26);
		assert_int_equal(line[n - 1], 'a' + i % 26);
	}
	assert_int_equal(lines_next(&l, &line, &n, NULL), 0);
	assert_false(l.cut);
	lines_done(&l);
	stream_free(in);
}

static void too_long(void **state)
{
	size_t size = LINES_LONGEST + (4 << 20), n;
	char *text = malloc(size), *line;
	struct err err = { 0 };
	struct stream *in;
	struct lines l;

	memset(text, 'x', size);
	text[1] = '\n';
	in = stream_of(text, size);
	l = lines_of(in);
	assert_int_equal(lines_next(&l, &line, &n, &err), 1);
	assert_int_equal(lines_next(&l, &line, &n, &err), -EFBIG);
	assert_string_equal(err.text, "line 2: it is longer than 16 MB");
	lines_done(&l);
	stream_free(in);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends),
		cmocka_unit_test(long_texts),
		cmocka_unit_test(too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
