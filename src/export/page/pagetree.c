#include "export/page/pagetree.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/task/tasktype.h"
#include "base/buf.h"
#include "base/text/str.h"
#include "export/report/cleantext.h"
#include "profile/profile.h"

/* Where a walk stands: the k-th function of the frame of a stack. Items of one identity below one node are
 * one node. */
struct item {
	uint32_t stack, code; /* code: identity << 1 | inlined */
	uint16_t depth, k;
	uint8_t side;
};

struct side {
	const struct profile *p;
	struct causes *causes;
	uint32_t *frame_first; /* into codes; one more ends them */
	VEC(uint32_t) codes;
	uint32_t *cgrouppath_of; /* by thread: identity */
	uint32_t *order;    /* samples by group */
	struct tasktypes types;
	VEC(uint32_t) unit_of; /* by type: its identity, PROFILE_NONE = none */
	/* The prefix tree of the group that is walked: lists of children and of samples, valid where epoch is
	 * the group's. */
	uint32_t *child, *sibling, *epoch, *sample, *next_sample;
};

struct builder {
	struct pagetree *t;
	struct side sides[PAGETREE_SIDES];
	struct map index; /* of identities while they are collected */
	uint32_t no_stack;
	uint32_t epoch;
	VEC(struct item) items, now;
	VEC(struct pagestacks_record) records;
	bool any_unit;
	VEC(uint32_t) unit_at; /* by depth: the unit of the node that is above what is walked */
	VEC(uint8_t) mixed_at; /* by depth: stacks of that node are of several units */
};

/* --- identities --- */

static const char *clean(struct pagetree *t, const char *s)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	const char *kept;

	cleantext_put(&b, s);
	kept = strtab_get(&t->strings, strtab_add(&t->strings, b.n ? b.data : ""));
	return kept;
}

/* In two recordings one program may be in two folders: only its base name counts. */
static const char *module_name(const struct pagetree *t, const char *module)
{
	return t->side_count > 1 ? str_base_name(module) : module;
}

static uint32_t add_ident(struct builder *b, const char *name, const char *module, enum ident_kind kind)
{
	struct pagetree *t = b->t;
	struct ident id = { clean(t, *name ? name : "[no name]"), clean(t, module_name(t, module)), kind };
	uint64_t key = map_hash((uintptr_t)id.name) ^ map_hash((uintptr_t)id.module + kind);

	for (;; key++) {
		uint64_t *at = map_put(&b->index, key, PROFILE_NONE);
		const struct ident *there;

		if (*at == PROFILE_NONE) {
			*at = t->idents.n;
			vec_push(&t->idents, id);
			return *at;
		}
		there = &t->idents.v[*at];
		if (there->name == id.name && there->module == id.module && there->kind == kind)
			return *at;
	}
}

/* Names of threads are the first level; a thread without a name is identified by its number. */
static uint32_t add_group(struct builder *b, const struct profile *p, uint32_t thread)
{
	const char *name = profile_str(p, p->threads.v[thread].name);
	_cleanup_free_ char *text =
		*name ? mem_strdup(name) : mem_printf("thread/%u", p->threads.v[thread].tid);

	return add_ident(b, text, "", IDENT_GROUP);
}

/* Units of work have identities, too. A program whose threads run one function each has none: their boxes say as much. */
static void add_types(struct builder *b, struct side *s)
{
	bool any = false;

	tasktypes_init(&s->types, s->p);
	for (size_t i = 0; i < s->types.list.n; i++)
		any |= s->types.list.v[i].kind != TASKTYPE_NONE && s->types.list.v[i].kind != TASKTYPE_THREAD;
	for (size_t i = 0; i < s->types.list.n; i++) {
		_cleanup_free_ char *label = tasktype_label(&s->types.list.v[i]);

		b->any_unit |= any;
		vec_push(&s->unit_of, i && any ? add_ident(b, label, "", IDENT_GROUP) : PROFILE_NONE);
	}
}

/* All functions of all frames, so that identities can be sorted before there is a tree. */
static void add_frames(struct builder *b, struct side *s, bool no_inline)
{
	const struct profile *p = s->p;
	struct idents local;
	VEC(uint32_t) known = { 0 };

	idents_init(&local, p, no_inline ? IDENTS_NO_INLINE : 0);
	s->frame_first = mem_alloc((p->frames.n + 1) * sizeof(*s->frame_first));
	for (size_t i = 0; i < p->frames.n; i++) {
		uint32_t n;
		const uint32_t *list = idents_of_frame(&local, i, &n);

		s->frame_first[i] = s->codes.n;
		while (known.n < local.list.n) {
			const struct ident *id = &local.list.v[known.n];
			uint32_t global = add_ident(b, id->name, id->module, id->kind);

			vec_push(&known, global);
		}
		for (uint32_t k = 0; k < n; k++)
			vec_push(&s->codes,
				 known.v[list[k]] << 1 | (n > 1 && idents_is_inlined(&local, i, k)));
	}
	s->frame_first[p->frames.n] = s->codes.n;
	s->cgrouppath_of = mem_alloc((p->threads.n + 1) * sizeof(*s->cgrouppath_of));
	for (size_t i = 0; i < p->threads.n; i++)
		s->cgrouppath_of[i] = add_group(b, p, i);
	idents_done(&local);
	vec_done(&known);
	add_types(b, s);
}

/* Sorts them; returns where each went. Caller frees. */
static uint32_t *sort_idents(struct pagetree *t)
{
	size_t n = t->idents.n;
	_cleanup_free_ uint32_t *order = mem_alloc((n + 1) * sizeof(*order));
	uint32_t *rank = mem_alloc((n + 1) * sizeof(*rank));
	struct ident *sorted = mem_alloc((n + 1) * sizeof(*sorted));

	for (size_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), ident_compare_at, t->idents.v);
	for (size_t i = 0; i < n; i++) {
		rank[order[i]] = i;
		sorted[i] = t->idents.v[order[i]];
	}
	free(t->idents.v);
	t->idents.v = sorted;
	t->idents.capacity = n + 1;
	return rank;
}

static void make_idents(struct builder *b, const struct pagetree_options *o, uint32_t *ret_root)
{
	struct pagetree *t = b->t;
	uint32_t *rank;

	*ret_root = add_ident(b, "all", "", IDENT_ROOT);
	b->no_stack = add_ident(b, "[no stack]", "", IDENT_TRUNCATED);
	t->left_out = add_ident(b, "[left out]", "", IDENT_NOTE);
	for (size_t i = 0; i < t->side_count; i++)
		add_frames(b, &b->sides[i], o->no_inline);
	rank = sort_idents(t);
	*ret_root = rank[*ret_root];
	b->no_stack = rank[b->no_stack];
	t->left_out = rank[t->left_out];
	for (size_t i = 0; i < t->side_count; i++) {
		struct side *s = &b->sides[i];

		for (size_t k = 0; k < s->codes.n; k++)
			s->codes.v[k] = rank[s->codes.v[k] >> 1] << 1 | (s->codes.v[k] & 1);
		for (size_t k = 0; k < s->p->threads.n; k++)
			s->cgrouppath_of[k] = rank[s->cgrouppath_of[k]];
		for (size_t k = 0; k < s->unit_of.n; k++)
			if (s->unit_of.v[k] != PROFILE_NONE)
				s->unit_of.v[k] = rank[s->unit_of.v[k]];
	}
	free(rank);
	map_done(&b->index);
}

uint32_t pagetree_find(const struct pagetree *t, const char *name, const char *module, enum ident_kind kind)
{
	struct buf n = { 0 }, m = { 0 };
	struct ident key = { "", "", kind }, *found;

	cleantext_put(&n, *name ? name : "[no name]");
	cleantext_put(&m, module_name(t, module));
	if (n.n)
		key.name = n.data;
	if (m.n)
		key.module = m.data;
	found = bsearch(&key, t->idents.v, t->idents.n, sizeof(key), ident_compare);
	buf_done(&n);
	buf_done(&m);
	return found ? found - t->idents.v : PROFILE_NONE;
}

/* --- events and times --- */

static void add_events(struct pagetree *t, size_t side)
{
	const struct profile *p = t->sides[side].p;

	t->event_of[side] = mem_alloc((p->events.n + 1) * sizeof(uint32_t));
	for (size_t i = 0; i < p->events.n; i++) {
		const struct profile_event *e = &p->events.v[i];
		const char *name = profile_str(p, e->name), *unit = profile_str(p, e->unit);
		size_t k = 0;

		while (k < t->events.n &&
		       (strcmp(t->events.v[k].name, name) || strcmp(t->events.v[k].unit, unit)))
			k++;
		t->event_of[side][i] = k;
		if (k == t->events.n)
			vec_push(&t->events, (struct pagetree_event){ name, unit, profile_str(p, e->describe),
								      e->period, cause_role(p, i) });
		else if (t->events.v[k].period != e->period)
			t->events.v[k].period = 0;
	}
}

/* 1, 2 or 5 times a power of ten, 1 ms at least. */
static uint64_t slot_for(uint64_t duration_ns)
{
	uint64_t slot = 1000000;

	while (slot < duration_ns / PAGETREE_SLOTS)
		slot = pagestacks_next_slot(slot);
	return slot;
}

static uint32_t slot_of(const struct pagetree *t, uint64_t ns)
{
	return MIN(ns / t->stacks.slot_ns, INT32_MAX);
}

static void add_record(struct builder *b, uint32_t side, uint32_t i)
{
	struct pagetree *t = b->t;
	struct side *s = &b->sides[side];
	const struct profile_sample *sample = &s->p->samples.v[i];
	enum role role = causes_role(s->causes, sample->event);
	struct pagestacks_record r = { .value = sample->value,
				       .count = sample->count ? sample->count : 1,
				       .thread = t->thread_first[side] + sample->thread,
				       .event = t->event_of[side][sample->event],
				       .cause = causes_of(s->causes, sample) };
	const struct profile_summed *sum = profile_summed_of(s->p, sample);
	uint64_t begin, end;

	if (t->stacks.times) {
		select_span(s->p, i, role, &begin, &end);
		end = sum ? sum->end_ns : end;
		r.slot = slot_of(t, begin);
		if (end > begin && slot_of(t, end - 1) > r.slot)
			r.span = slot_of(t, end - 1) - r.slot + 1;
		t->events.v[r.event].spanned |= sum && r.span;
	}
	vec_push(&b->records, r);
}

/* --- the tree --- */

static void start_stack(struct side *s, uint32_t stack, uint32_t epoch)
{
	s->epoch[stack] = epoch;
	s->child[stack] = s->sample[stack] = PROFILE_NONE;
}

/* Adds a sample to the prefix tree of its group: its stack, and the callers that are not there yet. */
static void plant(struct builder *b, struct side *s, uint32_t i)
{
	const struct profile_sample *sample = &s->p->samples.v[i];
	enum role role = causes_role(s->causes, sample->event);
	uint32_t stack =
		role == ROLE_WAIT || role == ROLE_QUEUE ? cause_trim(s->p, sample->stack) : sample->stack;
	bool is_new = s->epoch[stack] != b->epoch;

	if (is_new)
		start_stack(s, stack, b->epoch);
	s->next_sample[i] = s->sample[stack];
	s->sample[stack] = i;
	while (is_new) {
		uint32_t parent = s->p->stacks.v[stack].parent;

		is_new = s->epoch[parent] != b->epoch;
		if (is_new)
			start_stack(s, parent, b->epoch);
		s->sibling[stack] = s->child[parent];
		s->child[parent] = stack;
		stack = parent;
	}
}

/* Of one node's items: the largest identity first, for they are taken from the end. */
static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return ORDER(y->code >> 1, x->code >> 1) ?: ORDER(x->side, y->side) ?: ORDER(x->stack, y->stack);
}

static void sort_items(struct item *v, size_t n)
{
	if (n > 12) {
		qsort(v, n, sizeof(*v), compare_items);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		struct item it = v[i];
		size_t k = i;

		for (; k && compare_items(&v[k - 1], &it) > 0; k--)
			v[k] = v[k - 1];
		v[k] = it;
	}
}

static void push_children(struct builder *b, uint8_t side, uint32_t stack, uint16_t depth)
{
	struct side *s = &b->sides[side];

	for (uint32_t c = s->child[stack]; c != PROFILE_NONE; c = s->sibling[c])
		vec_push(&b->items,
			 (struct item){ .stack = c,
					.depth = depth,
					.side = side,
					.code = s->codes.v[s->frame_first[s->p->stacks.v[c].frame]] });
}

/* All samples of a stack and below it. */
static void take_rest(struct builder *b, uint8_t side, uint32_t stack)
{
	struct side *s = &b->sides[side];
	VEC(uint32_t) todo = { 0 };

	vec_push(&todo, stack);
	while (todo.n) {
		stack = todo.v[--todo.n];
		for (uint32_t i = s->sample[stack]; i != PROFILE_NONE; i = s->next_sample[i])
			add_record(b, side, i);
		for (uint32_t c = s->child[stack]; c != PROFILE_NONE; c = s->sibling[c])
			vec_push(&todo, c);
	}
	vec_done(&todo);
}

/* Adds the items below an item of the new node: the next inlined function of its frame, or samples and
 * callees. */
static void expand(struct builder *b, const struct item *it)
{
	struct side *s = &b->sides[it->side];
	const struct profile_node *n = &s->p->stacks.v[it->stack];
	uint32_t first;

	if (!it->stack) {
		for (uint32_t i = s->sample[0]; i != PROFILE_NONE; i = s->next_sample[i])
			add_record(b, it->side, i);
		return;
	}
	if (it->depth == PAGETREE_DEPTH) {
		take_rest(b, it->side, it->stack);
		return;
	}
	first = s->frame_first[n->frame];
	if (first + it->k + 1 < s->frame_first[n->frame + 1]) {
		vec_push(&b->items, (struct item){ it->stack, s->codes.v[first + it->k + 1], it->depth + 1,
						   it->k + 1, it->side });
		return;
	}
	for (uint32_t i = s->sample[it->stack]; i != PROFILE_NONE; i = s->next_sample[i])
		add_record(b, it->side, i);
	push_children(b, it->side, it->stack, it->depth + 1);
}

static uint32_t add_node(struct pagetree *t, uint32_t code, uint16_t depth)
{
	vec_push(&t->stacks.nodes, code);
	vec_push(&t->stacks.depths, depth);
	return t->stacks.nodes.n - 1;
}

/* The unit of a new node, if all of its stacks are of one; else its caller's. Stacks of two units may share a caller that
 * is named as one function: raw::poll. */
static void add_unit(struct builder *b, uint32_t node, uint16_t depth)
{
	uint32_t above = b->unit_at.v[depth - 1], unit = PROFILE_NONE;
	bool may = b->mixed_at.v[depth - 1], mixed = false;

	for (size_t i = 0; i < b->now.n && !may; i++)
		may = tasktypes_may_begin(&b->sides[b->now.v[i].side].types, b->now.v[i].stack);
	for (size_t i = 0; i < b->now.n && may && !mixed; i++) {
		const struct side *s = &b->sides[b->now.v[i].side];
		uint32_t its = s->unit_of.v[tasktypes_of(&s->types, b->now.v[i].stack)];

		mixed = i && its != unit;
		unit = its;
	}
	if (!may || mixed || unit == PROFILE_NONE)
		unit = above;
	if (unit != above)
		vec_push(&b->t->units, (struct pagetree_unit){ node, unit });
	b->unit_at.v[depth] = unit;
	b->mixed_at.v[depth] = mixed;
}

/* Makes a node of all items of one identity at the end of the list, and puts the items below it there. */
static void step(struct builder *b)
{
	struct item last = b->items.v[b->items.n - 1];
	uint32_t inlined = 1, node;
	size_t from;

	vec_clear(&b->now);
	while (b->items.n) {
		const struct item *it = &b->items.v[b->items.n - 1];

		if (it->depth != last.depth || it->code >> 1 != last.code >> 1)
			break;
		inlined &= it->code;
		vec_push(&b->now, *it);
		b->items.n--;
	}
	node = add_node(b->t, (last.code & ~1u) | inlined, last.depth);
	if (b->any_unit)
		add_unit(b, node, last.depth);
	from = b->items.n;
	for (size_t i = 0; i < b->now.n; i++)
		expand(b, &b->now.v[i]);
	sort_items(b->items.v + from, b->items.n - from);
	pagestacks_add(&b->t->stacks, node, b->records.v, b->records.n, false);
	vec_clear(&b->records);
}

/* The threads of one name: from[] are the first samples of each side in the order of groups, to[] their
 * ends. */
static void add_threads(struct builder *b, uint32_t group, const uint32_t *from, const uint32_t *to)
{
	b->epoch++;
	add_node(b->t, group << 1, 1);
	for (size_t i = 0; i < b->t->side_count; i++) {
		struct side *s = &b->sides[i];

		start_stack(s, 0, b->epoch);
		for (uint32_t k = to[i]; k-- > from[i];)
			plant(b, s, s->order[k]);
		push_children(b, i, 0, 2);
		if (s->sample[0] != PROFILE_NONE)
			vec_push(&b->items, (struct item){ .code = b->no_stack << 1, .depth = 2, .side = i });
	}
	sort_items(b->items.v, b->items.n);
	while (b->items.n)
		step(b);
}

/* Samples in the order of their groups: a counting sort. start has an element for each identity, and one. */
static void order_samples(struct side *s, uint32_t *start, size_t idents)
{
	const struct profile *p = s->p;

	s->order = mem_alloc((p->samples.n + 1) * sizeof(*s->order));
	for (size_t i = 0; i < p->samples.n; i++)
		start[s->cgrouppath_of[p->samples.v[i].thread] + 1]++;
	for (size_t i = 1; i <= idents; i++)
		start[i] += start[i - 1];
	for (size_t i = 0; i < p->samples.n; i++)
		s->order[start[s->cgrouppath_of[p->samples.v[i].thread]]++] = i;
	memmove(start + 1, start, idents * sizeof(*start));
	start[0] = 0;
}

static void make_tree(struct builder *b, uint32_t root)
{
	struct pagetree *t = b->t;
	uint32_t *start[PAGETREE_SIDES] = { 0 };

	for (size_t i = 0; i < t->side_count; i++) {
		struct side *s = &b->sides[i];
		size_t n = (s->p->stacks.n + 1) * sizeof(uint32_t);

		start[i] = mem_alloc((t->idents.n + 2) * sizeof(uint32_t));
		order_samples(s, start[i], t->idents.n);
		s->child = mem_alloc(n);
		s->sibling = mem_alloc(n);
		s->epoch = mem_alloc(n);
		s->sample = mem_alloc(n);
		s->next_sample = mem_alloc((s->p->samples.n + 1) * sizeof(uint32_t));
	}
	add_node(t, root << 1, 0);
	for (uint32_t g = 0; g < t->idents.n; g++) {
		uint32_t from[PAGETREE_SIDES] = { 0 }, to[PAGETREE_SIDES] = { 0 };
		bool any = false;

		for (size_t i = 0; i < t->side_count; i++) {
			from[i] = start[i][g];
			to[i] = start[i][g + 1];
			any |= from[i] < to[i];
		}
		if (any)
			add_threads(b, g, from, to);
	}
	pagestacks_end(&t->stacks);
	for (size_t i = 0; i < t->side_count; i++)
		free(start[i]);
}

static void side_done(struct side *s)
{
	vec_done(&s->codes);
	free(s->frame_first);
	free(s->cgrouppath_of);
	free(s->order);
	free(s->child);
	free(s->sibling);
	free(s->epoch);
	free(s->sample);
	free(s->next_sample);
	tasktypes_done(&s->types);
	vec_done(&s->unit_of);
}

void pagetree_make(struct pagetree *t, const struct pagetree_side *sides, size_t n,
		   const struct pagetree_options *o)
{
	struct builder b = { .t = t };
	uint32_t root;

	*t = (struct pagetree){ .side_count = n };
	strtab_init(&t->strings);
	for (size_t i = 0; i < n; i++) {
		const struct profile *p = sides[i].p;

		t->sides[i] = sides[i];
		t->thread_first[i + 1] = t->thread_first[i] + p->threads.n;
		t->duration_ns = MAX(t->duration_ns, p->duration_ns);
		for (size_t k = 0; k < p->samples.n; k++)
			t->duration_ns = MAX(t->duration_ns, p->samples.v[k].time_ns);
		b.sides[i] = (struct side){ .p = p, .causes = sides[i].causes };
		add_events(t, i);
	}
	/* Imported profiles often have no times. */
	t->stacks.times = t->duration_ns > 0 && !o->no_times;
	t->stacks.slot_ns = slot_for(t->duration_ns);
	vec_reserve(&b.unit_at, PAGETREE_DEPTH + 1);
	vec_reserve(&b.mixed_at, PAGETREE_DEPTH + 1);
	b.unit_at.v[0] = b.unit_at.v[1] = PROFILE_NONE;
	b.mixed_at.v[0] = b.mixed_at.v[1] = false;
	make_idents(&b, o, &root);
	make_tree(&b, root);
	for (size_t i = 0; i < n; i++)
		side_done(&b.sides[i]);
	vec_done(&b.items);
	vec_done(&b.now);
	vec_done(&b.records);
	vec_done(&b.unit_at);
	vec_done(&b.mixed_at);
}

void pagetree_done(struct pagetree *t)
{
	strtab_done(&t->strings);
	vec_done(&t->idents);
	vec_done(&t->events);
	vec_done(&t->units);
	pagestacks_done(&t->stacks);
	for (size_t i = 0; i < PAGETREE_SIDES; i++)
		free(t->event_of[i]);
	*t = (struct pagetree){ 0 };
}
