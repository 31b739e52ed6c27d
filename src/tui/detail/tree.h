/*
 * tree.h - a call tree to browse: all calls, the callers or the callees of a function, opened step by step.
 *
 * Rows are made of nodes of analyze's call tree: nodes with the same path of names are one row. Open rows
 * are remembered by path, so that they stay open when the tree is rebuilt. An only child opens with its
 * parent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"

struct calltree;
struct table;

enum tree_kind { TREE_CALLS, TREE_CALLERS, TREE_CALLEES };

struct tree {
	enum tree_kind kind;
	char *name, *module; /* of the function; NULL: all calls */
	struct map open;     /* path to 1 = opened by the user, 0 = closed */
};

void tree_init(struct tree *t, enum tree_kind kind, const char *name, const char *module);
void tree_done(struct tree *t);
/* Rows are ids by path; all is what 100 % is. */
void tree_fill(struct tree *t, const struct calltree *calls, double all, struct table *table);
/* Opens or closes the row of that path. */
void tree_open(struct tree *t, uint64_t path, bool open);
