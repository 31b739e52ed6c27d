/*
 * foldedtree.h - the second half of folded.c: lines whose names are known become nodes of the tree. Only
 * folded.c calls it.
 *
 * Lines come in batches. The nodes of a batch are looked up depth by depth through
 * all of its lines, so that they wait for memory together. Once there are more than
 * a few, another thread does that, while the caller reads on: until foldedtree_wait()
 * or foldedtree_free() nodes and lines of the list are that thread's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "folded/stacklist.h"

enum { FOLDED_BATCH = 1024 };

#define FOLDED_NONE UINT32_MAX

/* A frame that a line does not share with the one before it. */
struct folded_frame {
	uint32_t end; /* in its line */
	uint32_t name;
	uint32_t parent; /* frame of the batch, FOLDED_NONE = none */
	uint32_t depth;  /* the outermost is 0 */
	uint32_t node;   /* of the frames up to here */
};

struct folded_line {
	uint32_t first, last; /* its outermost and innermost frame, FOLDED_NONE = none */
	struct stacklist_line line;
};

struct folded_batch {
	struct folded_line lines[FOLDED_BATCH];
	size_t n;
	VEC(struct folded_frame) frames;
	uint32_t depth; /* of the deepest frame, from 1 */
};

struct foldedtree;

/* first_apart as in struct folded_options. *ret_batch is the first one to fill. */
struct foldedtree *foldedtree_new(struct stacklist *l, bool first_apart, struct folded_batch **ret_batch);
/* Takes the batch that was given out last, and gives the next one: empty. */
struct folded_batch *foldedtree_put(struct foldedtree *t);
/* Until all batches that were put are in the list. */
void foldedtree_wait(struct foldedtree *t);
/* Waits too. */
void foldedtree_free(struct foldedtree *t);
