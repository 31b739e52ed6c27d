#include "tui/detail/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/tree/calltree.h"
#include "base/text/str.h"
#include "tui/page.h"
#include "tui/table.h"

enum { MAX_ROWS = 5000, MAX_DEPTH = 512 };

/* A node of a row; for callers: the caller reached so far, with the weight of the node it started from. */
struct member {
	uint32_t node;
	uint64_t self, total;
};

struct group {
	uint32_t ident;
	uint64_t self, total;
	VEC(struct member) members;
};

struct filler {
	struct tree *tree;
	const struct calltree *calls;
	struct table *table;
	double all;
};

void tree_init(struct tree *t, enum tree_kind kind, const char *name, const char *module)
{
	*t = (struct tree){ .kind = kind, .name = mem_strdup(name), .module = mem_strdup(module) };
}

void tree_done(struct tree *t)
{
	free(t->name);
	free(t->module);
	map_done(&t->open);
	*t = (struct tree){ 0 };
}

void tree_open(struct tree *t, uint64_t path, bool open)
{
	*map_put(&t->open, path, 0) = open;
}

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return ORDER(y->total, x->total) ?: ORDER(x->ident, y->ident);
}

struct groups {
	VEC(struct group) list;
	struct map index; /* ident to its group */
};

static void add_member(struct groups *g, uint32_t ident, const struct member *m)
{
	uint64_t *at = map_put(&g->index, ident, g->list.n);
	struct group *to;

	if (*at == g->list.n)
		vec_push(&g->list, (struct group){ .ident = ident });
	to = &g->list.v[*at];
	to->self += m->self;
	to->total += m->total;
	vec_push(&to->members, *m);
}

static void groups_done(struct groups *g)
{
	vec_done_each(&g->list, e, vec_done(&e->members));
	map_done(&g->index);
}

/* Finds the rows below a row: its callees, or its callers. */
static void find_below(const struct filler *f, const struct member *members, size_t n, struct groups *ret)
{
	const struct calltree *t = f->calls;

	for (size_t i = 0; i < n; i++) {
		const struct calltree_node *node = &t->nodes.v[members[i].node];

		if (f->tree->kind == TREE_CALLERS) {
			struct member up = { node->parent, members[i].self, members[i].total };

			if (node->parent && node->parent != CALLTREE_NONE)
				add_member(ret, t->nodes.v[node->parent].ident, &up);
			continue;
		}
		for (uint32_t c = node->first_child; c != CALLTREE_NONE; c = t->nodes.v[c].next_sibling) {
			const struct calltree_node *child = &t->nodes.v[c];
			struct member down = { c, child->self.value, child->total.value };

			add_member(ret, child->ident, &down);
		}
	}
	vec_sort(&ret->list, compare_groups);
}

static bool has_below(const struct filler *f, const struct group *g)
{
	for (size_t i = 0; i < g->members.n; i++) {
		const struct calltree_node *node = &f->calls->nodes.v[g->members.v[i].node];

		if (f->tree->kind == TREE_CALLERS ? node->parent != 0 && node->parent != CALLTREE_NONE
						  : node->first_child != CALLTREE_NONE)
			return true;
	}
	return false;
}

static enum row_kind kind_of(const struct ident *id)
{
	switch (id->kind) {
	case IDENT_KERNEL:
		return ROW_KERNEL;
	case IDENT_UNNAMED:
	case IDENT_TRUNCATED:
		return ROW_UNNAMED;
	case IDENT_NOTE:
	case IDENT_CAUSE:
		return ROW_NOTE;
	default:
		return ROW_PLAIN;
	}
}

static void put_row(const struct filler *f, const struct group *g, unsigned depth, uint64_t path, char mark)
{
	const struct ident *id = &f->calls->idents.list.v[g->ident];
	struct row *r = table_row(f->table);

	r->value[WEIGHT_SELF_PERCENT] = f->all > 0 ? g->self * 100 / f->all : 0;
	r->value[WEIGHT_TOTAL_PERCENT] = f->all > 0 ? g->total * 100 / f->all : 0;
	r->value[WEIGHT_SELF] = g->self;
	r->value[WEIGHT_TOTAL] = g->total;
	r->text[FUNCTION_NAME] = id->name;
	r->text[FUNCTION_MODULE] = str_base_name(id->module);
	r->kind = kind_of(id);
	r->depth = depth;
	r->mark = mark;
	r->id = path;
	r->index = g->ident;
}

static void put_groups(const struct filler *f, const struct groups *g, unsigned depth, uint64_t above)
{
	for (size_t i = 0; i < g->list.n && f->table->rows.n < MAX_ROWS; i++) {
		const struct group *group = &g->list.v[i];
		const struct ident *id = &f->calls->idents.list.v[group->ident];
		uint64_t path = map_hash(above * 31 + page_id(id->name, id->module));
		uint64_t *said = map_get(&f->tree->open, path);
		bool below = depth < MAX_DEPTH && has_below(f, group);
		bool open = below && (said ? *said : g->list.n == 1);
		struct groups next = { 0 };

		put_row(f, group, depth, path, !below ? ' ' : open ? '-' : '+');
		if (!open)
			continue;
		find_below(f, group->members.v, group->members.n, &next);
		put_groups(f, &next, depth + 1, path);
		groups_done(&next);
	}
}

/* The function's outermost calls: recursion counts once. */
static void find_function(const struct filler *f, struct groups *ret)
{
	const struct calltree *t = f->calls;
	_cleanup_free_ uint8_t *inside = mem_alloc(t->nodes.n + 1);

	/* Parents come before their children. */
	for (uint32_t i = 1; i < t->nodes.n; i++) {
		const struct calltree_node *node = &t->nodes.v[i];
		const struct ident *id = &t->idents.list.v[node->ident];
		bool is = !strcmp(id->name, f->tree->name) && !strcmp(id->module, f->tree->module);

		inside[i] = inside[node->parent] || is;
		if (is && !inside[node->parent])
			add_member(ret, node->ident,
				   &(struct member){ i, node->self.value, node->total.value });
	}
}

void tree_fill(struct tree *t, const struct calltree *calls, double all, struct table *table)
{
	struct filler f = { t, calls, table, all };
	struct groups first = { 0 };

	table->fixed = true;
	if (t->name)
		find_function(&f, &first);
	else
		find_below(&f, &(struct member){ 0 }, 1, &first);
	put_groups(&f, &first, 0, t->kind);
	groups_done(&first);
	if (!table->rows.n)
		snprintf(table->empty, sizeof(table->empty), "%s", t->name ?
			 "It has no samples here now: Esc goes back." : "Nothing here yet.");
}
