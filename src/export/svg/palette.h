/*
 * palette.h - the colours of flamegraph.pl: its palettes, its name hash, differences, palette.map.
 *
 * A colour is "rgb(r,g,b)". The same palette and the same name give the colours that
 * flamegraph.pl gives with --hash.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct buf;

enum { PALETTE_COLOUR = 24 }; /* bytes of a colour's text */

/* How a name picks its colour within a palette. */
enum palette_pick {
	PALETTE_STABLE, /* by all of the name: the same in every picture */
	PALETTE_HASH,   /* by its first and last letters: names that are alike look alike */
	PALETTE_RANDOM, /* another for each box */
};

extern const char *const palette_names[];       /* "hot", ...; ends in NULL */
extern const char *const palette_backgrounds[]; /* "yellow", ...; ends in NULL */

/* name as in the stacks, with its "_[k]". seed: the state of PALETTE_RANDOM. waker: below a "--" in a chain
 * graph. */
char *palette_colour(char out[PALETTE_COLOUR], const char *palette, const char *name, bool waker,
		     enum palette_pick pick, uint64_t *seed);
/* White where nothing changed, red for more, blue for less; most: the largest change of all. */
char *palette_difference(char out[PALETTE_COLOUR], double change, double most);

/* Both ends of the background's gradient: by its name, "#rrggbb" (ret[1] is NULL then), or NULL: what goes
 * with the palette. False: there is no such one. */
bool palette_background(const char *name, const char *palette, const char *ret[2]);

/* palette.map: a line "function->rgb(1,2,3)" each. */
struct palette_map {
	struct strtab names;
	VEC(char *) colours; /* by name; NULL = none */
};

void palette_map_init(struct palette_map *m);
void palette_map_done(struct palette_map *m);
void palette_map_parse(struct palette_map *m, const char *text);
/* NULL: there is none yet. */
const char *palette_map_get(struct palette_map *m, const char *name);
void palette_map_set(struct palette_map *m, const char *name, const char *colour);
/* Sorted by name. */
void palette_map_write(struct palette_map *m, struct buf *out);
