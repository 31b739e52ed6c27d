#include "export/svg/boxes.h"

#include <stdlib.h>
#include <string.h>

#include "folded/stacklist.h"

struct layout {
	const struct stacklist *l;
	struct boxes *b;
	double unit, narrowest;
	uint64_t sum;       /* of the lines so far */
	VEC(uint32_t) open; /* boxes that have not ended, from the root on */
	size_t told;        /* so many of them know whether they differ */
	/* By node. */
	uint64_t *self, *total; /* of lines that end at it, and of those below it too */
	int64_t *change;        /* NULL: the list has no differences */
	uint8_t *flags;
};

/* Of a node: lines end at it, or go on below it; some of these have one count only. */
enum { ENDS = 1, GOES_ON = 2, ONE_ENDS = 4, ONE_GOES_ON = 8 };

static bool is_narrow(const struct layout *t, uint64_t size)
{
	return size / t->unit < t->narrowest;
}

/* --- opening and closing --- */

/* Drops boxes that are too narrow. A dropped box was the last in the list: all above it were narrower
 * still. */
static void close_boxes(struct layout *t, size_t keep)
{
	while (t->open.n > keep) {
		uint32_t i = t->open.v[--t->open.n];
		struct box *b = &t->b->list.v[i];

		t->told = MIN(t->told, t->open.n);
		b->end = t->sum;
		if (is_narrow(t, b->end - b->start))
			t->b->list.n = i;
		else
			t->b->depth = MAX(t->b->depth, b->depth);
	}
}

/* Returns the box of a node at that depth: the open one, if it is this node's, or a new one. */
static struct box *need_box(struct layout *t, size_t depth, uint32_t node)
{
	struct box b = { .node = node, .depth = depth, .start = t->sum };

	if (t->open.n > depth && t->b->list.v[t->open.v[depth]].node == node) {
		close_boxes(t, depth + 1);
		return &t->b->list.v[t->open.v[depth]];
	}
	close_boxes(t, depth);
	if (depth) {
		const struct box *parent = &t->b->list.v[t->open.v[depth - 1]];

		b.waker = parent->waker || !strcmp(stacklist_name(t->l, parent->node), "--");
	}
	vec_push(&t->open, t->b->list.n);
	vec_push(&t->b->list, b);
	return &t->b->list.v[t->b->list.n - 1];
}

/* A line, or several: boxes differ if the first line in them does. */
static void add_lines(struct layout *t, uint64_t size, bool differs)
{
	for (; t->told < t->open.n; t->told++)
		t->b->list.v[t->open.v[t->told]].differs = differs;
	t->sum += size;
}

static void note_change(struct layout *t, struct box *b, int64_t change)
{
	uint64_t size;

	b->change += change;
	size = b->change < 0 ? -(uint64_t)b->change : (uint64_t)b->change;
	t->b->most_change = MAX(t->b->most_change, size);
}

static int64_t change_of(const struct stacklist_line *line)
{
	return line->before == STACKLIST_NONE ? 0 : (int64_t)line->value - (int64_t)line->before;
}

/* --- in the order of the lines --- */

static void lay_in_order(struct layout *t)
{
	VEC(uint32_t) path = { 0 }; /* nodes of a line, from its leaf to the root */

	for (size_t i = 0; i < t->l->lines.n; i++) {
		const struct stacklist_line *line = &t->l->lines.v[i];
		struct box *leaf = NULL;

		path.n = 0;
		for (uint32_t node = line->stack; node; node = t->l->nodes.v[node].parent)
			vec_push(&path, node);
		vec_push(&path, 0);
		for (size_t depth = 0; depth < path.n; depth++) {
			uint32_t node = path.v[path.n - 1 - depth];

			/* The common frames of both lines stay open with all above them. */
			if (depth + 1 < path.n && t->open.n > depth + 1 &&
			    t->b->list.v[t->open.v[depth]].node == node &&
			    t->b->list.v[t->open.v[depth + 1]].node == path.v[path.n - 2 - depth])
				continue;
			leaf = need_box(t, depth, node);
		}
		note_change(t, leaf, change_of(line));
		add_lines(t, line->value, line->before != STACKLIST_NONE);
	}
	vec_done(&path);
}

/* --- sorted --- */

/* Children come after their parents: one pass from the end adds up. */
static void sum_nodes(struct layout *t)
{
	const struct profile_nodes *nodes = &t->l->nodes;

	t->self = mem_alloc_large(nodes->n * sizeof(*t->self));
	t->total = mem_alloc_large(nodes->n * sizeof(*t->total));
	t->flags = mem_alloc(nodes->n);
	if (t->l->differential)
		t->change = mem_alloc(nodes->n * sizeof(*t->change));
	for (size_t i = 0; i < t->l->lines.n; i++) {
		const struct stacklist_line *line = &t->l->lines.v[i];

		t->self[line->stack] += line->value;
		t->flags[line->stack] |= ENDS | (line->before == STACKLIST_NONE ? ONE_ENDS : 0);
		if (t->change)
			t->change[line->stack] += change_of(line);
	}
	for (size_t i = nodes->n; i-- > 0;) {
		uint32_t parent = nodes->v[i].parent;

		t->total[i] += t->self[i];
		if (!i)
			break;
		t->total[parent] += t->total[i];
		t->flags[parent] |= GOES_ON | (t->flags[i] & (ONE_ENDS | ONE_GOES_ON) ? ONE_GOES_ON : 0);
	}
}

/* An item among its siblings: the lines that end at a node, or those that go on below it. */
struct item {
	uint32_t rank, node;
	uint32_t next; /* item of the same parent */
	bool goes_on;
};

struct items {
	VEC(struct item) list;
	uint32_t *head; /* first item below a node */
};

#define NO_ITEM 0 /* the first of the list is none */

/* Sorts the items whose parents are drawn and links them in their order. Items below a narrow node are not
 * needed. */
static void sort_items(const struct layout *t, struct items *items)
{
	const struct profile_nodes *nodes = &t->l->nodes;
	_cleanup_free_ uint32_t *rank = stacklist_rank(t->l), *start = NULL, *order = NULL;

	items->head = mem_alloc_large(nodes->n * sizeof(*items->head));
	vec_push(&items->list, (struct item){ 0 });
	for (size_t i = 1; i < nodes->n; i++) {
		if (is_narrow(t, t->total[nodes->v[i].parent]))
			continue;
		if (t->flags[i] & ENDS)
			vec_push(&items->list,
			         (struct item){ rank[2 * nodes->v[i].frame], i, NO_ITEM, false });
		if (t->flags[i] & GOES_ON)
			vec_push(&items->list,
			         (struct item){ rank[2 * nodes->v[i].frame + 1], i, NO_ITEM, true });
	}
	/* A counting sort by rank, from the last: each is put before its siblings. */
	start = mem_alloc((2 * t->l->names.n + 1) * sizeof(*start));
	order = mem_alloc((items->list.n + 1) * sizeof(*order));
	for (size_t i = 1; i < items->list.n; i++)
		start[items->list.v[i].rank + 1]++;
	for (size_t i = 1; i <= 2 * t->l->names.n; i++)
		start[i] += start[i - 1];
	for (size_t i = 1; i < items->list.n; i++)
		order[start[items->list.v[i].rank]++] = i;
	for (size_t i = items->list.n - 1; i-- > 0;) {
		uint32_t *head = &items->head[nodes->v[items->list.v[order[i]].node].parent];

		items->list.v[order[i]].next = *head;
		*head = order[i];
	}
}

static void lay_sorted(struct layout *t)
{
	struct items items = { 0 };
	VEC(uint32_t) above = { 0 }; /* items whose children are being laid */
	uint32_t at;

	sum_nodes(t);
	sort_items(t, &items);
	note_change(t, need_box(t, 0, 0), t->change ? t->change[0] : 0);
	if (t->flags[0] & ENDS)
		add_lines(t, t->self[0], !(t->flags[0] & ONE_ENDS));
	for (at = items.head[0]; at != NO_ITEM || above.n;) {
		const struct item *item = at == NO_ITEM ? NULL : &items.list.v[at];
		bool one;

		if (!item) {
			at = items.list.v[above.v[--above.n]].next;
			continue;
		}
		one = t->flags[item->node] & (item->goes_on ? ONE_GOES_ON : ONE_ENDS);
		if (is_narrow(t, t->total[item->node])) {
			close_boxes(t, above.n + 1);
			if (t->change && !item->goes_on)
				note_change(t, &(struct box){ 0 }, t->change[item->node]);
		} else {
			struct box *b = need_box(t, above.n + 1, item->node);

			if (item->goes_on) {
				vec_push(&above, at);
				at = items.head[item->node];
				continue;
			}
			note_change(t, b, t->change ? t->change[item->node] : 0);
		}
		add_lines(t, item->goes_on ? t->total[item->node] - t->self[item->node] : t->self[item->node],
		          !one);
		at = item->next;
	}
	vec_done(&above);
	vec_done(&items.list);
	mem_free_large(items.head, t->l->nodes.n * sizeof(*items.head));
}

void boxes_make(struct boxes *b, const struct stacklist *l, bool in_order, double narrowest)
{
	struct layout t = { .l = l, .b = b, .unit = stacklist_unit(l), .narrowest = narrowest };

	*b = (struct boxes){ .most_change = stacklist_unit(l) };
	if (in_order)
		lay_in_order(&t);
	else
		lay_sorted(&t);
	close_boxes(&t, 0);
	mem_free_large(t.self, l->nodes.n * sizeof(*t.self));
	mem_free_large(t.total, l->nodes.n * sizeof(*t.total));
	free(t.change);
	free(t.flags);
	vec_done(&t.open);
}

void boxes_done(struct boxes *b)
{
	vec_done(&b->list);
}
