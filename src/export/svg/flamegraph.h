/*
 * flamegraph.h - folded stacks drawn as flamegraph.pl draws them: the same boxes at the same places, in the
 * same words and colours (boxes.h, palette.h, canvas.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "export/svg/palette.h"

struct buf;
struct err;
struct stacklist;

/* The user's attributes for the boxes of some functions, by name. */
struct flamegraph_attributes {
	struct strtab names;
	struct map lines;  /* name to index */
	VEC(char *) texts; /* "key=value" with tabs between them */
};

struct flamegraph_options {
	const char *title, *subtitle; /* NULL: the default, none */
	const char *count_name;       /* "samples" */
	const char *name_type;        /* "Function:" */
	const char *font;
	const char *encoding; /* as declared; NULL: UTF-8 */
	const char *notes;
	unsigned width, row_height;
	double font_size, font_width; /* px; of an average letter, in em */
	double min_width;             /* px, or percent of all counts: narrower boxes are left out */
	bool min_percent;
	double total;                     /* the width stands for this many counts; 0: for their sum */
	double factor;                    /* counts are shown times this */
	const char *palette, *background; /* background NULL: what goes with the palette */
	enum palette_pick pick;
	struct palette_map *map;                  /* colours by name, which grows; NULL = none */
	struct flamegraph_attributes *attributes; /* NULL = none */
	uint64_t seed;                            /* of random colours */
	bool inverted, flamechart, negate;
};

/* Returns the defaults of flamegraph.pl. */
struct flamegraph_options flamegraph_defaults(void);

/* -ENODATA: there are no counts, and out has a picture that says so. */
int flamegraph_write(const struct stacklist *l, const struct flamegraph_options *o, struct buf *out,
		     struct err *err);

/* A line each: "function<TAB>key=value<TAB>...". -EINVAL: a line without a tab. */
int flamegraph_attributes_parse(struct flamegraph_attributes *a, const char *text, struct err *err);
void flamegraph_attributes_done(struct flamegraph_attributes *a);
