/*
 * picture.h - a flame graph as SVG: the canvas, the boxes, the script. The callers, svg.c (captures) and
 * flamegraph.c (folded stacks), choose the boxes, their colours and their texts.
 *
 * The geometry is that of flamegraph.pl, so that eyes and links carry over. A name reaches the file only
 * as a clean text that is escaped here or was by picture_label(), and the script touches it as text:
 * nothing in a profile can run.
 *
 *	struct picture p = { .out = out, .width = 1200, ... };
 *	picture_begin(&p);
 *	picture_box(&p, &box);		// the root first
 *	picture_end(&p);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum { PICTURE_PAD = 10 }; /* px to the left and right */

struct picture {
	struct buf *out;
	unsigned width, height;
	double top, bottom; /* px above and below the boxes */
	double row;         /* height of a box with the gap to the next */
	bool inverted;      /* the root on top */
	/* Text. */
	const char *font;             /* NULL: monospaced, by the style sheet */
	double font_size, char_width; /* px */
	double slack;                 /* px of a box that text does not use */
	bool cut_end;                 /* names lose their end, not the left of their path */
	const char *title, *subtitle; /* NULL, "" = none */
	double title_room, button_y;  /* px beside the title; where buttons stand */
	double search_x, ignorecase_x, matched_x, details_y; /* search_x: the end of its text */
	unsigned details_lines;
	const char *name_type;     /* before the text of the details: "Function:" */
	const char *encoding;      /* as declared */
	const char *notes;         /* a comment, NULL = none */
	const char *background[2]; /* colours of a gradient, or one and NULL */
	/* Places of boxes. */
	unsigned decimals; /* of px */
	double total;      /* in whole units; 0 = boxes have no exact places */
	const char *defs;  /* more of what boxes use, NULL = none */
};

struct picture_box {
	double x, end;                    /* px from the left */
	uint64_t exact_start, exact_size; /* in units, for zooming; with total */
	uint32_t depth;                   /* the root is 0 */
	const char *name;                 /* clean */
	const char *title;                /* XML */
	const char *fill;                 /* XML */
	const char *attributes;           /* of the group, XML with a space before it; "" = none */
	const char *before, *after;       /* XML around the box and its text, "" = none */
};

void picture_begin(struct picture *p);
void picture_box(struct picture *p, const struct picture_box *b);
/* After the boxes and the caller's additions: buttons, the line of details, the script. */
void picture_end_boxes(struct picture *p);
void picture_end(struct picture *p);

/* A text element; attributes end in a space. */
void picture_text(struct picture *p, const char *attributes, double x, double y, const char *text);
/* printf is too slow for a hundred thousand boxes. */
void picture_number(struct buf *b, uint64_t v);
/* v >= 0, rounded as printf("%.*f") does. */
void picture_fixed(struct buf *b, double v, unsigned decimals);
