#include "analyze/tree/share.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/tree/callers.h"
#include "analyze/tree/restack.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "profile/profile.h"

static int compare_crates(const void *a, const void *b)
{
	const struct share_row *x = a, *y = b;

	return ORDER(y->self.value, x->self.value) ?: ORDER(y->total.value, x->total.value) ?: strcmp(x->name, y->name);
}

static int compare_totals(const void *a, const void *b)
{
	const struct share_row *x = a, *y = b;

	return ORDER(y->total.value, x->total.value) ?: ORDER(y->self.value, x->self.value) ?: strcmp(x->name, y->name);
}

void shares_sort_total(struct shares *s)
{
	vec_sort(&s->crates, compare_totals);
}

static int compare_groups(const void *a, const void *b)
{
	const struct share_group *x = a, *y = b;

	return ORDER(y->total.value, x->total.value) ?: strcmp(x->name, y->name);
}

/* --- crates --- */

struct looking {
	struct shares *s;
	const struct calltree *t;
	uint32_t *crate_of; /* by identity: row, PROFILE_NONE = no code */
	uint32_t *cgrouppath_of; /* the same for groups */
	uint8_t *kind;      /* by identity: enum code_kind */
};

/* The paths and names of crates are interned: one pointer is one. */
static void find_crates(struct looking *l)
{
	const struct idents *idents = &l->t->idents;
	struct shares *s = l->s;
	_cleanup_(map_done) struct map index = { 0 };

	for (size_t i = 0; i < idents->list.n; i++) {
		const struct ident *id = &idents->list.v[i];
		const char *name = crate_name(&s->names, id);
		enum code_kind kind = crate_kind(&s->names, id);
		uint32_t interned;
		uint64_t *row;

		l->kind[i] = kind;
		l->crate_of[i] = l->cgrouppath_of[i] = PROFILE_NONE;
		if (!strcmp(id->module, RESTACK_GROUP)) {
			l->cgrouppath_of[i] = s->groups.n;
			vec_push(&s->groups, (struct share_group){ .name = id->name });
		}
		if (!*name)
			continue;
		interned = strtab_add(&s->names.names, name);
		row = map_put(&index, interned, s->crates.n);
		if (*row == s->crates.n)
			vec_push(&s->crates,
				 (struct share_row){ .name = strtab_get(&s->names.names, interned) });
		l->crate_of[i] = *row;
		s->rust |= strcmp(name, str_base_name(id->module)) && id->kind != IDENT_KERNEL;
	}
}

/* A note or a cause is its function's. */
static uint32_t owner(const struct calltree *t, uint32_t i)
{
	while (i && (calltree_ident(t, i)->kind == IDENT_NOTE || calltree_ident(t, i)->kind == IDENT_CAUSE))
		i = t->nodes.v[i].parent;
	return i;
}

static void add_self(struct looking *l)
{
	const struct calltree *t = l->t;
	struct shares *s = l->s;

	for (size_t i = 1; i < t->nodes.n; i++) {
		uint32_t ident = t->nodes.v[owner(t, i)].ident, row = l->crate_of[ident];

		if (row == PROFILE_NONE)
			continue;
		weight_add(&s->crates.v[row].self, &t->nodes.v[i].self);
		s->crates.v[row].kinds[l->kind[ident]] += t->nodes.v[i].total.value;
	}
	for (size_t i = 0; i < s->crates.n; i++) {
		struct share_row *row = &s->crates.v[i];

		row->kind = CODE_KINDS - 1;
		for (int k = CODE_KINDS - 1; k >= 0; k--)
			if (row->kinds[k] >= row->kinds[row->kind])
				row->kind = k;
		/* A crate may be called as the file that it is in, with others' functions. */
		if (row->kinds[CODE_OWN])
			row->kind = CODE_OWN;
		s->own += row->kind == CODE_OWN;
	}
}

/* Totals: the outermost node of a crate, or of a group, on its path counts. The walk counts the crates on
 * its path. */
static void add_totals(struct looking *l)
{
	const struct calltree *t = l->t;
	struct shares *s = l->s;
	_cleanup_free_ uint32_t *crates = mem_alloc((s->crates.n + 1) * sizeof(*crates));
	_cleanup_free_ uint32_t *groups = mem_alloc((s->groups.n + 1) * sizeof(*groups));
	uint32_t i = 0, row;

	for (;;) {
		row = l->crate_of[t->nodes.v[i].ident];
		if (row != PROFILE_NONE && !crates[row]++)
			weight_add(&s->crates.v[row].total, &t->nodes.v[i].total);
		row = l->cgrouppath_of[t->nodes.v[i].ident];
		if (row != PROFILE_NONE && !groups[row]++)
			weight_add(&s->groups.v[row].total, &t->nodes.v[i].total);
		if (t->nodes.v[i].first_child != CALLTREE_NONE) {
			i = t->nodes.v[i].first_child;
			continue;
		}
		for (;;) {
			row = l->crate_of[t->nodes.v[i].ident];
			if (row != PROFILE_NONE)
				crates[row]--;
			row = l->cgrouppath_of[t->nodes.v[i].ident];
			if (row != PROFILE_NONE)
				groups[row]--;
			if (!i)
				return;
			if (t->nodes.v[i].next_sibling != CALLTREE_NONE)
				break;
			i = t->nodes.v[i].parent;
		}
		i = t->nodes.v[i].next_sibling;
	}
}

/* Facts that each node inherits: the first and the last own function, and the last group. Parents come first. */
struct inherited {
	uint32_t outermost, nearest, group;
};

static void add_inherited(struct looking *l)
{
	const struct calltree *t = l->t;
	struct shares *s = l->s;
	_cleanup_free_ struct inherited *of = mem_alloc((t->nodes.n + 1) * sizeof(*of));

	of[0] = (struct inherited){ PROFILE_NONE, PROFILE_NONE, PROFILE_NONE };
	for (size_t i = 0; i < t->nodes.n; i++) {
		const struct calltree_node *n = &t->nodes.v[i];

		if (i)
			of[i] = of[n->parent];
		if (l->kind[n->ident] == CODE_OWN && l->crate_of[n->ident] != PROFILE_NONE) {
			of[i].nearest = l->crate_of[n->ident];
			if (of[i].outermost == PROFILE_NONE)
				of[i].outermost = of[i].nearest;
		}
		if (l->cgrouppath_of[n->ident] != PROFILE_NONE)
			of[i].group = l->cgrouppath_of[n->ident];
		if (of[i].nearest == PROFILE_NONE) {
			weight_add(&s->no_own, &n->self);
		} else {
			weight_add(&s->crates.v[of[i].nearest].nearest, &n->self);
			weight_add(&s->crates.v[of[i].outermost].outermost, &n->self);
		}
		weight_add(of[i].group == PROFILE_NONE ? &s->no_group : &s->groups.v[of[i].group].nearest, &n->self);
	}
}

void shares_build(struct shares *s, const struct calltree *tree, const char *const *own)
{
	struct looking l = { .s = s, .t = tree };
	size_t n = tree->idents.list.n + 1;

	*s = (struct shares){ .all = tree->nodes.v[0].total };
	crates_init(&s->names, tree->idents.p, own);
	l.crate_of = mem_alloc(n * sizeof(*l.crate_of));
	l.cgrouppath_of = mem_alloc(n * sizeof(*l.cgrouppath_of));
	l.kind = mem_alloc(n);
	find_crates(&l);
	add_self(&l);
	add_totals(&l);
	add_inherited(&l);
	vec_sort(&s->crates, compare_crates);
	vec_sort(&s->groups, compare_groups);
	free(l.crate_of);
	free(l.cgrouppath_of);
	free(l.kind);
}

void shares_done(struct shares *s)
{
	crates_done(&s->names);
	vec_done(&s->crates);
	vec_done(&s->groups);
}

/* --- callers --- */

static int compare_callers(const void *a, const void *b)
{
	const struct share_caller *x = a, *y = b;

	return ORDER(y->weight.value, x->weight.value) ?: ORDER(x->ident, y->ident);
}

int share_callers_build(struct share_callers *c, struct crates *names, const struct calltree *tree,
			const char *pattern, struct err *err)
{
	_cleanup_free_ uint8_t *match = NULL, *own = mem_alloc(tree->idents.list.n + 1);
	_cleanup_(map_done) struct map index = { 0 };
	int r;

	*c = (struct share_callers){ 0 };
	r = callers_match(tree, "--nearest-own", pattern, &match, &c->matched, err);
	if (r)
		return r;
	for (size_t i = 0; i < tree->idents.list.n; i++)
		own[i] = crate_kind(names, &tree->idents.list.v[i]) == CODE_OWN;
	for (uint32_t i = 0; i != CALLTREE_NONE;) {
		const struct calltree_node *n = &tree->nodes.v[i];
		uint32_t up = n->parent, ident;
		uint64_t *row;

		if (!match[n->ident]) {
			i = calltree_next(tree, i);
			continue;
		}
		while (up && !own[tree->nodes.v[up].ident])
			up = tree->nodes.v[up].parent;
		ident = up ? tree->nodes.v[up].ident : PROFILE_NONE;
		row = map_put(&index, ident, c->rows.n);
		if (*row == c->rows.n)
			vec_push(&c->rows, (struct share_caller){
				.ident = ident,
				.crate = up ? crate_name(names, calltree_ident(tree, up)) : "" });
		weight_add(&c->rows.v[*row].weight, &n->total);
		weight_add(&c->total, &n->total);
		/* The nodes below count with it. */
		while (i && tree->nodes.v[i].next_sibling == CALLTREE_NONE)
			i = tree->nodes.v[i].parent;
		i = i ? tree->nodes.v[i].next_sibling : CALLTREE_NONE;
	}
	vec_sort(&c->rows, compare_callers);
	return 0;
}

void share_callers_done(struct share_callers *c)
{
	vec_done(&c->rows);
}
