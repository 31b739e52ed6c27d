#include "analyze/tree/top.h"

#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"

/* A note at the leaf is no function: its cost is that of the function above it. */
static const struct calltree_node *owner(const struct calltree *t, const struct calltree_node *n)
{
	while (n->parent != CALLTREE_NONE && (t->idents.list.v[n->ident].kind == IDENT_NOTE ||
					      t->idents.list.v[n->ident].kind == IDENT_CAUSE))
		n = &t->nodes.v[n->parent];
	return n;
}

static bool is_function(const struct ident *id)
{
	return id->kind == IDENT_USER || id->kind == IDENT_INLINED || id->kind == IDENT_KERNEL ||
	       id->kind == IDENT_UNNAMED;
}

/*
 * Adds up one kind of row over the tree: row_of gives a node's row (by its
 * identity), PROFILE_NONE = none. The walk keeps count of which rows are on the
 * path, so that recursion adds to a total once.
 */
static void add_tree(const struct calltree *t, const uint32_t *row_of, struct top_row *rows, size_t n)
{
	_cleanup_free_ uint32_t *on_path = mem_alloc((n + 1) * sizeof(*on_path));
	uint32_t i = 0;

	for (;;) {
		const struct calltree_node *node = &t->nodes.v[i];
		uint32_t row = row_of[node->ident];

		if (row_of[owner(t, node)->ident] != PROFILE_NONE)
			weight_add(&rows[row_of[owner(t, node)->ident]].self, &node->self);
		if (row != PROFILE_NONE && !on_path[row]++)
			weight_add(&rows[row].total, &node->total);
		if (node->first_child != CALLTREE_NONE) {
			i = node->first_child;
			continue;
		}
		/* Leave this node and those whose last child it was. */
		for (;;) {
			row = row_of[t->nodes.v[i].ident];
			if (row != PROFILE_NONE)
				on_path[row]--;
			if (!i)
				return;
			if (t->nodes.v[i].next_sibling != CALLTREE_NONE)
				break;
			i = t->nodes.v[i].parent;
		}
		i = t->nodes.v[i].next_sibling;
	}
}

/* Truncation markers are no functions: they are part of the quality, not of the cost. */
static void build_functions(struct top *t)
{
	const struct idents *idents = &t->tree.idents;
	_cleanup_free_ uint32_t *row_of = mem_alloc((idents->list.n + 1) * sizeof(*row_of));

	for (size_t i = 0; i < idents->list.n; i++) {
		const struct ident *id = &idents->list.v[i];

		row_of[i] = PROFILE_NONE;
		if (!is_function(id))
			continue;
		row_of[i] = t->functions.n;
		vec_push(&t->functions,
			 (struct top_row){ .name = id->name, .module = id->module, .kind = id->kind });
	}
	add_tree(&t->tree, row_of, t->functions.v, t->functions.n);
}

static void build_modules(struct top *t)
{
	const struct idents *idents = &t->tree.idents;
	_cleanup_free_ uint32_t *row_of = mem_alloc((idents->list.n + 1) * sizeof(*row_of));
	_cleanup_(map_done) struct map index = { 0 };

	for (size_t i = 0; i < idents->list.n; i++) {
		const struct ident *id = &idents->list.v[i];
		uint64_t *row;

		row_of[i] = PROFILE_NONE;
		if (!is_function(id))
			continue;
		/* Names of modules are interned: one pointer is one path. */
		row = map_put(&index, (uintptr_t)id->module, t->modules.n);
		if (*row == t->modules.n)
			vec_push(&t->modules,
				 (struct top_row){ .name = *id->module ? id->module : "[none]",
						   .module = "",
						   .kind = id->kind == IDENT_KERNEL ? IDENT_KERNEL
										    : IDENT_USER });
		row_of[i] = *row;
	}
	add_tree(&t->tree, row_of, t->modules.v, t->modules.n);
}

/* A process is called as its first thread is, and may still have the name of its parent where it lived for a moment. */
static const char *program_of(const struct profile *p, const struct profile_thread *thread)
{
	const struct profile_process *process = thread->process < p->processes.n ? &p->processes.v[thread->process] : NULL;

	return !process ? "" : profile_str(p, process->pid == thread->tid ? thread->name : process->name);
}

static void build_threads(struct top *t, const struct profile *p, const struct selection *s)
{
	_cleanup_free_ uint32_t *row_of = mem_alloc((p->threads.n + 1) * sizeof(*row_of));

	memset(row_of, 0xff, (p->threads.n + 1) * sizeof(*row_of));
	for (size_t i = 0; i < s->entries.n; i++) {
		const struct select_entry *e = &s->entries.v[i];
		const struct profile_thread *thread = &p->threads.v[e->thread];

		if (row_of[e->thread] == PROFILE_NONE) {
			row_of[e->thread] = t->threads.n;
			vec_push(&t->threads, (struct top_row){
				.name = profile_str(p, thread->name), .module = "", .kind = IDENT_GROUP,
				.id = thread->tid,
				.process = thread->process < p->processes.n ?
						   p->processes.v[thread->process].pid : 0,
				.program = program_of(p, thread) });
		}
		weight_add(&t->threads.v[row_of[e->thread]].self, &e->weight);
		weight_add(&t->threads.v[row_of[e->thread]].total, &e->weight);
	}
}

static int compare_rest(const struct top_row *x, const struct top_row *y)
{
	return ORDER(y->self.samples, x->self.samples) ?: strcmp(x->name, y->name) ?: strcmp(x->module, y->module) ?:
	       ORDER(x->id, y->id);
}

static int compare_self(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	return ORDER(y->self.value, x->self.value) ?: ORDER(y->total.value, x->total.value) ?: compare_rest(x, y);
}

static int compare_total(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	return ORDER(y->total.value, x->total.value) ?: ORDER(y->self.value, x->self.value) ?: compare_rest(x, y);
}

void top_build(struct top *t, const struct profile *p, const struct selection *s, bool no_inline,
	       enum top_order order)
{
	int (*compare)(const void *, const void *) = order == TOP_BY_TOTAL ? compare_total : compare_self;

	*t = (struct top){ .all = s->all };
	calltree_build(&t->tree, p, s, &(struct calltree_options){ .no_inline = no_inline });
	build_functions(t);
	build_modules(t);
	build_threads(t, p, s);
	vec_sort(&t->functions, compare);
	vec_sort(&t->modules, compare);
	vec_sort(&t->threads, compare);
}

static int compare_names(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	return strcmp(x->name, y->name) ?: strcmp(x->program, y->program) ?: ORDER(x->process, y->process) ?: ORDER(x->id, y->id);
}

static struct top_row sum_of(const struct top_row *rows, size_t n)
{
	struct top_row sum = rows[0];

	sum.threads = n;
	sum.processes = 1;
	for (size_t i = 1; i < n; i++) {
		weight_add(&sum.self, &rows[i].self);
		weight_add(&sum.total, &rows[i].total);
		sum.processes += rows[i].process != rows[i - 1].process;
	}
	return sum;
}

void top_sum_threads(struct top *t, uint32_t more_than, enum top_order order)
{
	struct top_row *rows = t->threads.v;
	size_t n = t->threads.n, next;

	if (n <= more_than)
		return;
	vec_sort(&t->threads, compare_names);
	t->threads.n = 0;
	for (size_t i = 0; i < n; i = next) {
		for (next = i + 1; next < n && !strcmp(rows[next].name, rows[i].name) &&
				   !strcmp(rows[next].program, rows[i].program); next++)
			;
		if (next - i > more_than)
			rows[t->threads.n++] = sum_of(&rows[i], next - i);
		else
			for (; i < next; i++)
				rows[t->threads.n++] = rows[i];
	}
	vec_sort(&t->threads, order == TOP_BY_TOTAL ? compare_total : compare_self);
}

void top_done(struct top *t)
{
	calltree_done(&t->tree);
	vec_done(&t->functions);
	vec_done(&t->modules);
	vec_done(&t->threads);
}
