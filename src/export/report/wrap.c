#include "export/report/wrap.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "export/report/cleantext.h"

enum { DEEPER = 2, LEAST_COLUMNS = 20 };

/* Returns the bytes of a sequence such as "\033[1m" at s, 0 = none is there. */
static size_t escape_length(const char *s)
{
	size_t n = 2;

	if (s[0] != '\033' || s[1] != '[')
		return 0;
	n += strspn(s + n, "0123456789;");
	return s[n] ? n + 1 : n;
}

/* Columns of the n bytes at s, without escape sequences. */
static size_t columns_of(const char *s, size_t n)
{
	_cleanup_(buf_done) struct buf plain = { 0 };

	for (size_t i = 0; i < n;) {
		size_t skip = escape_length(s + i);

		if (!skip)
			buf_putc(&plain, s[i]);
		i += skip ? skip : 1;
	}
	return plain.n ? cleantext_columns(plain.data) : 0;
}

/* Puts one line, which holds no line feed. Spaces within it stay, as columns of tables need them. */
static void wrap_line(struct buf *out, const char *s, size_t n, size_t columns)
{
	size_t indent = strspn(s, " "), used = 0, words = 0;

	if (columns_of(s, n) <= columns) {
		buf_add(out, s, n);
		return;
	}
	indent = MIN(MIN(indent, n) + DEEPER, columns / 2);
	for (size_t at = 0; at < n;) {
		const char *word = s + at + strspn(s + at, " ");
		size_t gap = MIN((size_t)(word - s), n) - at, length = strcspn(word, " \n"), wide;

		length = MIN(length, n - at - gap);
		wide = columns_of(word, length);
		if (words && used + gap + wide > columns) {
			buf_printf(out, "\n%*s", (int)indent, "");
			used = indent;
			words = 0;
		} else {
			buf_add(out, s + at, gap);
			used += gap;
		}
		buf_add(out, word, length);
		used += wide;
		words++;
		at += gap + length;
	}
}

void wrap_lines(struct buf *b, size_t from, size_t columns)
{
	_cleanup_(buf_done) struct buf out = { 0 };

	if (!columns || from >= b->n)
		return;
	columns = MAX(columns, (size_t)LEAST_COLUMNS);
	for (const char *s = b->data + from, *end = b->data + b->n; s < end;) {
		const char *feed = memchr(s, '\n', end - s);
		size_t n = (feed ? feed : end) - s;

		wrap_line(&out, s, n, columns);
		if (feed)
			buf_putc(&out, '\n');
		s += n + !!feed;
	}
	b->n = from;
	buf_add(b, out.data, out.n);
}
