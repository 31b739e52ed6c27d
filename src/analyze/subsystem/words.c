#include "analyze/subsystem/words.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"

/* A word is literal text with gaps between its pieces. */
enum gap { GAP_NONE, GAP_ANY, GAP_PART }; /* *, {} */
enum { PIECES_MAX = 8, DEEPEST = 64 };

struct word {
	char *text; /* the pieces, each with its NUL */
	struct piece {
		const char *text;
		size_t n;
		enum gap before;
	} pieces[PIECES_MAX];
	unsigned count;
	bool at_start, at_end, open_end;
	uint32_t id;
};

static bool is_part(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* --- plain names --- */

/* What linkers and compilers append to a name. */
static size_t length_without_suffix(const char *name)
{
	static const char *const suffixes[] = { ".llvm.",      ".cold",  ".part.",
		                                ".constprop.", ".isra.", ".lto_priv." };
	size_t n = strnlen(name, WORDS_NAME_MAX);

	if (!memchr(name, '.', n))
		return n;
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		const char *at = strstr(name, suffixes[i]);

		if (at && at > name && (size_t)(at - name) < n)
			n = at - name;
	}
	return n;
}

static bool follows(const struct buf *out, const char *word)
{
	size_t n = strlen(word);

	return out->n >= n && !memcmp(out->data + out->n - n, word, n);
}

/* Does a bracket at the end of out open arguments, and no path? "<A as B>", "(*T)" of Go and "::<impl A for
 * B>" stay. */
static bool opens_arguments(const struct buf *out, const char *at)
{
	char before = out->n ? out->data[out->n - 1] : 0;

	if (!before || follows(out, "operator"))
		return false;
	if (*at == '<' && before == ':')
		return strncmp(at, "<impl ", strlen("<impl ")) != 0;
	return is_part(before) || before == '>' || (*at == '(' && before == ')');
}

void words_plain(const char *name, struct buf *out)
{
	size_t n = length_without_suffix(name), depth = 0, inside = 0; /* inside: brackets within arguments */
	bool kept[DEEPEST];

	out->n = 0;
	buf_puts(out, "");
	for (size_t i = 0; i < n; i++) {
		char c = name[i];
		bool open = c == '<' || c == '(' || c == '[', close = c == '>' || c == ')' || c == ']';

		if (c == '>' && i && name[i - 1] == '-')
			close = false;
		if (open && depth < DEEPEST) {
			kept[depth] = !inside && !opens_arguments(out, name + i);
			/* "f::<T>" is f. */
			if (!inside && !kept[depth] && follows(out, "::"))
				out->data[out->n -= 2] = 0;
			inside += !kept[depth];
			depth++;
			if (!inside)
				buf_putc(out, c);
		} else if (close && depth) {
			depth--;
			if (!inside)
				buf_putc(out, c);
			inside -= !kept[depth];
		} else if (!inside) {
			buf_putc(out, c);
		}
	}
}

/* --- words --- */

static void word_done(struct word *x)
{
	free(x->text);
}

static int refuse(struct err *err, const char *text, const char *why)
{
	return err_set(err, EINVAL, "'%s': %s", text, why);
}

/* Cuts the text of a word at its gaps. */
static int parse(const char *text, struct word *x, struct err *err)
{
	char *s = x->text = mem_strdup(text), *end;
	enum gap gap = GAP_NONE;
	bool named = false;

	if (*s == '^') {
		x->at_start = true;
		s++;
	}
	end = s + strlen(s);
	if (end > s && end[-1] == '$') {
		x->at_end = true;
		*--end = 0;
	}
	while (*s) {
		size_t n = strcspn(s, "*{");
		enum gap next = s[n] == '*' ? GAP_ANY : GAP_PART;

		if (s[n] == '{' && s[n + 1] != '}')
			return refuse(err, text, "{ is written without } after it");
		if (n || gap == GAP_PART) {
			if (x->count == PIECES_MAX)
				return refuse(err, text, "too many * and {} in one word");
			x->pieces[x->count++] = (struct piece){ s, n, gap };
		}
		if (!s[n]) {
			gap = GAP_NONE;
			break;
		}
		if (next == GAP_PART && named)
			return refuse(err, text, "{} can be in a word only once");
		named |= next == GAP_PART;
		gap = next;
		s[n] = 0;
		s += n + (next == GAP_PART ? 2 : 1);
	}
	if (!x->count || !x->pieces[0].n || x->pieces[0].before != GAP_NONE)
		return refuse(err, text, "a word begins with the letters of a name, not with * or {}");
	if (gap == GAP_PART && x->count == PIECES_MAX)
		return refuse(err, text, "too many * and {} in one word");
	if (gap == GAP_PART)
		x->pieces[x->count++] = (struct piece){ "", 0, GAP_PART };
	x->open_end = gap == GAP_ANY && !x->at_end;
	return 0;
}

int words_add(struct words *w, const char *text, uint32_t id, struct err *err)
{
	struct word x = { .id = id };
	int r = parse(text, &x, err);

	if (r) {
		word_done(&x);
		return r;
	}
	vec_push(&w->by_byte[(unsigned char)*x.pieces[0].text], w->list.n);
	vec_push(&w->list, x);
	return 0;
}

void words_done(struct words *w)
{
	for (size_t i = 0; i < w->list.n; i++)
		word_done(&w->list.v[i]);
	vec_done(&w->list);
	for (size_t i = 0; i < ARRAY_LEN(w->by_byte); i++)
		vec_done(&w->by_byte[i]);
}

/* --- matching --- */

static bool is_edge(const char *name, size_t at)
{
	return !at || !name[at] || !is_part(name[at - 1]) || !is_part(name[at]);
}

static bool ends_well(const struct word *x, const char *name, size_t at)
{
	return x->at_end ? !name[at] : x->open_end || is_edge(name, at);
}

/* Matches a word at a place of the name. Each piece takes the first place that fits, without a second try of
 * the pieces before it: time is linear in the name, whatever the name is. */
static bool match_at(const struct word *x, const char *name, size_t at, struct words_match *m)
{
	for (unsigned k = 0; k < x->count; k++) {
		const struct piece *p = &x->pieces[k];
		bool last = k + 1 == x->count, part = p->before == GAP_PART;
		size_t from = at;

		for (at += part;; at++) {
			if (part && (!name[at - 1] || !is_part(name[at - 1])))
				return false;
			if (!strncmp(name + at, p->text, p->n) && (!last || ends_well(x, name, at + p->n)))
				break;
			if (!name[at] || p->before == GAP_NONE)
				return false;
		}
		if (part) {
			m->from = from;
			m->to = at;
		}
		at += p->n;
	}
	return true;
}

/* Where the path begins: after the marks of Rust's references. */
static size_t start_of(const char *name)
{
	size_t n = strspn(name, "<&*_");

	return strncmp(name + n, "mut ", 4) && strncmp(name + n, "dyn ", 4) ? n : n + 4;
}

bool words_find(const struct words *w, const char *plain, struct words_match *ret)
{
	size_t start = start_of(plain);
	uint32_t best = UINT32_MAX;

	for (size_t at = 0; plain[at]; at++) {
		const struct words_bucket *list = &w->by_byte[(unsigned char)plain[at]];

		if (!list->n || !is_edge(plain, at))
			continue;
		for (size_t i = 0; i < list->n && list->v[i] < best; i++) {
			const struct word *x = &w->list.v[list->v[i]];
			struct words_match m = { .id = x->id };

			if ((x->at_start && at && at != start) || !match_at(x, plain, at, &m))
				continue;
			best = list->v[i];
			*ret = m;
		}
	}
	return best != UINT32_MAX;
}
