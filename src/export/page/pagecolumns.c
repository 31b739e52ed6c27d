/*
 * pagecolumns.c - a pagetree as columns that compress well.
 *
 * A function has few callees: a node holds no identity but the index of its identity in the list of
 * callees of its parent's identity, the most frequent first. Most of these are 0, 1 or 2.
 */
#include <stdlib.h>

#include "analyze/subsystem/subsystems.h"
#include "analyze/tree/crate.h"
#include "analyze/tree/ownfunction.h"
#include "export/page/pagedata.h"
#include "profile/profile.h"

/* Seven bits a byte, least first; the last one has no highest bit. */
static void put_number(struct buf *b, uint64_t v)
{
	char bytes[10];
	size_t n = 0;

	if (v < 128 && b->n + 1 < b->capacity) {
		b->data[b->n++] = (char)v;
		b->data[b->n] = 0;
		return;
	}
	for (; v > 127; v >>= 7)
		bytes[n++] = (char)(v | 128);
	bytes[n++] = (char)v;
	buf_add(b, bytes, n);
}

/* Valid until the next one is added. */
static struct buf *column(struct page_columns *c, const char *name)
{
	vec_push(&c->list, (struct page_column){ .name = name });
	return &c->list.v[c->list.n - 1].raw;
}

/* --- identities --- */

/* 2 × subsystem of a function, + 1 if it decides only where no other one does. Code of the kernel is of whoever called it. */
static unsigned subsystem_of(struct subsystems *t, const struct ident *id)
{
	struct subsystem_use use;

	if (!t || (id->kind != IDENT_USER && id->kind != IDENT_INLINED))
		return 0;
	use = subsystems_of_name(t, id->name, id->module, false);
	return 2 * use.subsystem + use.weak;
}

/* Puts the same list for every part of a tree, but only with the names of that part. The last side gives
 * the owner of the code. */
static void put_idents(struct page_columns *c, const struct pagetree *t, const struct pagestacks *s)
{
	struct buf names = { 0 }, modules = { 0 }, crates = { 0 }, kinds = { 0 }, subsystems = { 0 };
	_cleanup_free_ uint8_t *used = mem_alloc(t->idents.n + 1);
	struct crates own;

	for (size_t i = 0; i < s->nodes.n; i++)
		used[s->nodes.v[i] >> 1] = 1;
	for (size_t i = 0; i < t->units.n; i++)
		used[t->units.v[i].ident] = 1;
	crates_init(&own, t->sides[t->side_count - 1].p, NULL);
	for (size_t i = 0; i < t->idents.n; i++) {
		const struct ident *id = &t->idents.v[i];

		if (used[i])
			buf_puts(&names, id->name);
		buf_putc(&names, '\n');
		put_number(&modules, strtab_add(&c->modules, id->module));
		put_number(&crates, strtab_add(&c->crates, crate_name(&own, id)));
		buf_putc(&kinds, (char)((i == t->left_out ? PAGE_LEFT_OUT : id->kind) << 4 | crate_kind(&own, id) |
					(used[i] && ownfunction_is_library(id->name, id->module) ? PAGE_LIBRARY : 0)));
		put_number(&subsystems, used[i] ? subsystem_of(t->subsystems, id) : 0);
	}
	crates_done(&own);
	*column(c, "names") = names;
	*column(c, "modules") = modules;
	*column(c, "crates") = crates;
	*column(c, "kinds") = kinds;
	*column(c, "subsystems") = subsystems;
}

/* --- the tree --- */

struct edge {
	uint32_t from, to; /* to: as in pagetree.nodes */
	uint32_t count, id;
};

static int compare_edges(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return ORDER(x->from, y->from) ?: ORDER(y->count, x->count) ?: ORDER(x->to, y->to);
}

/* Finds the edges of the call graph, in *ret; returns the edge of each node. Caller frees both. */
static uint32_t *find_edges(const struct pagestacks *s, struct edge **ret, size_t *ret_n)
{
	uint32_t *of = mem_alloc((s->nodes.n + 1) * sizeof(*of));
	_cleanup_free_ uint32_t *above = mem_alloc((PAGETREE_DEPTH + 2) * sizeof(*above));
	VEC(struct edge) edges = { 0 };
	struct map index = { 0 };

	above[0] = s->nodes.v[0] >> 1;
	for (size_t i = 1; i < s->nodes.n; i++) {
		uint32_t depth = s->depths.v[i], from = above[depth - 1];
		struct edge new = { from, s->nodes.v[i], 0, edges.n };
		uint64_t *id = map_put(&index, map_pair(from, s->nodes.v[i]), edges.n);

		if (*id == edges.n)
			vec_push(&edges, new);
		edges.v[*id].count++;
		of[i] = *id;
		above[depth] = s->nodes.v[i] >> 1;
	}
	map_done(&index);
	*ret = edges.v;
	*ret_n = edges.n;
	return of;
}

static void put_tree(struct page_columns *c, const struct pagetree *t, const struct pagestacks *s)
{
	struct edge *edges;
	size_t n, k = 0;
	_cleanup_free_ uint32_t *of = find_edges(s, &edges, &n);
	_cleanup_free_ uint32_t *place = mem_alloc((n + 1) * sizeof(*place));
	struct buf fans = { 0 }, to = { 0 }, codes = { 0 }, ups = { 0 };

	if (n > 1)
		qsort(edges, n, sizeof(*edges), compare_edges);
	for (uint32_t from = 0; from < t->idents.n; from++) {
		size_t first = k;

		for (; k < n && edges[k].from == from; k++) {
			place[edges[k].id] = k - first;
			put_number(&to, edges[k].to);
		}
		put_number(&fans, k - first);
	}
	for (size_t i = 1; i < s->nodes.n; i++) {
		put_number(&codes, place[of[i]]);
		put_number(&ups, s->depths.v[i - 1] + 1 - s->depths.v[i]);
	}
	free(edges);
	*column(c, "fans") = fans;
	*column(c, "calls") = to;
	*column(c, "codes") = codes;
	*column(c, "ups") = ups;
}

/* Puts the number of each node among all nodes, if some were left out: as a difference from the one
 * before. A node that stands for others has no number of its own. */
static void put_full(struct page_columns *c, const struct pagetree *t, const struct pagestacks *s)
{
	struct buf full = { 0 };
	uint32_t before = 0;

	for (size_t i = 0; i < s->full.n; i++) {
		if (s->nodes.v[i] >> 1 == t->left_out)
			continue;
		put_number(&full, s->full.v[i] - before);
		before = s->full.v[i];
	}
	*column(c, "full") = full;
}

/* Of each node with which a unit of work begins: its distance from the one before, and the identity of the unit. */
static void put_units(struct page_columns *c, const struct pagetree *t, const struct pagestacks *s)
{
	struct buf units = { 0 };
	size_t before = 0, at = 0;

	for (size_t i = 0; i < t->units.n; i++) {
		const struct pagetree_unit *u = &t->units.v[i];

		/* Numbers among all grow, but for nodes that stand for others. */
		if (s->full.n)
			while (at < s->nodes.n && (s->nodes.v[at] >> 1 == t->left_out || s->full.v[at] < u->node))
				at++;
		else
			at = u->node;
		if (at == s->nodes.n)
			break;
		if (s->full.n && s->full.v[at] != u->node)
			continue;
		put_number(&units, at - before);
		put_number(&units, u->ident);
		before = at;
	}
	*column(c, "units") = units;
}

/* --- entries --- */

struct who {
	uint32_t thread, event, cause;
	uint32_t count, id;
};

static int compare_whos(const void *a, const void *b)
{
	const struct who *x = a, *y = b;

	return ORDER(y->count, x->count) ?: ORDER(x->id, y->id);
}

/* Thread, event and cause are one number, the most frequent ones the smallest. */
static void put_whos(struct page_columns *c, const struct pagestacks *s)
{
	struct buf table = { 0 }, of = { 0 };
	VEC(struct who) whos = { 0 };
	struct map index = { 0 };
	uint32_t *ids = mem_alloc((s->entries.n + 1) * sizeof(*ids)), *place;

	for (size_t i = 0; i < s->entries.n; i++) {
		const struct pagetree_entry *e = &s->entries.v[i];
		struct who new = { e->thread, e->event, e->cause, 0, whos.n };
		uint64_t *id =
			map_put(&index, map_pair(e->thread, e->event * CAUSE_COUNT + e->cause), whos.n);

		if (*id == whos.n)
			vec_push(&whos, new);
		whos.v[*id].count++;
		ids[i] = *id;
	}
	vec_sort(&whos, compare_whos);
	place = mem_alloc((whos.n + 1) * sizeof(*place));
	for (size_t i = 0; i < whos.n; i++) {
		place[whos.v[i].id] = i;
		put_number(&table, whos.v[i].thread);
		put_number(&table, whos.v[i].event);
		put_number(&table, whos.v[i].cause);
	}
	for (size_t i = 0; i < s->entries.n; i++)
		put_number(&of, place[ids[i]]);
	free(ids);
	free(place);
	vec_done(&whos);
	map_done(&index);
	*column(c, "whos") = table;
	*column(c, "who") = of;
}

/* Has each of its samples the value that its event's samples usually have? */
static bool is_regular(const struct pagetree *t, const struct pagestacks *s, const struct pagetree_entry *e)
{
	uint64_t period = t->events.v[e->event].period, product;

	if (__builtin_mul_overflow(e->count, period, &product) || e->value != product)
		return false;
	for (uint32_t i = e->first; i < e[1].first; i++)
		if (s->samples.v[i].value != s->samples.v[i].count * period)
			return false;
	return true;
}

/* Nine significant bits, of which the first is 1: the rest of a value is noise beside the slots. A byte of
 * exponent, 0 for values below 256, and a byte of the eight others. */
static void put_rounded(struct buf *exponents, struct buf *bits, uint64_t v)
{
	unsigned shift = v < 256 ? 0 : 64 - 9 - __builtin_clzll(v), exponent = v < 256 ? 0 : shift + 1;

	if (shift)
		v = ((v >> (shift - 1)) + 1) >> 1;
	if (v == 512) {
		v = 256;
		exponent++;
	}
	buf_putc(exponents, (char)exponent);
	buf_putc(bits, (char)v);
}

static void put_entries(struct page_columns *c, const struct pagetree *t, const struct pagestacks *s)
{
	struct buf at = { 0 }, counts = { 0 }, values = { 0 };
	uint32_t before = 0;

	for (size_t i = 0; i < s->entries.n; i++) {
		const struct pagetree_entry *e = &s->entries.v[i];

		put_number(&at, e->node - before);
		before = e->node;
		put_number(&counts, e->count);
		put_number(&values, is_regular(t, s, e) ? 0 : MIN(e->value, UINT64_MAX - 1) + 1);
	}
	*column(c, "at") = at;
	*column(c, "counts") = counts;
	*column(c, "values") = values;
}

static void put_samples(struct page_columns *c, const struct pagetree *t, const struct pagestacks *s)
{
	struct buf merged = { 0 }, slots = { 0 }, spans = { 0 }, exponents = { 0 }, bits = { 0 }, of = { 0 };

	for (size_t i = 0; s->times && i < s->entries.n; i++) {
		const struct pagetree_entry *e = &s->entries.v[i];
		const struct pagetree_event *event = &t->events.v[e->event];
		bool timed = event->role == ROLE_WAIT || event->role == ROLE_QUEUE || event->spanned;
		uint32_t n = e[1].first - e->first, slot = 0;
		bool regular = n < 2 || is_regular(t, s, e);

		put_number(&merged, e->count - n);
		for (uint32_t k = e->first; k < e[1].first; k++) {
			const struct pagetree_sample *x = &s->samples.v[k];

			put_number(&slots, x->slot - slot);
			slot = x->slot;
			if (timed)
				put_number(&spans, x->span);
			if (!regular)
				put_rounded(&exponents, &bits, x->value);
			if (n > 1 && e->count != n)
				put_number(&of, x->count - 1);
		}
	}
	*column(c, "merged") = merged;
	*column(c, "slots") = slots;
	*column(c, "spans") = spans;
	*column(c, "exponents") = exponents;
	*column(c, "bits") = bits;
	*column(c, "more") = of;
	for (size_t i = c->list.n - 6; i < c->list.n; i++)
		c->list.v[i].is_time = true;
}

void page_columns_make(struct page_columns *c, const struct pagetree *t, const struct pagestacks *s)
{
	*c = (struct page_columns){ 0 };
	strtab_init(&c->modules);
	strtab_init(&c->crates);
	put_idents(c, t, s);
	put_tree(c, t, s);
	put_full(c, t, s);
	put_units(c, t, s);
	put_whos(c, s);
	put_entries(c, t, s);
	put_samples(c, t, s);
}

void page_columns_done(struct page_columns *c)
{
	vec_done_each(&c->list, e, buf_done(&e->raw); buf_done(&e->packed));
	strtab_done(&c->modules);
	strtab_done(&c->crates);
}
