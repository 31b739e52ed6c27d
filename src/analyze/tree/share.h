/*
 * share.h - the cost of each crate, the user's own crate that a stack belongs to, and the own function that
 * leads to a hot one.
 *
 *	struct shares s;
 *	shares_build(&s, &tree, own);
 *	printf("%s %llu\n", s.crates.v[0].name, s.crates.v[0].self.value);
 *	shares_done(&s);
 *
 * The tree is one that is not reversed. Weights of outermost, and those of nearest, add up to the whole with
 * shares.no_own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/tree/calltree.h"
#include "analyze/tree/crate.h"
#include "base/vec.h"

struct err;

struct share_row {
	const char *name;    /* the crate or library; lives as long as the shares */
	enum code_kind kind; /* own if anything is, else of most of it */
	struct weight self, total;          /* its functions innermost, anywhere */
	/* Own crates: stacks whose outermost, whose innermost own function is there. */
	struct weight outermost, nearest;
	uint64_t kinds[CODE_KINDS];         /* private */
};

/* A function of the user's own that leads to another one. */
struct share_caller {
	uint32_t ident;      /* into the tree's; PROFILE_NONE = there is none on the stack */
	const char *crate;   /* "" = none */
	struct weight weight;
};

/* A name in place of functions (restack.h). */
struct share_group {
	const char *name;
	struct weight nearest; /* stacks in which it is the innermost group */
	struct weight total;
};

struct shares {
	struct crates names;
	VEC(struct share_row) crates;   /* most self first */
	struct weight all, no_own;
	size_t own;                     /* crates that are the user's own */
	bool rust;                      /* does it tell more than the modules do? */
	VEC(struct share_group) groups; /* most total first; empty without groups */
	struct weight no_group;
};

void shares_build(struct shares *s, const struct calltree *tree, const char *const *own);
/* Crates with the most total first. */
void shares_sort_total(struct shares *s);
void shares_done(struct shares *s);

struct share_callers {
	VEC(struct share_caller) rows; /* most first */
	struct weight total;           /* of the functions that match, recursion once */
	uint32_t matched;
};

/* Finds the innermost own function above the outermost match. Errors as callers_build(). */
int share_callers_build(struct share_callers *c, struct crates *names, const struct calltree *tree,
			const char *pattern, struct err *err);
void share_callers_done(struct share_callers *c);
