/*
 * foldtable.c - most lines of a perf script are frames that were there before, with the same function, offset and module. So a
 * line's text after its address leads to its names by one look into a table, and a stack is a list of numbers of names.
 */
#include "folded/collapse/foldtable.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "folded/namehash.h"

enum {
	MEMO_LINES = 1 << 15,
	MEMO_BYTES = 1024, /* longer lines are not remembered */
	MEMO_NAMES = 4,    /* nor are those with more names */
	PIECE_BYTES = 1 << 20,
};

struct memo {
	uint64_t hash;
	char *text;
	uint32_t n, capacity;
	uint32_t count; /* of names, outermost first */
	uint32_t names[MEMO_NAMES];
};

struct fold {
	uint64_t hash, count;
	size_t first; /* in ids: outermost last */
	uint32_t n;   /* 0: the slot is free */
};

typedef VEC(uint32_t) id_list;

struct foldtable {
	struct foldtable_options o;
	struct strtab names;
	struct memo *memos;
	id_list ids;
	struct fold *folds;
	size_t fold_count, slot_count;
	struct foldtable_counts counts;

	/* The sample that is being read. */
	struct perfline_text thread; /* s is NULL: none */
	struct buf thread_name;
	bool java;
	uint64_t period;
	id_list stack; /* innermost first */
	struct buf name;
};

struct foldtable *foldtable_new(const struct foldtable_options *o)
{
	struct foldtable *t = mem_alloc(sizeof(*t));

	t->o = *o;
	strtab_init(&t->names);
	t->memos = mem_alloc(MEMO_LINES * sizeof(*t->memos));
	t->slot_count = 1 << 10;
	t->folds = mem_alloc(t->slot_count * sizeof(*t->folds));
	return t;
}

void foldtable_free(struct foldtable *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < MEMO_LINES; i++)
		free(t->memos[i].text);
	free(t->memos);
	free(t->folds);
	vec_done(&t->ids);
	vec_done(&t->stack);
	buf_done(&t->thread_name);
	buf_done(&t->name);
	strtab_done(&t->names);
	free(t);
}

/* --- stacks --- */

static uint64_t hash_ids(const uint32_t *ids, size_t n)
{
	uint64_t h = n;

	for (size_t i = 0; i < n; i++)
		h = namehash_mix(h ^ ids[i], 0x9e3779b97f4a7c15);
	return h;
}

static struct fold *find_fold(const struct foldtable *t, uint64_t hash, const uint32_t *ids, size_t n)
{
	size_t mask = t->slot_count - 1, i = hash & mask;

	for (; t->folds[i].n; i = (i + 1) & mask)
		if (t->folds[i].hash == hash && t->folds[i].n == n &&
		    !memcmp(t->ids.v + t->folds[i].first, ids, n * sizeof(*ids)))
			break;
	return &t->folds[i];
}

static void grow_folds(struct foldtable *t)
{
	struct fold *old = t->folds;
	size_t n = t->slot_count;

	t->slot_count *= 2;
	t->folds = mem_alloc(t->slot_count * sizeof(*t->folds));
	for (size_t i = 0; i < n; i++) {
		size_t at = old[i].hash & (t->slot_count - 1);

		if (!old[i].n)
			continue;
		while (t->folds[at].n)
			at = (at + 1) & (t->slot_count - 1);
		t->folds[at] = old[i];
	}
	free(old);
}

static void count_stack(struct foldtable *t, const uint32_t *ids, size_t n, uint64_t count)
{
	uint64_t hash = hash_ids(ids, n);
	struct fold *f = find_fold(t, hash, ids, n);

	if (!f->n) {
		if (t->fold_count * 2 >= t->slot_count) {
			grow_folds(t);
			f = find_fold(t, hash, ids, n);
		}
		*f = (struct fold){ .hash = hash, .first = t->ids.n, .n = n };
		vec_reserve(&t->ids, n);
		memcpy(t->ids.v + t->ids.n, ids, n * sizeof(*ids));
		t->ids.n += n;
		t->fold_count++;
	}
	if (__builtin_add_overflow(f->count, count, &f->count))
		f->count = UINT64_MAX;
}

/* --- names --- */

/* The names of a text with semicolons, outermost first. */
static void push_parts(struct foldtable *t, const char *s, size_t n, id_list *to)
{
	const char *end = s + n, *part;

	for (; (part = memchr(s, ';', end - s)); s = part + 1)
		vec_push(to, strtab_add_n(&t->names, s, part - s));
	vec_push(to, strtab_add_n(&t->names, s, end - s));
}

/* Appends a place in the source, "  file.c:12" or "libc.so.6[27b25]", without what is in brackets. */
static void put_source(struct buf *b, const char *s, size_t n)
{
	size_t at = b->n, start;

	buf_putc(b, ':');
	start = b->n;
	for (size_t i = 0; i < n; i++) {
		const char *close = s[i] == '[' ? memchr(s + i, ']', n - i) : NULL;

		if (close)
			i = close - s;
		else if (b->n > start || !perfline_space(s[i]))
			buf_putc(b, s[i]);
	}
	while (b->n > start && perfline_space(b->data[b->n - 1]))
		b->n--;
	if (b->n == start)
		b->n = at;
}

struct lines {
	const char *s, *end;
};

/* The next line, without its end; false: there is none. */
static bool next_line(struct lines *r, const char **ret, size_t *ret_n)
{
	const char *end;

	if (r->s >= r->end)
		return false;
	end = memchr(r->s, '\n', r->end - r->s);
	if (!end)
		end = r->end;
	*ret = r->s;
	*ret_n = end - r->s;
	r->s = end + 1;
	return true;
}

/* The names of a frame at the end of to, outermost first. */
static void make_names(struct foldtable *t, struct perfline_frame *f, struct lines *r, id_list *to)
{
	bool first = true, unknown = false;

	t->name.n = 0;
	if (t->o.inlined && t->o.inlined(t->o.context, f, t->java, &t->name)) {
		push_parts(t, t->name.data, t->name.n, to);
		return;
	}
	for (; perfline_take_name(f, &t->o.line, first, t->java, &t->name, &unknown); first = false) {
		const char *line;
		size_t n;

		if (t->o.source_lines && !unknown && next_line(r, &line, &n))
			put_source(&t->name, line, n);
		vec_push(to, strtab_add_n(&t->names, t->name.data ? t->name.data : "", t->name.n));
		t->name.n = 0;
	}
}

static struct memo *find_memo(struct foldtable *t, const char *s, size_t n, uint64_t *ret_hash)
{
	*ret_hash = namehash(s, n) ^ t->java;
	return &t->memos[*ret_hash >> 32 & (MEMO_LINES - 1)];
}

/* names: those from one on. */
static void remember(struct memo *m, uint64_t hash, const char *s, size_t n, const id_list *names, size_t from)
{
	if (m->capacity < n) {
		m->capacity = MIN(n * 2, MEMO_BYTES);
		m->text = mem_resize(m->text, m->capacity, 1);
	}
	memcpy(m->text, s, n);
	m->hash = hash;
	m->n = n;
	m->count = names->n - from;
	for (size_t i = 0; i < m->count; i++)
		m->names[i] = names->v[from + i];
}

/* --- lines --- */

/* Those from one on. */
static void reverse(id_list *ids, size_t from)
{
	for (size_t i = from, k = ids->n; i + 1 < k; i++) {
		uint32_t id = ids->v[i];

		ids->v[i] = ids->v[--k];
		ids->v[k] = id;
	}
}

static void take_frame(struct foldtable *t, const char *s, size_t n, struct lines *r)
{
	bool alone = !t->o.source_lines && !t->o.line.addresses && !t->o.inlined;
	size_t at = 0, before = t->stack.n;
	struct memo *m = NULL;
	struct perfline_frame f;
	uint64_t hash = 0;

	/* An address says nothing where there are names: they are those of the text after it. */
	while (at < n && perfline_space(s[at]))
		at++;
	while (at < n && perfline_word(s[at]))
		at++;
	if (alone && at < n && s[at] == ' ' && n - at <= MEMO_BYTES && t->thread.s) {
		m = find_memo(t, s + at, n - at, &hash);
		if (m->hash == hash && m->n == n - at && !memcmp(m->text, s + at, m->n)) {
			vec_reserve(&t->stack, MEMO_NAMES);
			for (size_t i = m->count; i; i--)
				t->stack.v[t->stack.n++] = m->names[i - 1];
			return;
		}
	}
	if (!perfline_frame(s, n, &f)) {
		t->counts.unknown_lines++;
		return;
	}
	if (!t->thread.s)
		return;
	if (f.pc.s + f.pc.n != s + at)
		m = NULL; /* the address lent its end to the name */
	if (!perfline_frame_hidden(&f))
		make_names(t, &f, r, &t->stack);
	if (m && t->stack.n - before <= MEMO_NAMES)
		remember(m, hash, s + at, n - at, &t->stack, before);
	reverse(&t->stack, before);
}

static void take_header(struct foldtable *t, const struct perfline_header *h, const char *event)
{
	struct buf *b = &t->thread_name;

	if (h->event.s && event && (h->event.n != strlen(event) || memcmp(h->event.s, event, h->event.n))) {
		t->counts.filtered++;
		return;
	}
	b->n = 0;
	buf_add(b, h->comm.s, h->comm.n);
	if (t->o.pid || t->o.tid) {
		buf_putc(b, '-');
		if (h->pid.s)
			buf_add(b, h->pid.s, h->pid.n);
		else
			buf_putc(b, '?');
	}
	if (t->o.tid) {
		buf_putc(b, '/');
		buf_add(b, h->tid.s, h->tid.n);
	}
	for (size_t i = 0; i < b->n; i++)
		if (b->data[i] == ' ')
			b->data[i] = '_';
	t->thread = (struct perfline_text){ b->data, b->n };
	t->java = b->n >= 4 && !memcmp(b->data, "java", 4);
	t->period = h->period;
}

static void end_sample(struct foldtable *t)
{
	size_t before = t->stack.n;

	if (!t->thread.s)
		return;
	push_parts(t, t->thread.s, t->thread.n, &t->stack);
	reverse(&t->stack, before);
	count_stack(t, t->stack.v, t->stack.n, t->period);
	t->counts.samples++;
	t->thread.s = NULL;
	vec_clear(&t->stack);
}

void foldtable_add(struct foldtable *t, const char *text, size_t size, const char *event)
{
	struct lines r = { text, text + size };
	struct perfline_header h;
	const char *s;
	size_t n;

	while (next_line(&r, &s, &n)) {
		if (!n)
			end_sample(t);
		else if (*s == '#')
			continue;
		else if (perfline_header(s, n, &h))
			take_header(t, &h, event);
		else
			take_frame(t, s, n, &r);
	}
	t->thread.s = NULL;
	vec_clear(&t->stack);
}

struct perfline_text foldtable_first_event(const char *text, size_t size)
{
	struct lines r = { text, text + size };
	struct perfline_header h;
	const char *s;
	size_t n;

	while (next_line(&r, &s, &n))
		if (n && *s != '#' && perfline_header(s, n, &h) && h.event.s)
			return h.event;
	return (struct perfline_text){ "", 0 };
}

/* --- the end --- */

/* The names of another table in this one: of each where they begin in all, and of the last where they end; innermost first. */
static size_t *translate(struct foldtable *t, const struct foldtable *other,
			 bool (*replace)(void *context, const char *name, struct buf *b), void *context, id_list *all)
{
	size_t *starts = mem_alloc((other->names.n + 1) * sizeof(*starts));

	for (size_t i = 0; i < other->names.n; i++) {
		const char *name = strtab_get(&other->names, i);

		starts[i] = all->n;
		t->name.n = 0;
		if (replace && replace(context, name, &t->name)) {
			push_parts(t, t->name.n ? t->name.data : "", t->name.n, all);
			reverse(all, starts[i]);
		} else {
			vec_push(all, strtab_add(&t->names, name));
		}
	}
	starts[other->names.n] = all->n;
	return starts;
}

void foldtable_join_renamed(struct foldtable *t, const struct foldtable *other,
			    bool (*replace)(void *context, const char *name, struct buf *b), void *context)
{
	id_list ids = { 0 }, all = { 0 };
	_cleanup_free_ size_t *starts = translate(t, other, replace, context, &all);

	for (size_t i = 0; i < other->slot_count; i++) {
		const struct fold *f = &other->folds[i];

		if (!f->n)
			continue;
		vec_clear(&ids);
		for (size_t k = 0; k < f->n; k++) {
			uint32_t name = other->ids.v[f->first + k];

			for (size_t at = starts[name]; at < starts[name + 1]; at++)
				vec_push(&ids, all.v[at]);
		}
		count_stack(t, ids.v, ids.n, f->count);
	}
	vec_done(&ids);
	vec_done(&all);
	t->counts.samples += other->counts.samples;
	t->counts.filtered += other->counts.filtered;
	t->counts.unknown_lines += other->counts.unknown_lines;
}

void foldtable_join(struct foldtable *t, const struct foldtable *other)
{
	foldtable_join_renamed(t, other, NULL, NULL);
}

/* As the bytes of both lines would compare: after a name that the other one begins with comes a semicolon, or the end. */
static int compare_names(const char *a, bool a_last, const char *b, bool b_last)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return ORDER(*a ? (unsigned char)*a : a_last ? 0 : ';', *b ? (unsigned char)*b : b_last ? 0 : ';');
}

static int compare_folds(const void *a, const void *b, void *context)
{
	const struct foldtable *t = context;
	const struct fold *x = *(const struct fold *const *)a, *y = *(const struct fold *const *)b;
	const uint32_t *ids_x = t->ids.v + x->first, *ids_y = t->ids.v + y->first;
	size_t n = x->n, m = y->n;

	while (n && m && ids_x[n - 1] == ids_y[m - 1]) {
		n--;
		m--;
	}
	if (!n || !m)
		return ORDER(n, m);
	return compare_names(strtab_get(&t->names, ids_x[n - 1]), n == 1, strtab_get(&t->names, ids_y[m - 1]), m == 1);
}

static void put_fold(const struct foldtable *t, const struct fold *f, struct buf *b)
{
	for (size_t i = f->n; i; i--) {
		buf_puts(b, strtab_get(&t->names, t->ids.v[f->first + i - 1]));
		buf_putc(b, i > 1 ? ';' : ' ');
	}
	buf_printf(b, "%llu\n", (unsigned long long)f->count);
}

int foldtable_write(struct foldtable *t, int (*put)(void *context, const char *text, size_t n), void *context)
{
	_cleanup_free_ const struct fold **order = mem_alloc((t->fold_count + 1) * sizeof(*order));
	_cleanup_(buf_done) struct buf b = { 0 };
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < t->slot_count; i++)
		if (t->folds[i].n)
			order[n++] = &t->folds[i];
	qsort_r(order, n, sizeof(*order), compare_folds, t);
	for (size_t i = 0; i < n && !r; i++) {
		put_fold(t, order[i], &b);
		if (b.n < PIECE_BYTES && i + 1 < n)
			continue;
		r = put(context, b.data, b.n);
		b.n = 0;
	}
	return r;
}

struct foldtable_counts foldtable_counts(const struct foldtable *t)
{
	return t->counts;
}
