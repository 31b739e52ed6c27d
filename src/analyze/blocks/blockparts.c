#include "analyze/blocks/blockparts.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/blocks/blocks.h"
#include "base/map.h"
#include "base/mem.h"
#include "profile/profile.h"

enum { DEEPEST = 64 };

struct spot {
	uint64_t start_ns, end_ns;
	uint64_t last_ns; /* where the latest of this and all before it ends */
	uint32_t mark;
};

struct blockparts {
	const struct profile *p;
	VEC(struct spot) spots; /* by start, what encloses first */
};

static int compare_spots(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return (x->mark > y->mark) - (x->mark < y->mark);
}

struct blockparts *blockparts_new(const struct profile *p)
{
	struct blockparts *b = mem_alloc(sizeof(*b));
	uint64_t last = 0;

	b->p = p;
	for (size_t i = 0; i < p->marks.n; i++) {
		const struct profile_mark *m = &p->marks.v[i];

		/* Long polls are the collector's of tasks. */
		if (m->start_ns < m->end_ns && strcmp(profile_str(p, m->kind), "block") && strcmp(profile_str(p, m->kind), "long poll"))
			vec_push(&b->spots, (struct spot){ .start_ns = m->start_ns, .end_ns = m->end_ns, .mark = i });
	}
	vec_sort(&b->spots, compare_spots);
	for (size_t i = 0; i < b->spots.n; i++)
		b->spots.v[i].last_ns = last = MAX(last, b->spots.v[i].end_ns);
	return b;
}

/* The first that may reach beyond time_ns. */
static size_t first_spot(const struct blockparts *b, uint64_t time_ns)
{
	size_t low = 0, high = b->spots.n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (b->spots.v[middle].last_ns > time_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Of spans that nest: how many are under way where the next one begins. */
struct nest {
	uint64_t ends[DEEPEST];
	uint32_t n;
};

static uint32_t enter(struct nest *n, uint64_t start_ns, uint64_t end_ns)
{
	uint32_t depth;

	while (n->n && n->ends[n->n - 1] <= start_ns)
		n->n--;
	depth = n->n;
	if (n->n < DEEPEST)
		n->ends[n->n++] = end_ns;
	return depth;
}

static struct block_span_part *part_of(struct block_parts *ret, struct map *index, const char *name, uint32_t kind, bool beside,
				       uint64_t first_ns, uint32_t depth)
{
	uint64_t *at = map_put(index, map_pair(kind, beside), ret->list.n);

	if (*at == ret->list.n)
		vec_push(&ret->list, (struct block_span_part){ .name = name, .beside = beside, .depth = depth, .first_ns = first_ns,
							       .covered_ns = first_ns });
	return &ret->list.v[*at];
}

static int compare_parts(const void *a, const void *b)
{
	const struct block_span_part *x = a, *y = b;

	if (x->beside != y->beside)
		return x->beside ? 1 : -1;
	if (x->beside && x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->first_ns != y->first_ns)
		return x->first_ns < y->first_ns ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return strcmp(x->name, y->name);
}

void blockparts_find(const struct blockparts *b, uint64_t start_ns, uint64_t end_ns, uint32_t thread, struct block_parts *ret)
{
	const struct profile *p = b->p;
	struct map index = { 0 };
	struct nest nest = { 0 };

	vec_clear(&ret->list);
	for (size_t i = first_spot(b, start_ns); i < b->spots.n && b->spots.v[i].start_ns < end_ns; i++) {
		const struct spot *s = &b->spots.v[i];
		const struct profile_mark *m = &p->marks.v[s->mark];
		bool beside = m->thread == PROFILE_NONE || m->thread != thread;
		uint64_t from = MAX(s->start_ns, start_ns), to = MIN(s->end_ns, end_ns);
		struct block_span_part *part;
		uint32_t depth;

		/* What the block is a part of is no part of the block. */
		if (to <= from || (!beside && s->start_ns <= start_ns && s->end_ns >= end_ns))
			continue;
		depth = beside ? 0 : enter(&nest, s->start_ns, s->end_ns);
		part = part_of(ret, &index, profile_str(p, m->kind), m->kind, beside, from, depth);
		part->count++;
		part->depth = MIN(part->depth, depth);
		if (to > part->covered_ns) {
			part->ns += to - MAX(from, part->covered_ns);
			part->covered_ns = to;
		}
	}
	vec_sort(&ret->list, compare_parts);
	map_done(&index);
}

void blockparts_sum(const struct blockparts *b, const struct blocks *blocks, struct block_parts *ret, uint64_t *ret_wall_ns)
{
	struct block_parts one = { 0 };
	struct map index = { 0 };
	struct strtab names;

	strtab_init(&names);
	vec_clear(&ret->list);
	*ret_wall_ns = 0;
	for (size_t i = 0; i < blocks->rows.n; i++) {
		const struct block_row *r = &blocks->rows.v[i];

		*ret_wall_ns += r->wall_ns;
		blockparts_find(b, r->start_ns, r->start_ns + r->wall_ns, r->thread, &one);
		for (size_t k = 0; k < one.list.n; k++) {
			const struct block_span_part *x = &one.list.v[k];
			/* In the order of their place in a block. */
			struct block_span_part *sum = part_of(ret, &index, x->name, strtab_add(&names, x->name), x->beside,
							      x->first_ns - r->start_ns, x->depth);

			sum->count += x->count;
			sum->ns += x->ns;
			sum->depth = MIN(sum->depth, x->depth);
		}
	}
	vec_sort(&ret->list, compare_parts);
	vec_done(&one.list);
	map_done(&index);
	strtab_done(&names);
}

void blockparts_free(struct blockparts *b)
{
	if (!b)
		return;
	vec_done(&b->spots);
	free(b);
}
