/*
 * pagetree.h - all samples of one or two profiles as one tree, in the order of the page.
 *
 * Nodes are in preorder, siblings in the order of their identities, and those are sorted by name, module and
 * kind: node 0 is the root "all", below it are the names of threads, below those their stacks. An entry is
 * the weight of one thread for one event and one cause at one node, with the times of its samples.
 *
 * Everything that was recorded is in it, idle waits too; the initial view of a page is another matter.
 *
 *	struct pagetree t;
 *	pagetree_make(&t, sides, 1, &(struct pagetree_options){ 0 });
 *	pagetree_done(&t);
 *
 * Made for millions of nodes: columns, no pointers, nothing that is hashed by node. The profiles must outlive
 * it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/wait/cause.h"
#include "analyze/tree/ident.h"
#include "base/vec.h"

struct profile;
struct subsystems;

enum {
	PAGETREE_SIDES = 2,
	PAGETREE_DEPTH = 65000, /* deeper frames are left out: their samples are the last one's above them */
	PAGETREE_SLOTS = 32768, /* about as many as a recording's time is cut into */
};

struct pagetree_side {
	const struct profile *p;
	struct causes *causes;
};

struct pagetree_options {
	bool no_inline;
	bool no_times; /* leave the times out */
};

/* An event of all sides: one name and unit. */
struct pagetree_event {
	const char *name, *unit, *describe;
	uint64_t period; /* 0: values differ */
	enum role role;
	bool spanned; /* has sums of slots that are longer than the page's: samples have a span, whatever the role */
};

struct pagetree_entry {
	uint64_t value, count; /* over all time; UINT64_MAX: at least that */
	uint32_t node, thread; /* thread: the second side's come after the first's */
	uint32_t first;        /* of its samples */
	uint16_t event;
	uint8_t cause;
};

struct pagetree_sample {
	uint64_t value;
	uint32_t slot, span; /* span 0: a moment, or within a slot; else how many slots it touches */
	uint32_t count;
};

/* Stacks and their weights: all of them, or a part. */
struct pagestacks {
	VEC(uint32_t) nodes;  /* identity << 1 | inlined in every sample */
	VEC(uint16_t) depths;
	VEC(uint32_t) full;   /* the number of each node among all; empty: they are all */
	VEC(struct pagetree_entry) entries; /* by node, thread, event, cause; one behind the last ends them */
	VEC(struct pagetree_sample) samples;
	uint64_t slot_ns;
	bool times;
	size_t left_out;      /* nodes */
};

/* A node with which the stack of a unit of work begins (tasktype.h). Nodes below it are of that unit up to the next one. */
struct pagetree_unit {
	uint32_t node, ident; /* ident: "task NAME" */
};

struct pagetree {
	struct pagetree_side sides[PAGETREE_SIDES];
	size_t side_count;
	uint32_t thread_first[PAGETREE_SIDES + 1];
	struct strtab strings;
	VEC(struct ident) idents; /* clean names, sorted */
	uint32_t left_out;        /* identity that stands for nodes that are left out */
	VEC(struct pagetree_event) events;
	uint32_t *event_of[PAGETREE_SIDES];
	struct pagestacks stacks;
	VEC(struct pagetree_unit) units; /* by node */
	uint64_t duration_ns;
	struct subsystems *subsystems; /* for the functions' subsystems, borrowed; NULL = none are shown */
};

void pagetree_make(struct pagetree *t, const struct pagetree_side *sides, size_t n,
		   const struct pagetree_options *o);
void pagetree_done(struct pagetree *t);

/* --- less than all: pagestacks.c --- */

/* The stacks below a node, which becomes the root. */
void pagestacks_slice(const struct pagestacks *from, uint32_t node, struct pagestacks *ret);
/*
 * The heaviest nodes, keep of them at most or little more: by their largest share of an event's weight. What
 * is left out below a node becomes one node "[left out]" there, so that weights still add up.
 */
void pagestacks_prune(const struct pagetree *t, const struct pagestacks *from, size_t keep,
		      struct pagestacks *ret);
/* Longer slots of time: samples that fall into one become one. */
void pagestacks_coarsen(struct pagestacks *s, uint64_t slot_ns);
/* How much of an event's weight was left out, of 1. */
double pagestacks_left_out(const struct pagetree *t, const struct pagestacks *s, uint32_t event);
void pagestacks_done(struct pagestacks *s);

/* 1, 2, 5, 10 ...: the next step after slot_ns. */
uint64_t pagestacks_next_slot(uint64_t slot_ns);

/* A sample on its way into an entry. */
struct pagestacks_record {
	uint64_t value, count;
	uint32_t thread, slot, span;
	uint16_t event;
	uint8_t cause;
};

/* Adds the samples of a node, which must come after those of all nodes before it, as entries; sorts them.
 * join: samples within one slot become one. */
void pagestacks_add(struct pagestacks *s, uint32_t node, struct pagestacks_record *records, size_t n,
		    bool join);
/* Puts the end behind the entries. */
void pagestacks_end(struct pagestacks *s);

/* The identity of that name, module and kind (of two sides: module's basename), PROFILE_NONE = none. */
uint32_t pagetree_find(const struct pagetree *t, const char *name, const char *module, enum ident_kind kind);
