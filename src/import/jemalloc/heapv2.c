#include "import/jemalloc/heapv2.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"

static const char magic[] = "heap_v2/", old_magic[] = "heap profile:", maps_begin[] = "MAPPED_LIBRARIES:";
static const char symbols_begin[] = "--- symbol", heap_begin[] = "--- heap";

enum { MAX_DEPTH = 4096 };
static const double most = 9.2e18; /* an estimate that still fits a signed number */

struct line {
	const char *p, *end;
};

struct parse {
	const char *p, *end;
	struct heapv2 *out;
	bool in_stack;  /* counts are of the last stack, not of the header */
	bool counted;   /* that stack has its total */
};

bool heapv2_probe(const char *data, size_t n, bool whole)
{
	const char *end = n ? memchr(data, '\n', n) : NULL;
	size_t first = end ? (size_t)(end - data) : n;

	if (n >= sizeof(magic) - 1 && !memcmp(data, magic, sizeof(magic) - 1))
		return true;
	/* The symbols may be more than the beginning. */
	if (first == sizeof(symbols_begin) - 1 && !memcmp(data, symbols_begin, first))
		return !whole || memmem(data, n, heap_begin, sizeof(heap_begin) - 1);
	return first > sizeof(old_magic) && !memcmp(data, old_magic, sizeof(old_magic) - 1) &&
	       (memmem(data, first, "@ heap_v2/", 10) || memmem(data, first, "@ heapprofile", 13));
}

void heapv2_done(struct heapv2 *h)
{
	vec_done(&h->addresses);
	vec_done(&h->stacks);
	proc_maps_done(&h->maps);
	vec_done(&h->builds);
	vec_done(&h->names);
	strtab_done(&h->strings);
}

struct heapv2_pair heapv2_unbias(uint64_t interval, struct heapv2_pair seen)
{
	double mean, scale;

	if (!seen.objects || !seen.bytes || interval <= 1)
		return seen;
	mean = (double)seen.bytes / seen.objects;
	scale = -1 / expm1(-mean / interval);
	if (!(seen.bytes * scale < most) || !(seen.objects * scale < most))
		return seen;
	return (struct heapv2_pair){ llround(seen.objects * scale), llround(seen.bytes * scale) };
}

/* --- lines --- */

static void skip_blanks(struct line *l)
{
	while (l->p < l->end && (*l->p == ' ' || *l->p == '\t' || *l->p == '\r'))
		l->p++;
}

static bool take(struct line *l, char c)
{
	skip_blanks(l);
	if (l->p == l->end || *l->p != c)
		return false;
	l->p++;
	return true;
}

static bool take_number(struct line *l, uint64_t *ret)
{
	const char *start;

	skip_blanks(l);
	*ret = 0;
	for (start = l->p; l->p < l->end && isdigit((unsigned char)*l->p); l->p++)
		if (__builtin_mul_overflow(*ret, 10, ret) || __builtin_add_overflow(*ret, *l->p - '0', ret))
			return false;
	return l->p > start;
}

static bool take_address(struct line *l, uint64_t *ret)
{
	const char *start;

	skip_blanks(l);
	if (l->end - l->p < 3 || l->p[0] != '0' || (l->p[1] | 0x20) != 'x')
		return false;
	*ret = 0;
	for (start = l->p += 2; l->p < l->end && isxdigit((unsigned char)*l->p); l->p++) {
		int c = *l->p | 0x20;

		if (*ret >> 60)
			return false;
		*ret = *ret << 4 | (c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return l->p > start && (l->p == l->end || isspace((unsigned char)*l->p));
}

/* "1: 4096 [0: 0]"; the second pair may be missing. */
static bool take_pairs(struct line *l, struct heapv2_pair *live, struct heapv2_pair *all)
{
	*all = (struct heapv2_pair){ 0 };
	if (!take_number(l, &live->objects) || !take(l, ':') || !take_number(l, &live->bytes))
		return false;
	if (!take(l, '['))
		return true;
	return take_number(l, &all->objects) && take(l, ':') && take_number(l, &all->bytes) && take(l, ']');
}

static bool add_stack(struct parse *r, struct line *l)
{
	struct heapv2 *h = r->out;
	struct heapv2_stack s = { .first = h->addresses.n };
	uint64_t address;

	while (skip_blanks(l), l->p < l->end) {
		if (!take_address(l, &address)) {
			h->addresses.n = s.first;
			return false;
		}
		if (s.depth < MAX_DEPTH) {
			vec_push(&h->addresses, address);
			s.depth++;
		}
	}
	vec_push(&h->stacks, s);
	return true;
}

/* "t*: 1: 4096 [0: 0]" or that of one thread: the total where there is one, else their sum. */
static bool add_counts(struct parse *r, struct line *l)
{
	struct heapv2_pair live, all;
	struct heapv2_stack *s;
	bool total = take(l, '*');
	uint64_t thread;

	if ((!total && !take_number(l, &thread)) || !take(l, ':') || !take_pairs(l, &live, &all))
		return false;
	if (!r->in_stack || !r->out->stacks.n || (r->counted && !total))
		return true;
	s = &r->out->stacks.v[r->out->stacks.n - 1];
	if (total && !r->counted) {
		s->live = s->all = (struct heapv2_pair){ 0 };
		r->counted = true;
	} else if (total) {
		return false; /* two totals */
	}
	return !__builtin_add_overflow(s->live.objects, live.objects, &s->live.objects) &&
	       !__builtin_add_overflow(s->live.bytes, live.bytes, &s->live.bytes) &&
	       !__builtin_add_overflow(s->all.objects, all.objects, &s->all.objects) &&
	       !__builtin_add_overflow(s->all.bytes, all.bytes, &s->all.bytes);
}

/* jemalloc 3: counts and stack in one line. */
static bool add_old(struct parse *r, struct line *l)
{
	struct heapv2_stack *s;
	struct heapv2_pair live, all;

	if (!take_pairs(l, &live, &all) || !take(l, '@') || !add_stack(r, l))
		return false;
	s = &r->out->stacks.v[r->out->stacks.n - 1];
	s->live = live;
	s->all = all;
	r->in_stack = false;
	return true;
}

static void read_line(struct parse *r, struct line l)
{
	bool good;

	skip_blanks(&l);
	if (l.p == l.end)
		return;
	if (take(&l, '@')) {
		good = add_stack(r, &l);
		r->in_stack = good;
		r->counted = false;
	} else if (take(&l, 't')) {
		good = add_counts(r, &l);
	} else {
		good = add_old(r, &l);
	}
	r->out->bad_lines += !good;
}

static bool read_header(struct parse *r, struct line l)
{
	const char *at;

	if ((size_t)(l.end - l.p) >= sizeof(magic) - 1 && !memcmp(l.p, magic, sizeof(magic) - 1)) {
		l.p += sizeof(magic) - 1;
		return take_number(&l, &r->out->interval);
	}
	if (!heapv2_probe(l.p, l.end - l.p, true))
		return false;
	at = memmem(l.p, l.end - l.p, "@ heap_v2/", 10);
	if (!at)
		return true; /* "@ heapprofile": nothing was left out */
	l.p = at + 10;
	return take_number(&l, &r->out->interval);
}

/* Returns the next complete line; a line without an end was cut off and is not trusted. */
static bool next_line(struct parse *r, struct line *ret)
{
	const char *end = r->p < r->end ? memchr(r->p, '\n', r->end - r->p) : NULL;

	if (!end) {
		r->out->cut |= r->p < r->end;
		return false;
	}
	*ret = (struct line){ r->p, end };
	r->p = end + 1;
	return true;
}

static bool line_begins(const struct line *l, const char *text)
{
	size_t n = strlen(text);

	return (size_t)(l->end - l->p) >= n && !memcmp(l->p, text, n);
}

/* "0x55e0 outer--inner"; the innermost is to be the first. */
static void read_symbol(struct parse *r, struct line l)
{
	struct heapv2 *h = r->out;
	size_t first = h->names.n;
	uint64_t address;

	if (!take_address(&l, &address)) {
		h->bad_lines++;
		return;
	}
	skip_blanks(&l);
	while (l.p < l.end) {
		const char *mark = memmem(l.p, l.end - l.p, "--", 2), *end = mark ? mark : l.end;

		if (end > l.p)
			vec_push(&h->names, (struct heapv2_name){ address, strtab_add_n(&h->strings, l.p, end - l.p) });
		l.p = mark ? mark + 2 : l.end;
	}
	for (size_t i = first, k = h->names.n; i + 1 < k; i++, k--) {
		struct heapv2_name other = h->names.v[i];

		h->names.v[i] = h->names.v[k - 1];
		h->names.v[k - 1] = other;
	}
}

/* The line is that before the symbols; it becomes the dump's first one. */
static bool read_symbols(struct parse *r, struct line *l)
{
	r->out->symbolized = true;
	for (;;) {
		if (!next_line(r, l))
			return false;
		if (line_begins(l, "---"))
			break;
		if (!line_begins(l, "binary="))
			read_symbol(r, *l);
	}
	return next_line(r, l) && (!line_begins(l, heap_begin) || next_line(r, l));
}

int heapv2_parse(const char *text, size_t n, struct heapv2 *ret, struct err *err)
{
	struct parse r = { text, text + n, ret };
	struct line l;

	*ret = (struct heapv2){ 0 };
	strtab_init(&ret->strings);
	if (n > UINT32_MAX)
		return err_set(err, EFBIG, "a heap dump of more than 4 GB");
	if (!next_line(&r, &l) || (line_begins(&l, symbols_begin) && !read_symbols(&r, &l)) || !read_header(&r, l))
		return err_set(
			err, EINVAL,
			"this is no heap dump of jemalloc (heap_v2), or it was cut off in its first line; "
			"gasflame report shows the heaps of other tools");
	while (next_line(&r, &l)) {
		if (line_begins(&l, maps_begin)) {
			ret->has_maps = true;
			break;
		}
		read_line(&r, l);
	}
	/* A stack whose figures were cut off, or never written, weighs nothing: no harm. */
	if (ret->has_maps && r.p < r.end) {
		proc_maps_done(&ret->maps);
		proc_maps_parse(r.p, r.end - r.p, &ret->maps);
		ret->cut |= r.end[-1] != '\n';
	}
	for (size_t i = 0; i < ret->stacks.n && !ret->accumulated; i++)
		ret->accumulated = ret->stacks.v[i].all.objects;
	return 0;
}
