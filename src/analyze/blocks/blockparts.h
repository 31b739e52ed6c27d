/*
 * blockparts.h - what a block was made of by the node's own spans: engine, execution, state root, persistence.
 *
 * Spans are marks that are no blocks: of samply's marker files, a Chrome trace, --mark-function, gasflame.h. Those on
 * the block's thread nest in it; those of other threads were beside it, and may reach beyond it. Of each name there is
 * one part: how often it was there, and how much of the block's time it covers, each moment once.
 *
 *	struct blockparts *b = blockparts_new(p);
 *	struct block_parts list = { 0 };
 *	blockparts_find(b, start_ns, end_ns, thread, &list);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct blocks;
struct blockparts;
struct profile;

struct block_span_part {
	const char *name;   /* lives as long as the profile */
	bool beside;        /* on another thread, or on none that is known */
	uint32_t depth;     /* of the outermost of them, on the block's thread */
	uint64_t count, ns; /* within the block */
	uint64_t first_ns;  /* when the first began, or the block */
	uint64_t covered_ns; /* private: up to here */
};

/* Those on the block's thread in their order, then those beside it, most first. */
struct block_parts {
	VEC(struct block_span_part) list;
};

struct blockparts *blockparts_new(const struct profile *p);
/* Replaces what is in ret; vec_done(&ret->list) frees it. */
void blockparts_find(const struct blockparts *b, uint64_t start_ns, uint64_t end_ns, uint32_t thread, struct block_parts *ret);
/* The same for all blocks together: ns is the sum of all; *ret_wall_ns that of the blocks. */
void blockparts_sum(const struct blockparts *b, const struct blocks *blocks, struct block_parts *ret, uint64_t *ret_wall_ns);
void blockparts_free(struct blockparts *b); /* NULL is fine */
