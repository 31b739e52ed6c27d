#include "analyze/tree/calltree.h"

#include <stdio.h>
#include <stdlib.h>

#include "analyze/task/tasktype.h"
#include "profile/profile.h"

struct builder {
	struct calltree *t;
	const struct profile *p;
	const struct calltree_options *o;
	struct profile_nodes children; /* of parent and ident: its nodes have the numbers of the tree's */
	uint32_t *node_of;    /* stack to node, valid where epoch_of is the group's */
	uint32_t *epoch_of;
	VEC(uint32_t) path;   /* stacks whose nodes are not known yet, innermost first */
	struct tasktypes types; /* by task only */
};

/* The stack of a frame's caller, 0 = none: the stack of a unit of work ends where the unit begins. */
static inline uint32_t caller(const struct builder *b, uint32_t stack)
{
	uint32_t parent = b->p->stacks.v[stack].parent, type;

	if (!b->types.own)
		return parent;
	type = tasktypes_of(&b->types, stack);
	return type && type != tasktypes_of(&b->types, parent) ? 0 : parent;
}

static uint32_t child(struct builder *b, uint32_t parent, uint32_t ident, bool inlined)
{
	struct calltree *t = b->t;
	uint32_t id = nodes_put(&b->children, parent, ident);

	if (id == t->nodes.n) {
		vec_push(&t->nodes, (struct calltree_node){
			.ident = ident, .parent = parent, .depth = t->nodes.v[parent].depth + 1,
			.first_child = CALLTREE_NONE, .next_sibling = CALLTREE_NONE, .inlined = inlined });
	} else if (!inlined) {
		t->nodes.v[id].inlined = false;
	}
	return id;
}

/* Below node: the functions of a frame, outermost first, or innermost first if reversed. */
static uint32_t add_frame(struct builder *b, uint32_t node, uint32_t frame)
{
	struct idents *idents = &b->t->idents;
	uint32_t n;
	const uint32_t *list = idents_of_frame(idents, frame, &n);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = b->o->reverse ? n - 1 - i : i;

		node = child(b, node, list[k], idents_is_inlined(idents, frame, k));
	}
	return node;
}

/* A sample without a stack keeps its weight, below a node that says so. */
static uint32_t no_stack(struct builder *b, uint32_t node)
{
	return child(b, node, idents_add(&b->t->idents, "[no stack]", "", IDENT_TRUNCATED), false);
}

/*
 * The node of a stack below the root of its group. Stacks share their callers:
 * each node of the prefix tree is walked once in a group, so the cost is that of
 * the tree and not of the samples. An imported thread is the outermost frame of its
 * stacks: one without more frames is whole.
 */
static uint32_t add_stack(struct builder *b, uint32_t group_node, uint32_t epoch, uint32_t stack,
			  bool imported)
{
	uint32_t node;

	if (!stack)
		return group_node && imported ? group_node : no_stack(b, group_node);
	vec_clear(&b->path);
	for (; stack && b->epoch_of[stack] != epoch; stack = caller(b, stack))
		vec_push(&b->path, stack);
	node = stack ? b->node_of[stack] : group_node;
	for (size_t i = b->path.n; i-- > 0;) {
		node = add_frame(b, node, b->p->stacks.v[b->path.v[i]].frame);
		b->node_of[b->path.v[i]] = node;
		b->epoch_of[b->path.v[i]] = epoch;
	}
	return node;
}

/* Adds the cause of the time as a frame below node. */
static uint32_t add_cause(struct builder *b, uint32_t node, enum cause cause)
{
	char name[32];

	if (!b->o->causes)
		return node;
	snprintf(name, sizeof(name), "[%s]", cause_name(cause));
	return child(b, node, idents_add(&b->t->idents, name, "", IDENT_CAUSE), false);
}

/* Reversed stacks share nothing but their leaves: each is walked whole. */
static uint32_t add_reversed(struct builder *b, uint32_t group_ident, uint32_t stack, enum cause cause,
			     bool imported)
{
	uint32_t node = add_cause(b, 0, cause);

	if (!stack && !(imported && group_ident != PROFILE_NONE))
		node = no_stack(b, node);

	for (; stack; stack = caller(b, stack))
		node = add_frame(b, node, b->p->stacks.v[stack].frame);
	return group_ident == PROFILE_NONE ? node : child(b, node, group_ident, false);
}

/* Returns the identity of the frame of a thread, PROFILE_NONE if there is none. */
static uint32_t group_ident(struct builder *b, uint32_t thread)
{
	const struct profile *p = b->p;
	const struct profile_thread *t = &p->threads.v[thread];
	const struct profile_process *process =
		t->process < p->processes.n ? &p->processes.v[t->process] : NULL;
	const char *name = profile_str(p, t->name);
	_cleanup_free_ char *text = NULL;

	if (b->o->group == CALLTREE_MERGED)
		return PROFILE_NONE;
	if (b->o->group == CALLTREE_BY_THREAD)
		text = mem_printf("%s/%u", *name ? name : "thread", t->tid);
	else if (b->o->group == CALLTREE_BY_PROCESS && process)
		text = mem_printf("%s/%u", profile_str(p, process->name), process->pid);
	else if (b->o->group == CALLTREE_BY_PROCESS)
		text = mem_strdup("[no process]");
	else
		text = *name ? mem_strdup(name) : mem_printf("thread/%u", t->tid);
	return idents_add(&b->t->idents, text, "", IDENT_GROUP);
}

/* By task: of each type its identity, PROFILE_NONE for stacks of no unit. NULL: not by task. Caller frees. */
static uint32_t *task_idents(struct builder *b)
{
	uint32_t *list = NULL;

	if (b->o->group != CALLTREE_BY_TASK)
		return NULL;
	tasktypes_init(&b->types, b->p);
	list = mem_alloc(b->types.list.n * sizeof(*list));
	for (size_t i = 0; i < b->types.list.n; i++) {
		_cleanup_free_ char *text = tasktype_label(&b->types.list.v[i]);

		list[i] = i ? idents_add(&b->t->idents, text, "", IDENT_GROUP) : PROFILE_NONE;
	}
	return list;
}

struct group_entry {
	uint32_t ident;
	const struct select_entry *entry;
};

/* By group, so that node_of can be reused; then by stack, so that the result does not depend on the order
 * of the samples. */
static int compare_entries(const void *a, const void *b)
{
	const struct group_entry *x = a, *y = b;

	return ORDER(x->ident, y->ident) ?: ORDER(x->entry->stack, y->entry->stack) ?:
	       (int)x->entry->cause - (int)y->entry->cause;
}

static void add_entries(struct builder *b, const struct selection *s)
{
	_cleanup_free_ struct group_entry *order = mem_alloc((s->entries.n + 1) * sizeof(*order));
	_cleanup_free_ uint32_t *ident_of = mem_alloc((b->p->threads.n + 1) * sizeof(*ident_of));
	_cleanup_free_ uint32_t *ident_of_task = task_idents(b);
	uint32_t epoch = 0, group_node = 0;

	for (size_t i = 0; i < b->p->threads.n; i++)
		ident_of[i] = group_ident(b, i);
	for (size_t i = 0; i < s->entries.n; i++) {
		const struct select_entry *e = &s->entries.v[i];
		uint32_t task = ident_of_task ? ident_of_task[tasktypes_of(&b->types, e->stack)] : PROFILE_NONE;

		order[i] = (struct group_entry){ task == PROFILE_NONE ? ident_of[e->thread] : task, e };
	}
	if (s->entries.n > 1)
		qsort(order, s->entries.n, sizeof(*order), compare_entries);

	for (size_t i = 0; i < s->entries.n; i++) {
		const struct select_entry *e = order[i].entry;
		bool imported = profile_thread_imported(b->p, e->thread);
		struct calltree_node *n;
		uint32_t node;

		if (!i || order[i].ident != order[i - 1].ident) {
			epoch++;
			group_node = order[i].ident == PROFILE_NONE || b->o->reverse ?
					     0 : child(b, 0, order[i].ident, false);
		}
		node = b->o->reverse ? add_reversed(b, order[i].ident, e->stack, e->cause, imported) :
				       add_cause(b, add_stack(b, group_node, epoch, e->stack, imported),
						 e->cause);
		n = &b->t->nodes.v[node];
		n->self.samples += e->weight.samples;
		n->self.value += e->weight.value;
	}
}

/* Children have larger numbers than their parents: one pass from the end adds up. */
static void add_totals(struct calltree *t)
{
	for (size_t i = t->nodes.n; i-- > 0;) {
		struct calltree_node *n = &t->nodes.v[i], *parent;

		n->total.samples += n->self.samples;
		n->total.value += n->self.value;
		if (!i)
			break;
		parent = &t->nodes.v[n->parent];
		parent->total.samples += n->total.samples;
		parent->total.value += n->total.value;
	}
}

/* Links siblings in the order of their names: a counting sort of all nodes by rank, then each is put
 * before its siblings, from the last to the first. */
static void link_children(struct calltree *t)
{
	_cleanup_free_ uint32_t *rank = idents_rank(&t->idents);
	_cleanup_free_ uint32_t *start = mem_alloc((t->idents.list.n + 2) * sizeof(*start));
	_cleanup_free_ uint32_t *order = mem_alloc((t->nodes.n + 1) * sizeof(*order));

	for (size_t i = 1; i < t->nodes.n; i++)
		start[rank[t->nodes.v[i].ident] + 1]++;
	for (size_t i = 1; i <= t->idents.list.n; i++)
		start[i] += start[i - 1];
	for (size_t i = 1; i < t->nodes.n; i++)
		order[start[rank[t->nodes.v[i].ident]]++] = i;
	for (size_t i = t->nodes.n - 1; i-- > 0;) {
		struct calltree_node *n = &t->nodes.v[order[i]], *parent = &t->nodes.v[n->parent];

		n->next_sibling = parent->first_child;
		parent->first_child = order[i];
	}
}

void calltree_build(struct calltree *t, const struct profile *p, const struct selection *s,
		    const struct calltree_options *o)
{
	struct builder b = { .t = t, .p = p, .o = o };
	unsigned flags = (o->no_inline ? IDENTS_NO_INLINE : 0) |
			 (o->split_inlined ? IDENTS_SPLIT_INLINED : 0) |
			 (o->names_only ? IDENTS_NAMES_ONLY : 0);
	uint32_t root;

	*t = (struct calltree){ 0 };
	idents_init(&t->idents, p, flags);
	root = idents_add(&t->idents, "all", "", IDENT_ROOT);
	vec_push(&t->nodes, (struct calltree_node){ .ident = root, .parent = CALLTREE_NONE,
						    .first_child = CALLTREE_NONE,
						    .next_sibling = CALLTREE_NONE });
	nodes_init(&b.children);
	b.node_of = mem_alloc((p->stacks.n + 1) * sizeof(*b.node_of));
	b.epoch_of = mem_alloc((p->stacks.n + 1) * sizeof(*b.epoch_of));
	add_entries(&b, s);
	add_totals(t);
	link_children(t);
	free(b.node_of);
	free(b.epoch_of);
	vec_done(&b.path);
	tasktypes_done(&b.types);
	nodes_done(&b.children);
}

void calltree_done(struct calltree *t)
{
	idents_done(&t->idents);
	vec_done(&t->nodes);
}

uint32_t calltree_next(const struct calltree *t, uint32_t i)
{
	if (t->nodes.v[i].first_child != CALLTREE_NONE)
		return t->nodes.v[i].first_child;
	while (i && t->nodes.v[i].next_sibling == CALLTREE_NONE)
		i = t->nodes.v[i].parent;
	return i ? t->nodes.v[i].next_sibling : CALLTREE_NONE;
}
