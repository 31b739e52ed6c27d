/*
 * canvas.h - a flame graph as SVG: the canvas, the boxes, the script. The callers, svg.c (captures) and
 * flamegraph.c (folded stacks), choose the boxes, their colours and their texts.
 *
 * The geometry is that of flamegraph.pl, so that eyes and links carry over. A name reaches the file only
 * as a clean text that is escaped here or was by picture_label(), and the script touches it as text:
 * nothing in a profile can run.
 *
 *	struct canvas p = { .out = out, .width = 1200, ... };
 *	canvas_begin(&p);
 *	canvas_box(&p, &box);		// the root first
 *	canvas_end(&p);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buf;

enum { CANVAS_PAD = 10 }; /* px to the left and right */

struct canvas {
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

struct canvas_box {
	double x, end;                    /* px from the left */
	uint64_t exact_start, exact_size; /* in units, for zooming; with total */
	uint32_t depth;                   /* the root is 0 */
	const char *name;                 /* clean */
	const char *title;                /* XML */
	const char *fill;                 /* XML */
	const char *attributes;           /* of the group, XML with a space before it; "" = none */
	const char *before, *after;       /* XML around the box and its text, "" = none */
};

void canvas_begin(struct canvas *p);
void canvas_box(struct canvas *p, const struct canvas_box *b);
/* After the boxes and the caller's additions: buttons, the line of details, the script. */
void canvas_end_boxes(struct canvas *p);
void canvas_end(struct canvas *p);

/* A text element; attributes end in a space. */
void canvas_text(struct canvas *p, const char *attributes, double x, double y, const char *text);
/* printf is too slow for a hundred thousand boxes. */
void canvas_number(struct buf *b, uint64_t v);
/* v >= 0, rounded as printf("%.*f") does. */
void canvas_fixed(struct buf *b, double v, unsigned decimals);
