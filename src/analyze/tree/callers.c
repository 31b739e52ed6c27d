#include "analyze/tree/callers.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/text/match.h"
#include "base/mem.h"

/* --- what matches --- */

static bool can_match(const struct ident *id)
{
	return id->kind != IDENT_ROOT && id->kind != IDENT_GROUP && id->kind != IDENT_TRUNCATED;
}

int callers_match(const struct calltree *tree, const char *option, const char *pattern, uint8_t **ret,
		  uint32_t *ret_n, struct err *err)
{
	uint8_t *match = mem_alloc(tree->idents.list.n + 1);
	char why[128];
	regex_t regex;
	int r = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB);

	*ret = NULL;
	if (r) {
		free(match);
		regerror(r, &regex, why, sizeof(why));
		return err_set(err, EINVAL,
			       "%s '%s' is not a regular expression: %s (put \\ before a bracket "
			       "that is meant literally)",
			       option, pattern, why);
	}
	*ret_n = 0;
	for (size_t i = 0; i < tree->idents.list.n; i++) {
		const struct ident *id = &tree->idents.list.v[i];

		match[i] = can_match(id) && match_regex(&regex, id->name, 0, NULL);
		*ret_n += match[i];
	}
	regfree(&regex);
	if (!*ret_n) {
		free(match);
		return err_set(err, ENODATA,
			       "%s '%s' matches no function here: try a shorter piece of its name", option,
			       pattern);
	}
	*ret = match;
	return 0;
}

/* --- order --- */

struct sorting {
	const struct calltree_node *nodes;
	const uint32_t *rank;
};

static int compare_siblings(const void *a, const void *b, void *context)
{
	const struct sorting *s = context;
	const struct calltree_node *x = &s->nodes[*(const uint32_t *)a], *y = &s->nodes[*(const uint32_t *)b];

	return ORDER(x->parent, y->parent) ?: ORDER(y->total.value, x->total.value) ?:
	       ORDER(s->rank[x->ident], s->rank[y->ident]);
}

/* Links siblings by weight: all nodes in one order, from the last to the first, each put before its
 * siblings. */
static void link_siblings(struct callers *c)
{
	_cleanup_free_ uint32_t *rank = idents_rank(&c->tree->idents);
	_cleanup_free_ uint32_t *order = mem_alloc((c->nodes.n + 1) * sizeof(*order));
	struct sorting s = { c->nodes.v, rank };
	size_t n = c->nodes.n - 1;

	for (size_t i = 0; i < n; i++)
		order[i] = i + 1;
	if (n > 1)
		qsort_r(order, n, sizeof(*order), compare_siblings, &s);
	for (size_t i = 0; i < c->nodes.n; i++)
		c->nodes.v[i].first_child = c->nodes.v[i].next_sibling = CALLTREE_NONE;
	for (size_t i = n; i-- > 0;) {
		struct calltree_node *node = &c->nodes.v[order[i]], *parent = &c->nodes.v[node->parent];

		node->next_sibling = parent->first_child;
		parent->first_child = order[i];
	}
}

/* --- building --- */

struct building {
	struct callers *c;
	struct map children;
};

static uint32_t child(struct building *b, uint32_t parent, uint32_t ident)
{
	struct callers *c = b->c;
	uint64_t *id = map_put(&b->children, map_pair(parent, ident), c->nodes.n);

	if (*id == c->nodes.n)
		vec_push(&c->nodes, (struct calltree_node){ .ident = ident, .parent = parent,
							    .depth = c->nodes.v[parent].depth + 1 });
	return *id;
}

/* From the function up to where its thread begins. */
static void add_callers(struct building *b, uint32_t node)
{
	const struct calltree *t = b->c->tree;
	const struct weight *w = &t->nodes.v[node].total;
	uint32_t at = 0;

	weight_add(&b->c->nodes.v[0].total, w);
	for (uint32_t i = t->nodes.v[node].parent; i; i = t->nodes.v[i].parent) {
		at = child(b, at, t->nodes.v[i].ident);
		weight_add(&b->c->nodes.v[at].total, w);
	}
	weight_add(&b->c->nodes.v[at].self, w);
}

/* Merges everything below the function into the tree: to[] maps each node of the call tree to its place. */
static void add_callees(struct building *b, uint32_t node, uint32_t *to)
{
	const struct calltree *t = b->c->tree;
	uint32_t i = node;

	for (;;) {
		const struct calltree_node *n = &t->nodes.v[i];

		to[i] = i == node ? 0 : child(b, to[n->parent], n->ident);
		weight_add(&b->c->nodes.v[to[i]].total, &n->total);
		weight_add(&b->c->nodes.v[to[i]].self, &n->self);
		if (n->first_child != CALLTREE_NONE) {
			i = n->first_child;
			continue;
		}
		while (i != node && t->nodes.v[i].next_sibling == CALLTREE_NONE)
			i = t->nodes.v[i].parent;
		if (i == node)
			return;
		i = t->nodes.v[i].next_sibling;
	}
}

/* The node after this one and all below it, in the tree's order. */
static uint32_t skip(const struct calltree *t, uint32_t i)
{
	while (i && t->nodes.v[i].next_sibling == CALLTREE_NONE)
		i = t->nodes.v[i].parent;
	return i ? t->nodes.v[i].next_sibling : CALLTREE_NONE;
}

/* A note or a cause below a function is its own time. */
static void add_self(struct callers *c, const uint8_t *match)
{
	const struct calltree *t = c->tree;

	for (size_t i = 1; i < t->nodes.n; i++) {
		uint32_t at = i;

		while (at && !match[t->nodes.v[at].ident] &&
		       (calltree_ident(t, at)->kind == IDENT_NOTE ||
			calltree_ident(t, at)->kind == IDENT_CAUSE))
			at = t->nodes.v[at].parent;
		if (match[t->nodes.v[at].ident])
			weight_add(&c->self, &t->nodes.v[i].self);
	}
}

/* All nodes as they are; only the order is another. */
static void copy_tree(struct callers *c)
{
	vec_reserve(&c->nodes, c->tree->nodes.n);
	memcpy(c->nodes.v, c->tree->nodes.v, c->tree->nodes.n * sizeof(*c->nodes.v));
	c->nodes.n = c->tree->nodes.n;
	c->self = c->nodes.v[0].self;
	c->matched = 1;
}

int callers_build(struct callers *c, const struct calltree *tree, enum callers_way way, const char *pattern,
		  struct err *err)
{
	struct building b = { .c = c };
	_cleanup_free_ uint8_t *match = NULL;
	_cleanup_free_ uint32_t *to = NULL;
	uint32_t i;
	int r;

	*c = (struct callers){ .tree = tree };
	if (way == CALLERS_ALL) {
		copy_tree(c);
		link_siblings(c);
		return 0;
	}
	r = callers_match(tree, way == CALLERS_OF ? "--callers" : "--callees", pattern, &match, &c->matched,
			  err);
	if (r)
		return r;
	to = way == CALLEES_OF ? mem_alloc((tree->nodes.n + 1) * sizeof(*to)) : NULL;
	vec_push(&c->nodes, (struct calltree_node){ .parent = CALLTREE_NONE });
	for (i = calltree_next(tree, 0); i != CALLTREE_NONE;) {
		if (!match[tree->nodes.v[i].ident]) {
			i = calltree_next(tree, i);
			continue;
		}
		c->nodes.v[0].ident = tree->nodes.v[i].ident;
		if (to)
			add_callees(&b, i, to);
		else
			add_callers(&b, i);
		i = skip(tree, i);
	}
	add_self(c, match);
	link_siblings(c);
	map_done(&b.children);
	return 0;
}

void callers_done(struct callers *c)
{
	vec_done(&c->nodes);
}

uint32_t callers_next(const struct callers *c, uint32_t i)
{
	return c->nodes.v[i].first_child != CALLTREE_NONE ? c->nodes.v[i].first_child : callers_skip(c, i);
}

uint32_t callers_skip(const struct callers *c, uint32_t i)
{
	while (i && c->nodes.v[i].next_sibling == CALLTREE_NONE)
		i = c->nodes.v[i].parent;
	return i ? c->nodes.v[i].next_sibling : CALLTREE_NONE;
}
