#include "export/report/cleantext.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "export/report/shortname.h"

#define MARK ".." /* not the page's ellipsis: a terminal may know ASCII only */

void cleantext_put(struct buf *b, const char *s)
{
	plain_add(b, s);
}

void cleantext_json(struct json *j, const char *key, const char *s)
{
	_cleanup_(buf_done) struct buf text = { 0 };

	cleantext_put(&text, s);
	json_put_string(j, key, text.n ? text.data : "");
}

/* Returns the bytes of s that fit into columns; *ret_columns is their width. */
static size_t take(const char *s, size_t columns, size_t *ret_columns)
{
	size_t n, used = 0;
	const char *p = s;

	while (*p) {
		int32_t c = plain_decode(p, &n);
		size_t wide = c >= 0x1100 && c != 0xfffd && c != 0x2026 ? 2 : 1;

		if (used + wide > columns)
			break;
		used += wide;
		p += n;
	}
	*ret_columns = used;
	return p - s;
}

size_t cleantext_columns(const char *s)
{
	size_t columns;

	take(s, SIZE_MAX, &columns);
	return columns;
}

void cleantext_cut_at(struct buf *b, const char *text, size_t columns, const char *mark)
{
	size_t used, bytes = take(text, columns, &used);

	if (columns < 3)
		return;
	if (text[bytes])
		bytes = take(text, columns - cleantext_columns(mark), &used);
	buf_add(b, text, bytes);
	if (text[bytes])
		buf_puts(b, mark);
}

void cleantext_cut(struct buf *b, const char *text, size_t columns)
{
	cleantext_cut_at(b, text, columns, MARK);
}

void cleantext_fit(struct buf *b, const char *name, size_t columns)
{
	shortname_put(b, name, columns, MARK);
}

/* Is text free in this table, or already the text of name? Then it is from now on. */
static bool claim(struct cleantext_set *set, const char *text, const char *name)
{
	uint64_t whose = map_hash_bytes(name, strlen(name));

	return !set || *map_put(&set->given, map_hash_bytes(text, strlen(text)), whose) == whose;
}

void cleantext_function(struct cleantext_set *set, struct buf *b, const char *name, size_t columns)
{
	_cleanup_(buf_done) struct buf text = { 0 };

	cleantext_fit(&text, name, columns);
	buf_puts(&text, "");
	for (int k = 2; text.n && !claim(set, text.data, name); k++) {
		char number[16];

		snprintf(number, sizeof(number), "~%d", k);
		text.n = 0;
		if (columns > strlen(number))
			cleantext_fit(&text, name, columns - strlen(number));
		if (text.n)
			buf_puts(&text, number);
	}
	if (text.n)
		buf_puts(b, text.data);
}

void cleantext_set_done(struct cleantext_set *set)
{
	map_done(&set->given);
}

/* What is left of a terminal's line. */
static size_t room(unsigned columns, unsigned used)
{
	enum { MINIMUM = 20 };

	return columns > used + MINIMUM ? columns - used : MINIMUM;
}

void cleantext_last(struct buf *b, const char *name, unsigned columns, unsigned used)
{
	_cleanup_(buf_done) struct buf clean = { 0 };

	cleantext_put(&clean, *name ? name : "[no name]");
	if (columns)
		cleantext_fit(b, clean.data, room(columns, used));
	else
		buf_puts(b, clean.data);
}

void cleantext_last_function(struct cleantext_set *set, struct buf *b, const char *name, unsigned columns, unsigned used)
{
	_cleanup_(buf_done) struct buf clean = { 0 };

	cleantext_put(&clean, *name ? name : "[no name]");
	if (columns)
		cleantext_function(set, b, clean.data, room(columns, used));
	else
		buf_puts(b, clean.data);
}
