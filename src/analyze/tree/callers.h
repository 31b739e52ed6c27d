/*
 * callers.h - trees for people: the callers of a function, its callees, and the whole call tree, heaviest
 * first.
 *
 *	struct callers c;
 *	r = callers_build(&c, &tree, CALLERS_OF, "memcpy", &err);
 *	for (uint32_t i = 0; i != CALLTREE_NONE; i = callers_next(&c, i))
 *		printf("%*s%s\n", c.nodes.v[i].depth, "", callers_ident(&c, i)->name);
 *	callers_done(&c);
 *
 * Recursion counts once: of the functions that match, the outermost of a stack counts. So the total of node
 * 0, which stands for all that match, equals that in the table of functions.
 */
#pragma once

#include <stdint.h>

#include "analyze/tree/calltree.h"
#include "base/vec.h"

struct err;

enum callers_way {
	CALLERS_ALL, /* the whole tree, from the root on; no pattern */
	CALLERS_OF,  /* below node 0 its callers, below those theirs: self is where a stack begins */
	CALLEES_OF,  /* below node 0 its callees */
};

struct callers {
	const struct calltree *tree; /* the caller's; must outlive this */
	VEC(struct calltree_node) nodes; /* siblings by their total, largest first; idents are the tree's */
	uint32_t matched;            /* how many functions match */
	struct weight self;          /* of all that match */
};

/* pattern: extended regex of names, of functions, notes and causes. -EINVAL: it is none; -ENODATA: nothing
 * matches, and c is empty. */
int callers_build(struct callers *c, const struct calltree *tree, enum callers_way way, const char *pattern,
		  struct err *err);
void callers_done(struct callers *c);

/* Returns the node after i in preorder; CALLTREE_NONE at the end. callers_skip() skips the nodes below i. */
uint32_t callers_next(const struct callers *c, uint32_t i);
uint32_t callers_skip(const struct callers *c, uint32_t i);

static inline const struct ident *callers_ident(const struct callers *c, uint32_t node)
{
	return &c->tree->idents.list.v[c->nodes.v[node].ident];
}

/* Returns a byte for each identity of the tree: whether its name matches. Caller frees. *ret_n: how many
 * match and are in the tree. Errors as above; option is for the message. */
int callers_match(const struct calltree *tree, const char *option, const char *pattern, uint8_t **ret,
		  uint32_t *ret_n, struct err *err);
