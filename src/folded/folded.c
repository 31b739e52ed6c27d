/*
 * folded.c - the reader of folded text. It is read in pieces and nothing of it is kept but the names.
 *
 * Three things make it fast: a line shares the beginning of the one before it, frame by frame, as far as they
 * are equal (sorted input is mostly that); names are looked up by a hash that takes sixteen bytes at a time;
 * and the tree is built by batches, in another thread (foldedtree.h).
 */
#include "folded/folded.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file/stream.h"
#include "base/mem.h"
#include "folded/foldedtree.h"
#include "folded/namehash.h"
#include "folded/stacklist.h"

enum {
	PIECE_BYTES = 256 << 10,
	LONGEST_LINE = 16 << 20,
	DIGITS = 18, /* of a count's whole part: more do not fit */
};

/* --- names --- */

struct names {
	struct strtab *strings;
	struct name_slot {
		uint64_t hash;
		uint32_t id; /* + 1; 0 = free */
		uint32_t length;
	} * slots;
	size_t slot_count, n;
};

static struct name_slot *find_name(const struct names *t, uint64_t hash, const char *s, size_t n)
{
	size_t mask = t->slot_count - 1, i = hash & mask;

	for (; t->slots[i].id; i = (i + 1) & mask)
		if (t->slots[i].hash == hash && t->slots[i].length == n &&
		    !memcmp(t->strings->strings[t->slots[i].id - 1], s, n))
			break;
	return &t->slots[i];
}

static void grow_names(struct names *t)
{
	struct names old = *t;

	t->slot_count = old.slot_count ? old.slot_count * 2 : 4096;
	t->slots = mem_alloc(t->slot_count * sizeof(*t->slots));
	for (size_t i = 0; i < old.slot_count; i++) {
		size_t at = old.slots[i].hash & (t->slot_count - 1);

		if (!old.slots[i].id)
			continue;
		while (t->slots[at].id)
			at = (at + 1) & (t->slot_count - 1);
		t->slots[at] = old.slots[i];
	}
	free(old.slots);
}

static uint32_t name_id(struct names *t, const char *s, size_t n)
{
	uint64_t hash = namehash(s, n);
	struct name_slot *slot;

	if (t->n * 2 >= t->slot_count)
		grow_names(t);
	slot = find_name(t, hash, s, n);
	if (!slot->id) {
		*slot = (struct name_slot){ hash, strtab_add_n(t->strings, s, n) + 1, n };
		t->n++;
	}
	return slot->id - 1;
}

/* --- counts --- */

struct count {
	uint64_t whole, fraction; /* fraction in 10^-STACKLIST_DECIMALS */
	unsigned decimals;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* White space, digits, perhaps a point and more digits: the number that ends at *end, which then is where its
 * white space begins. */
static bool take_count(const char *line, const char **end, struct count *ret)
{
	const char *e = *end, *s = e, *point = NULL;

	while (s > line && is_digit(s[-1]))
		s--;
	if (s > line && s[-1] == '.') {
		point = s - 1;
		for (s = point; s > line && is_digit(s[-1]);)
			s--;
	}
	if (s == (point ? point : e) || s == line || !isspace((unsigned char)s[-1]))
		return false;
	*end = s - 1;
	while (s + 1 < e && *s == '0' && is_digit(s[1]))
		s++;
	if ((point ? point : e) - s > DIGITS)
		return false;
	*ret = (struct count){ 0 };
	while (s < e && s != point)
		ret->whole = ret->whole * 10 + (*s++ - '0');
	if (!point)
		return true;
	for (s = point + 1; s < e && ret->decimals < STACKLIST_DECIMALS; ret->decimals++)
		ret->fraction = ret->fraction * 10 + (*s++ - '0');
	ret->fraction += s < e && *s >= '5';
	for (; ret->decimals && ret->fraction % 10 == 0; ret->decimals--)
		ret->fraction /= 10;
	return true;
}

/* --- lines --- */

struct parser {
	const struct folded_options *o;
	struct stacklist *l;
	struct names names;
	struct foldedtree *tree;
	struct folded_batch *batch; /* that is being filled */
	VEC(uint32_t) path;         /* frames of the last line, from the outermost on */
	const char *last;           /* the stack's text of the last line; NULL: not at hand, or not in this batch */
	size_t last_n;
	uint64_t line;
};

static size_t common_bytes(const char *a, const char *b, size_t n)
{
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		uint64_t differ = namehash_load(a + i, 8) ^ namehash_load(b + i, 8);

		if (differ)
			return i + (__builtin_ctzll(differ) >> 3);
	}
	while (i < n && a[i] == b[i])
		i++;
	return i;
}

/* How many frames of the line before are also this one's. */
static size_t shared_frames(const struct parser *p, const char *s, size_t n)
{
	size_t common, k = p->path.n;

	if (!p->last)
		return 0;
	common = common_bytes(p->last, s, MIN(p->last_n, n));
	for (; k; k--) {
		size_t end = p->batch->frames.v[p->path.v[k - 1]].end;

		if (end <= common && (end == n || s[end] == ';'))
			break;
	}
	return k;
}

static void add_frame(struct parser *p, const char *name, size_t n, size_t end)
{
	struct folded_frame f = { .end = end,
		                  .name = name_id(&p->names, name, n),
		                  .depth = p->path.n,
		                  .parent = p->path.n ? p->path.v[p->path.n - 1] : FOLDED_NONE };

	vec_push(&p->path, p->batch->frames.n);
	vec_push(&p->batch->frames, f);
}

/* The frames of a stack's text, outermost first. */
static void add_frames(struct parser *p, const char *s, size_t n)
{
	size_t at = 0;

	p->path.n = shared_frames(p, s, n);
	if (p->path.n)
		at = p->batch->frames.v[p->path.v[p->path.n - 1]].end + 1;
	while (at < n) {
		const char *semicolon = memchr(s + at, ';', n - at);
		size_t end = semicolon ? (size_t)(semicolon - s) : n;

		add_frame(p, s + at, end - at, end);
		at = end + 1;
	}
	p->last = s;
	p->last_n = n;
}

/* Leaf first. The beginning of the line becomes its end: empty names are cut off there. */
static void add_reversed(struct parser *p, const char *s, size_t n)
{
	for (; n && *s == ';'; s++)
		n--;
	p->path.n = 0;
	while (n) {
		const char *semicolon = memrchr(s, ';', n);
		size_t from = semicolon ? (size_t)(semicolon - s) + 1 : 0;

		add_frame(p, s + from, n - from, 0);
		n = from ? from - 1 : 0;
	}
}

static void end_batch(struct parser *p)
{
	if (p->batch->n)
		p->batch = foldedtree_put(p->tree);
	vec_clear(&p->path);
	p->last = NULL;
}

/* In the list's unit, which is made finer at need. */
static int put_count(struct parser *p, const struct count *c, uint64_t *ret)
{
	struct stacklist *l = p->l;
	uint64_t fraction = c->fraction;
	int r = 0;

	if (c->decimals > l->decimals) {
		end_batch(p);
		foldedtree_wait(p->tree);
		r = stacklist_set_decimals(l, c->decimals);
	}
	if (r)
		return r;
	for (unsigned i = c->decimals; i < l->decimals; i++)
		fraction *= 10;
	if (__builtin_mul_overflow(c->whole, stacklist_unit(l), ret) ||
	    __builtin_add_overflow(*ret, fraction, ret) || *ret > INT64_MAX)
		return -ERANGE;
	return 0;
}

static int take_line(struct parser *p, const char *s, size_t n)
{
	const char *end = s + n;
	struct count value, before;
	struct stacklist_line line = { .before = STACKLIST_NONE };
	int r = 0;

	p->line++;
	if (n && end[-1] == '\r')
		end--;
	if (!take_count(s, &end, &value)) {
		if (!p->l->ignored++)
			p->l->ignored_line = p->line;
		return 0;
	}
	if (take_count(s, &end, &before)) {
		r = put_count(p, &before, &line.before);
		p->l->differential = true;
	}
	if (!r)
		r = put_count(p, &value, &line.value);
	/* The unit may have become finer by the second. */
	if (!r && line.before != STACKLIST_NONE)
		r = put_count(p, &before, &line.before);
	if (r)
		return r;
	while (end > s && end[-1] == ';')
		end--;
	if (p->o->reverse)
		add_reversed(p, s, end - s);
	else
		add_frames(p, s, end - s);
	p->batch->depth = MAX(p->batch->depth, p->path.n);
	p->batch->lines[p->batch->n++] =
		(struct folded_line){ p->path.n ? p->path.v[0] : FOLDED_NONE,
		                      p->path.n ? p->path.v[p->path.n - 1] : FOLDED_NONE, line };
	if (p->batch->n == FOLDED_BATCH)
		end_batch(p);
	return 0;
}

/* All whole lines of a piece, whose first searched bytes have no end of a line; *ret_rest is where the
 * unfinished one begins. */
static int take_lines(struct parser *p, char *data, size_t n, size_t searched, bool whole, size_t *ret_rest)
{
	size_t at = 0;
	int r = 0;

	while (at < n && !r) {
		char *end = memchr(data + searched, '\n', n - searched);
		size_t length = end ? (size_t)(end - data) - at : n - at;

		if (!end && !whole)
			break;
		r = take_line(p, data + at, length);
		at += length + 1;
		searched = MIN(at, n);
	}
	*ret_rest = MIN(at, n);
	return r;
}

/* Names are C strings: a NUL in them becomes another invisible character. */
static void replace_nul(char *data, size_t n)
{
	for (char *s = data; (s = memchr(s, 0, data + n - s)); s++)
		*s = 1;
}

/* Of a file the size is known, and in most of them 200 bytes make a node. */
static void expect(const struct stream *in, struct stacklist *l)
{
	uint64_t size = stream_size_hint(in);

	if (size > PIECE_BYTES)
		nodes_expect(&l->nodes, MIN(size / 200, 1 << 23));
}

int folded_read(struct stream *in, const struct folded_options *o, struct stacklist *l, struct err *err)
{
	struct parser p = { .o = o, .l = l, .names = { .strings = &l->names } };
	size_t capacity = PIECE_BYTES, have = 0, rest = 0;
	char *data = mem_resize(NULL, capacity, 1);
	ssize_t n = 1;
	int r = 0;

	expect(in, l);
	p.tree = foldedtree_new(l, o->first_apart, &p.batch);
	for (size_t i = 0; i < l->names.n; i++)
		name_id(&p.names, l->names.strings[i], strlen(l->names.strings[i]));
	while (n > 0 && !r) {
		if (have == capacity)
			data = mem_resize(data, capacity *= 2, 1);
		n = stream_read(in, data + have, capacity - have, err);
		if (n < 0) {
			r = n;
			break;
		}
		replace_nul(data + have, n);
		r = take_lines(&p, data, have + n, have, !n, &rest);
		have += n;
		if (r)
			r = err_set(err, -r, "line %llu: its count is too large", (unsigned long long)p.line);
		else if (have - rest > LONGEST_LINE)
			r = err_set(err, EINVAL, "a line of more than 16 MB: these are no folded stacks");
		memmove(data, data + rest, have - rest);
		have -= rest;
		p.last = NULL;
	}
	free(data);
	end_batch(&p);
	foldedtree_free(p.tree);
	free(p.names.slots);
	vec_done(&p.path);
	return r;
}

bool folded_probe(const char *data, size_t n, bool whole)
{
	size_t good = 0, bad = 0, at = 0;

	while (at < n && good + bad < 100) {
		const char *s = data + at, *newline = memchr(s, '\n', n - at);
		size_t length = newline ? (size_t)(newline - s) : n - at;
		const char *end = s + length;
		struct count c;

		if (!newline && !whole && good + bad)
			break;
		/* A first line that is longer than the buffer may be folded. */
		if (!newline && !whole)
			return memchr(s, ';', length) && !memchr(s, 0, length);
		if (length && end[-1] == '\r')
			end--;
		if (take_count(s, &end, &c))
			good++;
		else
			bad += length > 0 && *s != '#'; /* Austin's head */
		at += length + 1;
	}
	return good > bad;
}
