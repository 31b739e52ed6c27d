/*
 * calltree.h - stacks merged into one tree of functions, root to leaf.
 *
 * Node 0 is the root, "all". A node comes after its parent; siblings are linked
 * in alphabetical order, bytewise, as flamegraph.pl's readers expect.
 *
 *	struct calltree t;
 *	calltree_build(&t, p, &selection, &(struct calltree_options){ .group = CALLTREE_BY_NAME });
 *	for (uint32_t i = 0; i != CALLTREE_NONE; i = calltree_next(&t, i))
 *		printf("%*s%s\n", t.nodes.v[i].depth, "", calltree_ident(&t, i)->name);
 *	calltree_done(&t);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/tree/ident.h"
#include "analyze/select.h"
#include "base/vec.h"

#define CALLTREE_NONE UINT32_MAX

enum calltree_group {
	CALLTREE_MERGED,     /* functions only */
	CALLTREE_BY_NAME,    /* first a frame with the thread's name: threads of one name are one */
	CALLTREE_BY_THREAD,  /* first "name/tid" */
	CALLTREE_BY_PROCESS, /* first "name/pid" */
	CALLTREE_BY_TASK,    /* first the unit of work (tasktype.h), and the stack from there on; else the thread's name */
};

struct calltree_options {
	enum calltree_group group;
	bool reverse;       /* leaf to root; the group comes last */
	bool no_inline;     /* don't expand inlined calls */
	bool split_inlined; /* keep inlined copies of a function apart */
	bool causes;        /* below each leaf what its time was: "[lock]", "[on CPU]"; reversed: above it */
	bool names_only;    /* merge by name alone, as flamegraph.pl does, not by name and module */
};

struct calltree_node {
	uint32_t ident; /* into idents.list */
	uint32_t parent, first_child, next_sibling; /* CALLTREE_NONE = none */
	uint32_t depth; /* root 0 */
	bool inlined;   /* in every sample of this node */
	struct weight self, total;
};

struct calltree {
	struct idents idents;
	VEC(struct calltree_node) nodes;
};

void calltree_build(struct calltree *t, const struct profile *p, const struct selection *s,
		    const struct calltree_options *o);
void calltree_done(struct calltree *t);

/* The node after i when the tree is walked in depth, parents first, siblings in order. */
uint32_t calltree_next(const struct calltree *t, uint32_t i);

static inline const struct ident *calltree_ident(const struct calltree *t, uint32_t node)
{
	return &t->idents.list.v[t->nodes.v[node].ident];
}
