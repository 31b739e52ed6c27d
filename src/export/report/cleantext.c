#include "export/report/cleantext.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "base/vec.h"

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

/* Is the bracket at s part of the name of a C++ operator: operator<, operator<<, operator()? */
static bool names_operator(const char *name, const char *s)
{
	if (*s == '<' && s > name && s[-1] == '<')
		s--;
	return s - name >= 8 && !memcmp(s - 8, "operator", 8);
}

/* Does the bracket at s hold arguments? What a path begins with, as in <A as B>::f, stays: it says whose function it is. */
static bool holds_arguments(const char *name, const char *s)
{
	char before = s > name ? s[-1] : 0;
	bool of_operator = before == '<' && names_operator(name, s - 1);

	return before && (of_operator || isalnum((unsigned char)before) || strchr("_:>)}$", before)) && s[1] != '>' &&
	       s[1] != ')';
}

/* The arguments between from and to, as mark if that is no longer. */
static void put_folded(struct buf *b, const char *from, const char *to, const char *mark)
{
	_cleanup_free_ char *arguments = mem_strndup(from, to - from);

	buf_puts(b, cleantext_columns(arguments) >= cleantext_columns(mark) ? mark : arguments);
}

/* name with arguments of types and functions as mark; name itself if its brackets don't match. */
static void fold_arguments(struct buf *b, const char *name, const char *mark)
{
	VEC(bool) open = { 0 }; /* brackets; true: what it holds is left out */
	size_t hidden = 0;
	const char *from = name;

	for (const char *s = name; *s; s++) {
		char before = s > name ? s[-1] : 0;

		if ((*s == '<' || *s == '(') && !names_operator(name, s)) {
			bool hides = holds_arguments(name, s);

			if (!hidden)
				buf_putc(b, *s);
			if (hides && !hidden)
				from = s + 1;
			vec_push(&open, hides);
			hidden += hides;
		} else if (((*s == '>' && before != '-' && before != '=') || *s == ')') && open.n) {
			bool hid = open.v[--open.n];

			hidden -= hid;
			if (hid && !hidden)
				put_folded(b, from, s, mark);
			if (!hidden)
				buf_putc(b, *s);
		} else if (!hidden) {
			buf_putc(b, *s);
		}
	}
	if (open.n) {
		b->n = 0;
		buf_puts(b, name);
	}
	vec_done(&open);
}

/* The bracket that closes the one at s, if there is at most one pair in each of its two parts, before and after " as ";
 * *ret_as is where that stands, or the bracket itself. NULL: it is more complicated. */
static const char *close_of_path(const char *s, const char **ret_as)
{
	int depth = 1, pairs = 0;

	*ret_as = NULL;
	for (s++; *s; s++) {
		if (*s == '<' && (depth > 1 || ++pairs > 1))
			return NULL;
		depth += *s == '<' ? 1 : *s == '>' ? -1 : 0;
		if (!depth) {
			*ret_as = *ret_as ? *ret_as : s;
			return s;
		}
		if (depth == 1 && !*ret_as && str_starts(s, " as ")) {
			*ret_as = s;
			pairs = 0;
		}
	}
	return NULL;
}

/* "<a::B as c::D>::e" becomes "a::B::e" in place. */
static void drop_trait(struct buf *b)
{
	const char *type = b->data + 1, *as, *close = *b->data == '<' ? close_of_path(b->data, &as) : NULL;
	_cleanup_free_ char *plain = NULL;

	if (!close || !str_starts(close + 1, "::"))
		return;
	type += *type == '&';
	type += str_starts(type, "mut ") ? 4 : 0;
	plain = mem_printf("%.*s%s", (int)(as - type), type, close + 1);
	b->n = 0;
	buf_puts(b, plain);
}

/* The next segment of a path, NULL if there is none. What begins with a brace ({{closure}}) belongs to what is before it,
 * for alone it says nothing. */
static const char *next_segment(const char *s)
{
	while ((s = strstr(s, "::"))) {
		s += 2;
		if (*s && *s != '{')
			return s;
	}
	return NULL;
}

static void cut(struct buf *b, const char *text, size_t columns, const char *mark)
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
	cut(b, text, columns, MARK);
}

void cleantext_shorten(struct buf *b, const char *name, size_t columns, const char *mark)
{
	size_t wide = cleantext_columns(mark);
	struct buf folded = { 0 };
	const char *last;

	if (columns <= wide)
		return;
	fold_arguments(&folded, name, mark);
	buf_puts(&folded, "");
	if (cleantext_columns(folded.data) > columns)
		drop_trait(&folded);
	last = folded.data;
	if (cleantext_columns(last) > columns)
		for (const char *s = last; (s = next_segment(s));) {
			last = s;
			if (cleantext_columns(s) + wide + 2 <= columns) {
				buf_printf(b, "%s::", mark);
				break;
			}
		}
	if (cleantext_columns(last) <= columns)
		buf_puts(b, last);
	else
		cut(b, last, columns, mark);
	buf_done(&folded);
}

void cleantext_fit(struct buf *b, const char *name, size_t columns)
{
	if (columns > cleantext_columns(MARK) && cleantext_columns(name) <= columns)
		buf_puts(b, name);
	else
		cleantext_shorten(b, name, columns, MARK);
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

	cleantext_shorten(&text, name, columns, MARK);
	buf_puts(&text, "");
	if (text.n && !claim(set, text.data, name)) {
		text.n = 0;
		cleantext_fit(&text, name, columns);
		buf_puts(&text, "");
	}
	for (int k = 2; text.n && !claim(set, text.data, name); k++) {
		char number[16];

		snprintf(number, sizeof(number), "~%d", k);
		text.n = 0;
		if (columns > strlen(number))
			cleantext_shorten(&text, name, columns - strlen(number), MARK);
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
