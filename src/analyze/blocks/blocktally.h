/*
 * blocktally.h - which functions, crates, subsystems and files the time of one block belongs to. For blocks.c.
 *
 * Life: init -> for each block: add..., take (which empties it) -> done.
 */
#pragma once

#include <stdint.h>

#include "analyze/blocks/blocks.h"
#include "base/map.h"
#include "base/vec.h"

struct classifier;
struct profile;

/* The file that a function read or wrote in the current block, by the collectors of faults and I/O. */
struct blocktally_use {
	uint64_t function; /* key of the map of functions */
	uint32_t frame;    /* the note that names the file */
	uint64_t weight;
};

struct blocktally {
	struct blocks *b;
	const struct profile *p;
	struct classifier *classifier; /* NULL: subsystems are not asked for */
	struct map own;               /* stack to its nearest own function + 1, 0 = there is none */
	struct map functions, crates; /* part and names to ns; CPU in samples */
	struct map subsystems, subsystem_totals;
	uint32_t *subsystem_names; /* by subsystem: its number among the names, PROFILE_NONE = not asked for yet */
	VEC(struct blocktally_use) uses;
	VEC(uint8_t) kinds;        /* by identity: 1 + enum code_kind, 0 = not asked for yet */
	VEC(uint32_t) crate_names; /* by identity: 1 + the identity that its crate has, 0 = not asked for yet */
};

void blocktally_init(struct blocktally *t, struct blocks *b, const struct profile *p, struct classifier *classifier);
void blocktally_done(struct blocktally *t);

/* Returns the function at the leaf, below any notes; NULL: an empty stack. Lives until names are added. */
const struct ident *blocktally_leaf(struct blocktally *t, uint32_t stack);
/* Whose code a function is; id is one of the identities of b. */
enum code_kind blocktally_kind(struct blocktally *t, const struct ident *id);
void blocktally_add(struct blocktally *t, enum block_part part, uint32_t stack, uint64_t ns);
/* The same for time that has no stack. */
void blocktally_add_name(struct blocktally *t, enum block_part part, const char *name, uint64_t ns);
void blocktally_add_crate(struct blocktally *t, enum block_part part, const struct ident *leaf, uint64_t ns);
void blocktally_add_subsystem(struct blocktally *t, enum block_part part, uint32_t stack, uint64_t ns);
/* A fault or a call, with the file as a note below its stack; without one it says nothing. */
void blocktally_add_file(struct blocktally *t, enum block_part part, uint32_t stack, uint64_t weight);
/* Takes the heaviest items, and all subsystems. CPU samples are scaled to the time that they represent. */
void blocktally_take(struct blocktally *t, double cpu_scale, struct block_row *row);

/* Fills in the crates and subsystems of all blocks together. */
void blocktally_sum(struct blocks *b);
