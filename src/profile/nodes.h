/*
 * nodes.h - a prefix tree: nodes with a parent and a frame, each pair once.
 *
 * Node 0 is the empty stack; a parent comes before its children. The index has
 * small slots, for a profile may have millions of nodes; it is made when it is
 * first asked for, so that nodes may also be appended without it by those who
 * know that they are new.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct profile_node {
	uint32_t parent, frame;
};

struct profile_nodes {
	struct profile_node *v;
	size_t n, capacity;
	/* The rest is private. */
	struct nodes_slot *slots;
	size_t slot_count, indexed;
};

void nodes_init(struct profile_nodes *t); /* with node 0 in it */
void nodes_done(struct profile_nodes *t);
/* The node of frame below parent, made if there is none. */
uint32_t nodes_put(struct profile_nodes *t, uint32_t parent, uint32_t frame);
/* The same for n pairs, in their order: their look-ups wait for memory together, not one after the other. */
void nodes_put_many(struct profile_nodes *t, const uint32_t *parents, const uint32_t *frames, uint32_t *ret,
		    size_t n);
/* For about so many nodes: the index need not grow on the way. */
void nodes_expect(struct profile_nodes *t, size_t n);
/* Frees the index; it is made again at need. */
void nodes_forget_index(struct profile_nodes *t);
