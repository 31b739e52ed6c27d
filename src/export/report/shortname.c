#include "export/report/shortname.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "export/report/cleantext.h"

/* A character and the brackets around it. */
struct place {
	uint32_t level; /* in how many brackets it is; a bracket is in itself */
	uint32_t close; /* of one that opens: where it closes */
	uint32_t depth; /* of one that opens: how many brackets that hold arguments it is in, itself included */
	bool args;      /* it opens and holds arguments, not the type that a path begins with (<A as B>::f) */
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* Is the bracket at s part of the name of a C++ operator: operator<, operator<<, operator()? */
static bool names_operator(const char *name, const char *s)
{
	if (*s == '<' && s > name && s[-1] == '<')
		s--;
	return s - name >= 8 && !memcmp(s - 8, "operator", 8);
}

static bool holds_arguments(const char *name, const char *s)
{
	char before = s > name ? s[-1] : 0;

	if (str_starts(s, "<impl ") || str_starts(s, "(anonymous "))
		return false;
	return before && (is_word(before) || strchr(":>)}", before) || (before == '<' && names_operator(name, s - 1)));
}

/* A place for each character of s, and for its end. Caller frees. NULL: the brackets do not match. */
static struct place *scan(const char *s)
{
	size_t n = strlen(s);
	struct place *places = mem_alloc((n + 1) * sizeof(*places));
	VEC(uint32_t) open = { 0 };

	for (size_t i = 0; i < n; i++) {
		struct place *p = &places[i];
		char before = i ? s[i - 1] : 0;

		if ((s[i] == '<' || s[i] == '(') && !names_operator(s, s + i)) {
			p->args = holds_arguments(s, s + i);
			p->depth = (open.n ? places[open.v[open.n - 1]].depth : 0) + p->args;
			vec_push(&open, i);
		}
		p->level = open.n;
		if (open.n && ((s[i] == '>' && before != '-' && before != '=') || s[i] == ')'))
			places[open.v[--open.n]].close = i;
	}
	if (open.n) {
		free(places);
		places = NULL;
	}
	vec_done(&open);
	return places;
}

/* --- shorter forms: each takes a name and returns another, which the caller frees --- */

/* The text of a buffer, which is the caller's from now on. */
static char *finish(struct buf *b)
{
	buf_puts(b, "");
	return b->data;
}

/* Arguments at that depth and deeper as mark, if that is shorter; depth 0: the parameters of functions. */
static char *fold(const char *s, uint32_t depth, const char *mark)
{
	_cleanup_free_ struct place *places = scan(s);
	struct buf b = { 0 };
	size_t i = 0;

	while (s[i]) {
		const struct place *p = places ? &places[i] : NULL;
		bool folds = p && p->args && (depth ? p->depth >= depth : s[i] == '(' && p->level == 1);
		_cleanup_free_ char *arguments = folds ? mem_strndup(s + i + 1, p->close - i - 1) : NULL;

		buf_putc(&b, s[i++]);
		if (folds && cleantext_columns(arguments) > cleantext_columns(mark)) {
			buf_puts(&b, mark);
			i = p->close;
		}
	}
	return finish(&b);
}

/* Types within brackets without their paths. */
static char *strip_paths(const char *s)
{
	_cleanup_free_ struct place *places = scan(s);
	struct buf b = { 0 };

	for (size_t i = 0; s[i];) {
		size_t n = 0;

		if (places && places[i].level && (!i || !is_word(s[i - 1])))
			while (is_word(s[i + n]))
				n++;
		if (n && s[i + n] == ':' && s[i + n + 1] == ':' && s[i + n + 2] &&
		    (is_word(s[i + n + 2]) || strchr("<(&*[", s[i + n + 2])))
			i += n + 2;
		else
			buf_putc(&b, s[i++]);
	}
	return finish(&b);
}

/* Where word stands within the brackets at from, but in none that are inside of them; the closing one: nowhere. */
static size_t find_within(const char *s, const struct place *places, size_t from, const char *word)
{
	size_t end = places[from].close;

	for (size_t i = from; i < end; i++)
		if (places[i].level == 1 && str_starts(s + i, word))
			return i;
	return end;
}

/* "<A as B>::f" and "<impl B for A>::f" as "A::f". */
static char *drop_trait(const char *s)
{
	_cleanup_free_ struct place *places = scan(s);
	const char *impl = strstr(s, "<impl ");
	size_t at = *s == '<' || !impl ? 0 : (size_t)(impl - s), from, to, end;

	if (!places || s[at] != '<' || places[at].level != 1 || !places[at].close ||
	    !str_starts(s + places[at].close + 1, "::"))
		return mem_strdup(s);
	to = end = places[at].close;
	if (impl && impl == s + at) {
		size_t word = find_within(s, places, at, " for ");

		from = word < end ? word + 5 : at + 6;
	} else {
		from = at + 1;
		to = find_within(s, places, at, " as ");
	}
	from += s[from] == '&';
	from += str_starts(s + from, "mut ") ? 4 : 0;
	from += str_starts(s + from, "dyn ") ? 4 : 0;
	return mem_printf("%.*s%.*s%s", (int)at, s, (int)(to > from ? to - from : 0), s + from, s + end + 1);
}

/* --- the path --- */

struct segments {
	VEC(size_t) at; /* where they begin, but for the first */
};

/* What begins with a brace ({{closure}}) belongs to what is before it, for alone it says nothing. Paths of Go have slashes. */
static void find_segments(const char *s, struct segments *ret)
{
	_cleanup_free_ struct place *places = scan(s);

	*ret = (struct segments){ 0 };
	for (const char *p = s; (p = strstr(p, "::"));) {
		bool outside = !places || !places[p - s].level;

		p += 2;
		if (outside && *p && *p != '{' && (*p != '<' || str_starts(p, "<impl ")))
			vec_push(&ret->at, p - s);
	}
	if (ret->at.n)
		return;
	for (size_t i = 0; s[i] && s[i] != ' '; i++)
		if (s[i] == '/' && (!places || !places[i].level) && s[i + 1] != '$' && is_word(s[i + 1]))
			vec_push(&ret->at, i + 1);
}

/* Appends what begins at a segment, behind mark, if it fits. */
static bool put_from(struct buf *b, const char *s, size_t from, size_t columns, const char *mark)
{
	_cleanup_free_ char *text = from ? mem_printf("%s%s%s", mark, s[from - 1] == '/' ? "/" : "::", s + from) : mem_strdup(s);
	bool fits = cleantext_columns(text) <= columns;

	if (fits)
		buf_puts(b, text);
	return fits;
}

/* Appends s with as much of its path as fits, but at least two segments. */
static bool put_form(struct buf *b, const char *s, size_t columns, const char *mark)
{
	bool done = put_from(b, s, 0, columns, mark);
	struct segments segments;

	if (done)
		return true;
	find_segments(s, &segments);
	/* A character has at most four bytes: a path of thousands of segments is not measured from each of them. */
	for (size_t i = 0, n = strlen(s); !done && i + 1 < segments.at.n; i++)
		done = n - segments.at.v[i] <= 4 * columns && put_from(b, s, segments.at.v[i], columns, mark);
	vec_done(&segments.at);
	return done;
}

/* Appends the last segment, or as much of it as fits. */
static void put_last(struct buf *b, const char *s, size_t columns, const char *mark)
{
	struct segments segments;
	size_t from;

	find_segments(s, &segments);
	from = segments.at.n ? segments.at.v[segments.at.n - 1] : 0;
	vec_done(&segments.at);
	if (!put_from(b, s, from, columns, mark))
		cleantext_cut_at(b, s + from, columns, mark);
}

void shortname_put(struct buf *b, const char *name, size_t columns, const char *mark)
{
	char *forms[6];
	size_t n = 0;

	if (columns <= cleantext_columns(mark))
		return;
	if (cleantext_columns(name) <= columns) {
		buf_puts(b, name);
		return;
	}
	forms[n++] = fold(name, 0, mark);
	forms[n++] = strip_paths(forms[0]);
	forms[n++] = drop_trait(forms[1]);
	for (uint32_t depth = 3; depth; depth--)
		forms[n++] = fold(forms[2], depth, mark);
	for (size_t i = 0; i < n; i++)
		if (put_form(b, forms[i], columns, mark))
			goto out;
	put_last(b, forms[n - 1], columns, mark);
out:
	for (size_t i = 0; i < n; i++)
		free(forms[i]);
}
