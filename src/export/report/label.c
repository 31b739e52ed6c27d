#include "export/report/label.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/text/plain.h"

void label_clean(struct buf *b, const char *s)
{
	plain_add(b, s);
}

void label_json(struct json *j, const char *key, const char *s)
{
	struct buf text = { 0 };

	label_clean(&text, s);
	json_put_string(j, key, text.n ? text.data : "");
	buf_done(&text);
}

/* Bytes of s that fit into columns; *ret_columns is what they take. */
static size_t take(const char *s, size_t columns, size_t *ret_columns)
{
	size_t n, used = 0;
	const char *p = s;

	while (*p) {
		int32_t c = plain_decode(p, &n);
		size_t wide = c >= 0x1100 && c != 0xfffd ? 2 : 1;

		if (used + wide > columns)
			break;
		used += wide;
		p += n;
	}
	*ret_columns = used;
	return p - s;
}

size_t label_columns(const char *s)
{
	size_t columns;

	take(s, SIZE_MAX, &columns);
	return columns;
}

/* Is the bracket at s the name of a C++ operator: operator<, operator<<, operator()? */
static bool names_operator(const char *name, const char *s)
{
	if (*s == '<' && s > name && s[-1] == '<')
		s--;
	return s - name >= 8 && !memcmp(s - 8, "operator", 8);
}

/* name with what stands between outermost brackets as "..", if it is longer than that; false and
 * nothing added if the brackets don't match. */
static bool fold_arguments(struct buf *b, const char *name)
{
	size_t depth = 0, before = b->n;
	const char *open = name;

	for (const char *s = name; *s; s++) {
		if ((*s == '<' || *s == '(') && !names_operator(name, s)) {
			if (!depth++)
				open = s;
		} else if ((*s == '>' || *s == ')') && depth && !(s > name && s[-1] == '-')) {
			if (--depth)
				continue;
			if (s - open - 1 > 2)
				buf_printf(b, "%c..%c", *open, *s);
			else
				buf_add(b, open, s - open + 1);
		} else if (!depth) {
			buf_putc(b, *s);
		}
	}
	if (!depth)
		return true;
	b->n = before;
	return false;
}

/* The next segment of a path, NULL if there is none. What begins with a brace ({{closure}}) belongs to
 * what is before it, for alone it says nothing. */
static const char *next_segment(const char *s)
{
	while ((s = strstr(s, "::"))) {
		s += 2;
		if (*s && *s != '{')
			return s;
	}
	return NULL;
}

void label_cut(struct buf *b, const char *text, size_t columns)
{
	size_t used, bytes = take(text, columns, &used);

	if (columns < 3)
		return;
	if (text[bytes])
		bytes = take(text, columns - 2, &used);
	buf_add(b, text, bytes);
	if (text[bytes])
		buf_puts(b, "..");
}

void label_fit(struct buf *b, const char *name, size_t columns)
{
	struct buf folded = { 0 };
	const char *last;

	if (columns < 3)
		return;
	if (label_columns(name) <= columns) {
		buf_puts(b, name);
		return;
	}
	if (fold_arguments(&folded, name)) {
		buf_putc(&folded, 0);
		name = folded.data;
	}
	last = name;
	if (label_columns(name) > columns)
		for (const char *s = name; (s = next_segment(s));) {
			last = s;
			if (label_columns(s) + 4 <= columns) {
				buf_puts(b, "..::");
				break;
			}
		}
	label_cut(b, last, columns);
	buf_done(&folded);
}

void label_last(struct buf *b, const char *name, unsigned columns, unsigned used)
{
	enum { MINIMUM = 20 };
	struct buf clean = { 0 };

	label_clean(&clean, *name ? name : "[no name]");
	if (columns)
		label_fit(b, clean.data, columns > used + MINIMUM ? columns - used : MINIMUM);
	else
		buf_puts(b, clean.data);
	buf_done(&clean);
}
