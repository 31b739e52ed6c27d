/*
 * pagestacks.c - stacks of a pagetree and their weights: how they are added, and parts of them, either
 * those below a node, or the heaviest.
 */
#include <stdlib.h>
#include <string.h>

#include "export/page/pagetree.h"
#include "profile/profile.h"

enum { BUCKETS = 1 << 17, BUCKET_SHIFT = 32 - 17 };

/* Facts about each node while some are left out. */
struct pruning {
	const struct pagetree *t;
	const struct pagestacks *from;
	struct pagestacks *to;
	uint32_t *parent, *size, *first_entry; /* first_entry: one more ends them */
	float *share;                          /* of the weight of the event of which it has the largest */
	uint8_t *keep;
	uint32_t *waiting; /* by depth: ancestors of the last node that still need a left-out node */
	VEC(struct pagestacks_record) records;
};

/* --- adding --- */

static int compare_records(const void *a, const void *b)
{
	const struct pagestacks_record *x = a, *y = b;

	return ORDER(x->thread, y->thread) ?: ORDER(x->event, y->event) ?: ORDER(x->cause, y->cause) ?:
	       ORDER(x->slot, y->slot) ?: ORDER(x->span, y->span) ?: ORDER(x->value, y->value) ?:
	       ORDER(x->count, y->count);
}

static void add_up(uint64_t *to, uint64_t more)
{
	if (__builtin_add_overflow(*to, more, to))
		*to = UINT64_MAX;
}

void pagestacks_add(struct pagestacks *s, uint32_t node, struct pagestacks_record *records, size_t n,
		    bool join)
{
	if (n > 1)
		qsort(records, n, sizeof(*records), compare_records);
	for (size_t i = 0; i < n; i++) {
		const struct pagestacks_record *r = &records[i], *before = i ? r - 1 : NULL;
		struct pagetree_sample *last = s->samples.n ? &s->samples.v[s->samples.n - 1] : NULL;
		bool is_new = !before || before->thread != r->thread || before->event != r->event ||
			      before->cause != r->cause;
		struct pagetree_entry *e;

		if (is_new) {
			struct pagetree_entry entry = { .node = node,
							.thread = r->thread,
							.first = s->samples.n,
							.event = r->event,
							.cause = r->cause };

			vec_push(&s->entries, entry);
		}
		e = &s->entries.v[s->entries.n - 1];
		add_up(&e->value, r->value);
		add_up(&e->count, r->count);
		if (!s->times)
			continue;
		if (join && !is_new && last->slot == r->slot && !last->span && !r->span) {
			add_up(&last->value, r->value);
			last->count = MIN(last->count + r->count, UINT32_MAX);
		} else {
			vec_push(&s->samples, (struct pagetree_sample){ r->value, r->slot, r->span,
									MIN(r->count, UINT32_MAX) });
		}
	}
}

void pagestacks_end(struct pagestacks *s)
{
	struct pagetree_entry end = { .node = s->nodes.n, .first = s->samples.n };

	vec_push(&s->entries, end);
	s->entries.n--;
}

void pagestacks_done(struct pagestacks *s)
{
	vec_done(&s->nodes);
	vec_done(&s->depths);
	vec_done(&s->full);
	vec_done(&s->entries);
	vec_done(&s->samples);
}

/* --- the tree in numbers --- */

static void measure(struct pruning *p)
{
	const struct pagestacks *s = p->from;
	size_t n = s->nodes.n;

	p->parent = mem_alloc((n + 1) * sizeof(*p->parent));
	p->size = mem_alloc((n + 1) * sizeof(*p->size));
	p->first_entry = mem_alloc((n + 2) * sizeof(*p->first_entry));
	p->size[0] = 1;
	for (uint32_t i = 1; i < n; i++) {
		uint32_t above = i - 1;

		while (s->depths.v[above] >= s->depths.v[i])
			above = p->parent[above];
		p->parent[i] = above;
		p->size[i] = 1;
	}
	for (size_t i = n; i-- > 1;)
		p->size[p->parent[i]] += p->size[i];
	for (size_t i = 0; i < s->entries.n; i++)
		p->first_entry[s->entries.v[i].node + 1]++;
	for (size_t i = 1; i <= n; i++)
		p->first_entry[i] += p->first_entry[i - 1];
}

/* Idle waits outweigh all others and are seldom shown: they are weighed separately. */
static uint32_t class_of(const struct pagetree_entry *e)
{
	return e->event * 2 + (e->cause == CAUSE_IDLE);
}

/* The largest share that a node has of the weight of anything. */
static void weigh(struct pruning *p)
{
	const struct pagestacks *s = p->from;
	size_t n = s->nodes.n;
	_cleanup_free_ double *total = mem_alloc((n + 1) * sizeof(*total));

	p->share = mem_alloc((n + 1) * sizeof(*p->share));
	for (uint32_t c = 0; c < p->t->events.n * 2; c++) {
		bool any = false;

		for (size_t i = 0; i < s->entries.n; i++)
			if (class_of(&s->entries.v[i]) == c) {
				total[s->entries.v[i].node] += (double)s->entries.v[i].value;
				any = true;
			}
		if (!any)
			continue;
		for (size_t i = n; i-- > 1;)
			total[p->parent[i]] += total[i];
		for (size_t i = 0; i < n; i++) {
			float share = total[0] > 0 ? total[i] / total[0] : 0;

			p->share[i] = MAX(p->share[i], share);
		}
		memset(total, 0, n * sizeof(*total));
	}
}

/* Floats that are not negative are in the order of their bits. */
static uint32_t bucket_of(float share)
{
	uint32_t bits;

	memcpy(&bits, &share, sizeof(bits));
	return bits >> BUCKET_SHIFT;
}

/* Marks the nodes that stay: the heaviest, and of equal ones the first. Callers are as heavy as their
 * callees, so that they stay too. */
static void choose(struct pruning *p, size_t keep)
{
	_cleanup_free_ uint32_t *counts = mem_alloc(BUCKETS * sizeof(*counts));
	size_t n = p->from->nodes.n, above = 0, spare;
	uint32_t limit = BUCKETS;

	p->keep = mem_alloc(n + 1);
	for (size_t i = 0; i < n; i++)
		counts[bucket_of(p->share[i])]++;
	while (limit && above + counts[limit - 1] <= keep)
		above += counts[--limit];
	spare = keep > above ? keep - above : 0;
	p->keep[0] = 1;
	for (size_t i = 1; i < n; i++) {
		uint32_t bucket = bucket_of(p->share[i]);

		p->keep[i] = p->keep[p->parent[i]] &&
			     (bucket >= limit || p->from->depths.v[i] < 2 || (bucket + 1 == limit && spare));
		spare -= p->keep[i] && bucket < limit && spare;
	}
}

/* How many nodes below this one are left out; those below nodes that stay are theirs. */
static uint32_t left_out_below(const struct pruning *p, uint32_t node)
{
	uint32_t n = 0;

	for (uint32_t c = node + 1; c < node + p->size[node]; c += p->size[c])
		n += p->keep[c] ? 0 : p->size[c];
	return n;
}

/* A single node is as well shown as said to be left out. */
static void keep_single_ones(struct pruning *p)
{
	for (uint32_t i = 0; i < p->from->nodes.n; i++) {
		if (!p->keep[i] || left_out_below(p, i) != 1)
			continue;
		for (uint32_t c = i + 1; c < i + p->size[i]; c += p->size[c])
			p->keep[c] = 1;
	}
}

/* --- the part --- */

static void take_entries(struct pruning *p, uint32_t from, uint32_t to)
{
	const struct pagestacks *s = p->from;

	for (uint32_t i = p->first_entry[from]; i < p->first_entry[to]; i++) {
		const struct pagetree_entry *e = &s->entries.v[i];
		struct pagestacks_record r = { .thread = e->thread, .event = e->event, .cause = e->cause };

		if (!s->times) {
			r.value = e->value;
			r.count = e->count;
			vec_push(&p->records, r);
		}
		for (uint32_t k = e->first; s->times && k < e[1].first; k++) {
			const struct pagetree_sample *x = &s->samples.v[k];

			r.value = x->value;
			r.count = x->count;
			r.slot = x->slot;
			r.span = x->span;
			vec_push(&p->records, r);
		}
	}
}

static void add_node(struct pruning *p, uint32_t code, uint16_t depth, uint32_t full, bool join)
{
	vec_push(&p->to->nodes, code);
	vec_push(&p->to->depths, depth);
	vec_push(&p->to->full, full);
	pagestacks_add(p->to, p->to->nodes.n - 1, p->records.v, p->records.n, join);
	vec_clear(&p->records);
}

/* Adds a node for all that are left out below another. */
static void add_left_out(struct pruning *p, uint32_t depth)
{
	uint32_t above = p->waiting[depth];

	for (uint32_t c = above + 1; c < above + p->size[above]; c += p->size[c])
		if (!p->keep[c]) {
			take_entries(p, c, c + p->size[c]);
			p->to->left_out += p->size[c];
		}
	add_node(p, p->t->left_out << 1, depth + 1, above, true);
	p->waiting[depth] = PROFILE_NONE;
}

/* Copies the nodes that stay, and among them, in the order of names, those that stand for others. */
static void copy(struct pruning *p)
{
	const struct pagestacks *s = p->from;
	uint32_t last = 0; /* depth */

	p->waiting = mem_alloc((PAGETREE_DEPTH + 2) * sizeof(*p->waiting));
	for (size_t i = 0; i < PAGETREE_DEPTH + 2; i++)
		p->waiting[i] = PROFILE_NONE;
	for (uint32_t i = 0; i < s->nodes.n; i += p->keep[i] ? 1 : p->size[i]) {
		uint32_t depth = s->depths.v[i];

		if (!p->keep[i])
			continue;
		for (; i && last + 1 > depth; last--)
			if (p->waiting[last] != PROFILE_NONE)
				add_left_out(p, last);
		if (i && p->waiting[depth - 1] != PROFILE_NONE && s->nodes.v[i] >> 1 > p->t->left_out)
			add_left_out(p, depth - 1);
		take_entries(p, i, i + 1);
		add_node(p, s->nodes.v[i], depth, s->full.n ? s->full.v[i] : i, false);
		p->waiting[depth] = left_out_below(p, i) ? i : PROFILE_NONE;
		last = depth;
	}
	for (uint32_t d = last + 1; d-- > 0;)
		if (p->waiting[d] != PROFILE_NONE)
			add_left_out(p, d);
	pagestacks_end(p->to);
}

void pagestacks_prune(const struct pagetree *t, const struct pagestacks *from, size_t keep,
		      struct pagestacks *ret)
{
	struct pruning p = { .t = t, .from = from, .to = ret };

	*ret = (struct pagestacks){ .slot_ns = from->slot_ns, .times = from->times };
	measure(&p);
	weigh(&p);
	choose(&p, keep);
	keep_single_ones(&p);
	copy(&p);
	free(p.parent);
	free(p.size);
	free(p.first_entry);
	free(p.share);
	free(p.keep);
	free(p.waiting);
	vec_done(&p.records);
}

void pagestacks_slice(const struct pagestacks *from, uint32_t node, struct pagestacks *ret)
{
	uint16_t depth = from->depths.v[node];
	size_t e = 0;

	*ret = (struct pagestacks){ .slot_ns = from->slot_ns, .times = from->times };
	for (uint32_t i = node; i < from->nodes.n && (i == node || from->depths.v[i] > depth); i++) {
		vec_push(&ret->nodes, from->nodes.v[i]);
		vec_push(&ret->depths, (uint16_t)(from->depths.v[i] - depth));
		vec_push(&ret->full, from->full.n ? from->full.v[i] : i);
	}
	while (e < from->entries.n && from->entries.v[e].node < node)
		e++;
	for (; e < from->entries.n && from->entries.v[e].node < node + ret->nodes.n; e++) {
		struct pagetree_entry entry = from->entries.v[e];

		entry.node -= node;
		entry.first = ret->samples.n;
		vec_push(&ret->entries, entry);
		for (uint32_t k = from->entries.v[e].first; k < from->entries.v[e + 1].first; k++)
			vec_push(&ret->samples, from->samples.v[k]);
	}
	pagestacks_end(ret);
}

uint64_t pagestacks_next_slot(uint64_t slot_ns)
{
	uint64_t power = 1;

	while (slot_ns / power >= 10)
		power *= 10;
	return slot_ns < 2 * power ? 2 * power : slot_ns < 5 * power ? 5 * power : 10 * power;
}

void pagestacks_coarsen(struct pagestacks *s, uint64_t slot_ns)
{
	struct pagetree_sample *v = s->samples.v;
	uint32_t n = 0;

	for (size_t i = 0; s->times && i < s->entries.n; i++) {
		struct pagetree_entry *e = &s->entries.v[i];
		uint32_t from = e->first, to = e[1].first, first = n;

		for (uint32_t k = from; k < to; k++) {
			struct pagetree_sample x = v[k];
			uint64_t begin = x.slot * s->slot_ns / slot_ns;
			uint64_t end =
				x.span ? ((uint64_t)x.slot + x.span - 1) * s->slot_ns / slot_ns : begin;

			x.slot = begin;
			x.span = end > begin ? end - begin + 1 : 0;
			if (n > first && v[n - 1].slot == x.slot && !v[n - 1].span && !x.span) {
				if (__builtin_add_overflow(v[n - 1].value, x.value, &v[n - 1].value))
					v[n - 1].value = UINT64_MAX;
				v[n - 1].count = MIN((uint64_t)v[n - 1].count + x.count, UINT32_MAX);
			} else {
				v[n++] = x;
			}
		}
		e->first = first;
	}
	s->entries.v[s->entries.n].first = n;
	s->samples.n = n;
	s->slot_ns = slot_ns;
}

double pagestacks_left_out(const struct pagetree *t, const struct pagestacks *s, uint32_t event)
{
	double all = 0, out = 0;

	for (size_t i = 0; i < s->entries.n; i++) {
		const struct pagetree_entry *e = &s->entries.v[i];

		if (e->event != event)
			continue;
		all += (double)e->value;
		out += s->nodes.v[e->node] >> 1 == t->left_out ? (double)e->value : 0;
	}
	return all > 0 ? out / all : 0;
}
