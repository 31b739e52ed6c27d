/*
 * svg.c - a capture's flame graph in one file, in the manner of flamegraph.pl.
 *
 * A function's own samples are to the left of its callees, nothing is narrower
 * than 0.1 px. Text is monospaced, so that what fits is known here and nothing
 * overflows.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/quality.h"
#include "base/buf.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/svg/canvas.h"
#include "profile/profile.h"

enum {
	DEFAULT_WIDTH = 1200,
	FRAME_HEIGHT = 16,
	TOP = 72,    /* title, subtitle, legend */
	BOTTOM = 46, /* two lines of details */
	BUTTONS = 140, /* room for them on both sides of the title */
};

#define CHAR_WIDTH 7.26 /* of 12 px: 0.605 em, the widest of the usual monospaced fonts */
#define MIN_WIDTH 0.1

/* The meaning of a colour, in the order of the legend. */
enum hue { HUE_USER, HUE_INLINED, HUE_KERNEL, HUE_NOTE, HUE_UNNAMED, HUE_TRUNCATED, HUE_GROUP, HUE_COUNT };

struct drawing {
	const struct export_job *job;
	struct canvas picture;
	struct buf scratch[2]; /* a box's words and its colour */
	struct calltree tree;
	struct label {
		char *clean, *xml; /* NULL = not made yet */
	} *labels;         /* by ident */
	uint64_t *starts;  /* where each node begins, in weight */
	uint64_t total;
	double scale;      /* px per weight */
	unsigned depth;
	bool samples;
	bool seen[HUE_COUNT];
	uint8_t *causes; /* what most of a node's time was; NULL = colours are by kind of code */
	bool seen_cause[CAUSE_COUNT];
};

static uint64_t weight_of(const struct drawing *d, uint32_t node)
{
	const struct weight *w = &d->tree.nodes.v[node].total;

	return d->samples ? w->samples : w->value;
}

static uint64_t self_of(const struct drawing *d, uint32_t node)
{
	const struct weight *w = &d->tree.nodes.v[node].self;

	return d->samples ? w->samples : w->value;
}

static bool wide_enough(const struct drawing *d, uint32_t node)
{
	return weight_of(d, node) * d->scale >= MIN_WIDTH;
}

/* Returns the next node that is drawn: narrow nodes are skipped with all below them. */
static uint32_t next_drawn(const struct drawing *d, uint32_t i)
{
	const struct calltree_node *nodes = d->tree.nodes.v;
	uint32_t next = nodes[i].first_child;

	for (;;) {
		while (next == CALLTREE_NONE) {
			if (!i)
				return CALLTREE_NONE;
			next = nodes[i].next_sibling;
			i = nodes[i].parent;
		}
		if (wide_enough(d, next))
			return next;
		i = next;
		next = nodes[i].next_sibling;
		if (next == CALLTREE_NONE)
			i = nodes[i].parent;
	}
}

/* Own samples first, then the children one after the other. */
static void place_nodes(struct drawing *d)
{
	const struct calltree *t = &d->tree;

	d->starts = mem_alloc(t->nodes.n * sizeof(*d->starts));
	for (uint32_t i = 0; i != CALLTREE_NONE; i = calltree_next(t, i)) {
		uint64_t at = d->starts[i] + self_of(d, i);

		for (uint32_t c = t->nodes.v[i].first_child; c != CALLTREE_NONE;
		     c = t->nodes.v[c].next_sibling) {
			d->starts[c] = at;
			at += weight_of(d, c);
		}
	}
	for (uint32_t i = 0; i != CALLTREE_NONE; i = next_drawn(d, i))
		d->depth = MAX(d->depth, t->nodes.v[i].depth);
}

static enum hue hue_of(const struct drawing *d, uint32_t node)
{
	switch (calltree_ident(&d->tree, node)->kind) {
	case IDENT_ROOT:
	case IDENT_GROUP:
		return HUE_GROUP;
	case IDENT_KERNEL:
		return HUE_KERNEL;
	case IDENT_UNNAMED:
		return HUE_UNNAMED;
	case IDENT_TRUNCATED:
		return HUE_TRUNCATED;
	case IDENT_INLINED:
		return HUE_INLINED;
	case IDENT_NOTE:
		return HUE_NOTE;
	case IDENT_CAUSE:
	case IDENT_USER:
		break;
	}
	return d->tree.nodes.v[node].inlined ? HUE_INLINED : HUE_USER;
}

static const struct {
	const char *legend;
	unsigned char low[3], high[3]; /* a name's colour lies between them */
} hues[HUE_COUNT] = {
	[HUE_USER] = { "user code", { 232, 104, 56 }, { 250, 208, 88 } },
	[HUE_INLINED] = { "inlined", { 126, 190, 232 }, { 176, 222, 244 } },
	[HUE_KERNEL] = { "kernel", { 142, 178, 150 }, { 182, 206, 184 } },
	[HUE_NOTE] = { "file or reason", { 196, 216, 226 }, { 214, 230, 238 } },
	[HUE_UNNAMED] = { "no symbol", { 208, 200, 192 }, { 222, 216, 208 } },
	[HUE_TRUNCATED] = { "cut stack", { 178, 160, 196 }, { 178, 160, 196 } },
	[HUE_GROUP] = { "thread", { 226, 224, 220 }, { 226, 224, 220 } },
};

/* The colours of Okabe and Ito, which colour-blind people can distinguish, and three more for rare causes: those of the page
 * (ui/colour.js). */
static const unsigned char cause_colours[CAUSE_COUNT][3] = {
	[CAUSE_UNKNOWN] = { 0xc2, 0xc6, 0xcc },   [CAUSE_CPU] = { 0xe6, 0x9f, 0x00 },
	[CAUSE_QUEUE] = { 0xf0, 0xe4, 0x42 },     [CAUSE_LOCK] = { 0xd5, 0x5e, 0x00 },
	[CAUSE_PARK] = { 0x00, 0x9e, 0x73 },      [CAUSE_DISK_READ] = { 0x00, 0x72, 0xb2 },
	[CAUSE_DISK_WRITE] = { 0x00, 0x4f, 0x86 }, [CAUSE_FAULT] = { 0xcc, 0x79, 0xa7 },
	[CAUSE_NETWORK] = { 0x56, 0xb4, 0xe9 },   [CAUSE_SLEEP] = { 0x99, 0x99, 0x99 },
	[CAUSE_PIPE] = { 0xb7, 0xa6, 0x84 },      [CAUSE_RECLAIM] = { 0x7d, 0x4a, 0x68 },
	[CAUSE_QUOTA] = { 0xb8, 0xa9, 0x00 },     [CAUSE_IDLE] = { 0xd3, 0xd6, 0xdc },
};

/*
 * Finds the main cause of each node's time. Below a frame that names a cause,
 * as in a reversed picture, it is that one; above, the largest.
 */
static void find_causes(struct drawing *d)
{
	const struct calltree *t = &d->tree;
	_cleanup_free_ uint64_t *sums = mem_alloc((t->nodes.n * CAUSE_COUNT + 1) * sizeof(*sums));

	d->causes = mem_alloc(t->nodes.n + 1);
	for (size_t i = t->nodes.n; i-- > 0;) {
		const struct ident *id = calltree_ident(t, i);

		for (int c = 0; c < CAUSE_COUNT && id->kind == IDENT_CAUSE; c++)
			if (!strncmp(id->name + 1, cause_name(c), strlen(cause_name(c))))
				sums[i * CAUSE_COUNT + c] += weight_of(d, i);
		for (int c = 0; c < CAUSE_COUNT && i; c++)
			sums[t->nodes.v[i].parent * (size_t)CAUSE_COUNT + c] += sums[i * CAUSE_COUNT + c];
	}
	for (size_t i = 0; i < t->nodes.n; i++) {
		const uint64_t *sum = &sums[i * CAUSE_COUNT];
		uint8_t most = 0;
		bool any = false;

		for (int c = 0; c < CAUSE_COUNT; c++) {
			any |= sum[c] > 0;
			if (sum[c] > sum[most])
				most = c;
		}
		d->causes[i] = any || !i ? most : d->causes[t->nodes.v[i].parent];
	}
}

/* Does black text not show on it? */
static bool is_dark(const struct drawing *d, uint32_t node)
{
	return d->causes && calltree_ident(&d->tree, node)->kind == IDENT_CAUSE &&
	       (d->causes[node] == CAUSE_DISK_READ || d->causes[node] == CAUSE_DISK_WRITE ||
		d->causes[node] == CAUSE_RECLAIM);
}

/* Full for the frame that names the cause, pale for the code above it; an unknown cause is hatched. */
static void put_cause_colour(struct drawing *d, struct buf *b, uint32_t node)
{
	enum cause cause = d->causes[node];
	bool full = calltree_ident(&d->tree, node)->kind == IDENT_CAUSE;
	int white = full ? 0 : 60; /* percent */

	d->seen_cause[cause] = true;
	if (cause == CAUSE_UNKNOWN && full) {
		buf_puts(b, "url(#hatch)");
		return;
	}
	buf_putc(b, '#');
	for (int i = 0; i < 3; i++)
		buf_printf(b, "%02x",
			   cause_colours[cause][i] + (255 - cause_colours[cause][i]) * white / 100);
}

/* The same name has the same colour in every picture. */
static void put_colour(struct buf *b, enum hue hue, const char *name)
{
	uint64_t hash = map_hash_bytes(name, strlen(name));
	static const char digits[] = "0123456789abcdef";

	buf_putc(b, '#');
	for (int i = 0; i < 3; i++) {
		/* The warm colours are many: green runs by itself from red to yellow. */
		unsigned at = i == 1 && hue == HUE_USER ? hash & 0xff : hash >> 8 & 0xff;
		int c = hues[hue].low[i] + (hues[hue].high[i] - hues[hue].low[i]) * (int)at / 255;

		buf_putc(b, digits[c >> 4]);
		buf_putc(b, digits[c & 15]);
	}
}

static const struct label *label_of(struct drawing *d, uint32_t ident)
{
	struct label *l = &d->labels[ident];

	if (!l->clean) {
		struct buf clean = { 0 }, xml = { 0 };
		const char *name = d->tree.idents.list.v[ident].name;

		cleantext_put(&clean, *name ? name : "[no name]");
		buf_xml(&xml, clean.data);
		*l = (struct label){ clean.data, xml.data };
	}
	return l;
}

/* "name (1,234 samples, 5.67%)" */
static void put_title(struct drawing *d, struct buf *b, uint32_t node)
{
	uint64_t weight = weight_of(d, node);
	unsigned share = d->total ? (unsigned)llround(10000.0 * weight / d->total) : 0; /* of 10,000 */
	char amount[32];

	buf_puts(b, label_of(d, d->tree.nodes.v[node].ident)->xml);
	buf_puts(b, " (");
	buf_puts(b, d->samples ? str_count(amount, weight) : export_value(amount, d->job, weight));
	if (d->samples)
		buf_puts(b, d->job->selection->waits ? (weight == 1 ? " wait" : " waits") :
			 weight == 1 ? " sample" : " samples");
	if (!node) {
		buf_puts(b, ", 100%)");
		return;
	}
	buf_puts(b, ", ");
	canvas_fixed(b, share / 100.0, 2);
	buf_puts(b, "%)");
}

static void put_frame(struct drawing *d, uint32_t node)
{
	const struct calltree_node *n = &d->tree.nodes.v[node];
	const char *name = label_of(d, n->ident)->clean;
	double x = CANVAS_PAD + d->starts[node] * d->scale;
	enum hue hue = hue_of(d, node);
	struct buf *title = &d->scratch[0], *fill = &d->scratch[1];
	bool dark = is_dark(d, node);

	d->seen[hue] = true;
	title->n = fill->n = 0;
	put_title(d, title, node);
	if (d->causes && hue != HUE_GROUP && hue != HUE_TRUNCATED)
		put_cause_colour(d, fill, node);
	else
		put_colour(fill, hue, name);
	canvas_box(&d->picture, &(struct canvas_box){ .x = x,
							.end = x + weight_of(d, node) * d->scale,
							.depth = n->depth,
							.name = name,
							.title = title->data,
							.fill = fill->data,
							.attributes = dark ? " class=\"dark\"" : "",
							.before = "",
							.after = "" });
}

static const char hatch[] =
	"<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
	"patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#eee\"/>"
	"<rect width=\"2\" height=\"6\" fill=\"#bbb\"/></pattern></defs>\n";

/* Puts the title of the picture. */
static void make_title(const struct drawing *d, struct buf *title)
{
	const struct export_job *job = d->job;
	const char *target = profile_str(job->profile, job->profile->target);

	if (job->options.title)
		buf_puts(title, job->options.title);
	else
		buf_printf(title, "%s%s%s%s", target, *target ? ": " : "",
			   *export_event_describe(job) ? export_event_describe(job) : export_event(job),
			   !job->selection->waits ? "" : d->samples ? " (number of waits)" : " (µs, ms, s)");
}

static void make_subtitle(const struct drawing *d, struct buf *subtitle)
{
	const struct export_job *job = d->job;
	char idle[32];

	export_when(job, subtitle);
	if (job->selection->root)
		buf_printf(subtitle, ", only below `%s`", job->selection->root);
	buf_puts(subtitle, ": ");
	quality_line(job->quality, job->selection, subtitle);
	if (job->selection->idle.value)
		buf_printf(subtitle, "; idle left out: %s", str_duration(idle, job->selection->idle.value));
}

static void begin(struct drawing *d, struct buf *out)
{
	const struct export_options *o = &d->job->options;
	unsigned width = o->width_px ? o->width_px : DEFAULT_WIDTH;
	unsigned height = TOP + (d->depth + 1) * FRAME_HEIGHT + BOTTOM;
	struct buf title = { 0 }, subtitle = { 0 };

	make_title(d, &title);
	make_subtitle(d, &subtitle);
	d->picture = (struct canvas){
		.out = out, .width = width, .height = height,
		.top = TOP, .bottom = BOTTOM, .row = FRAME_HEIGHT,
		.inverted = o->inverted,
		.font_size = 12, .char_width = CHAR_WIDTH, .slack = 5,
		.title = title.data, .subtitle = subtitle.data,
		.title_room = BUTTONS, .button_y = 24,
		.search_x = width - CANVAS_PAD - 30, .ignorecase_x = width - CANVAS_PAD,
		.matched_x = width - CANVAS_PAD,
		.details_y = height - BOTTOM / 2.0, .details_lines = 2,
		.name_type = "Function:",
		.background = { "#fffdf7" },
		.decimals = 4,
		.defs = d->causes ? hatch : NULL,
	};
	canvas_begin(&d->picture);
	buf_done(&title);
	buf_done(&subtitle);
}

/* Puts the causes in the picture, in their order, as far as there is room. */
static void put_cause_legend(struct drawing *d, double x)
{
	for (int c = CAUSE_CPU; c <= CAUSE_COUNT; c++) {
		enum cause cause = c % CAUSE_COUNT; /* unknown comes last */
		const unsigned char *colour = cause_colours[cause];

		if (!d->seen_cause[cause])
			continue;
		buf_printf(d->picture.out, "<rect x=\"%.6g\" y=\"52\" width=\"10\" height=\"10\" fill=\"", x);
		if (cause == CAUSE_UNKNOWN)
			buf_puts(d->picture.out, "url(#hatch)");
		else
			buf_printf(d->picture.out, "#%02x%02x%02x", colour[0], colour[1], colour[2]);
		buf_puts(d->picture.out, "\"/>");
		canvas_text(&d->picture, "", x + 14, 61, cause_name(cause));
		x += 14 + (strlen(cause_name(cause)) + 2) * CHAR_WIDTH;
	}
}

/* Puts only the colours in the picture. */
static void put_legend(struct drawing *d)
{
	double x = CANVAS_PAD;

	buf_puts(d->picture.out, "<g id=\"legend\">\n");
	for (enum hue hue = 0; hue < HUE_COUNT; hue++) {
		const unsigned char *low = hues[hue].low, *high = hues[hue].high;
		const char *text = hues[hue].legend;

		if (!d->seen[hue] || (d->causes && hue != HUE_GROUP && hue != HUE_TRUNCATED))
			continue;
		if (hue == HUE_GROUP && d->job->options.group == CALLTREE_MERGED)
			continue;
		if (hue == HUE_GROUP && d->job->options.group == CALLTREE_BY_PROCESS)
			text = "process";
		if (hue == HUE_GROUP && d->job->options.group == CALLTREE_BY_TASK)
			text = "task or thread";
		buf_printf(d->picture.out,
			   "<rect x=\"%.6g\" y=\"52\" width=\"10\" height=\"10\" fill=\"#%02x%02x%02x\"/>", x,
			   (low[0] + high[0]) / 2, (low[1] + high[1]) / 2, (low[2] + high[2]) / 2);
		canvas_text(&d->picture, "", x + 14, 61, text);
		x += 14 + (strlen(text) + 2) * CHAR_WIDTH;
	}
	if (d->causes)
		put_cause_legend(d, x);
	buf_puts(d->picture.out, "</g>\n");
}

int svg_write(const struct export_job *job, struct buf *out, struct err *err)
{
	const struct export_options *o = &job->options;
	struct drawing d = { .job = job, .samples = export_weighs_samples(job) };
	unsigned width = o->width_px ? o->width_px : DEFAULT_WIDTH;

	calltree_build(&d.tree, job->profile, job->selection,
		       &(struct calltree_options){ .group = o->group,
						   .reverse = o->reverse,
						   .no_inline = o->no_inline,
						   .causes = export_shows_causes(job),
						   .names_only = true });
	if (export_shows_causes(job))
		find_causes(&d);
	d.labels = mem_alloc((d.tree.idents.list.n + 1) * sizeof(*d.labels));
	d.total = weight_of(&d, 0);
	d.scale = d.total ? (double)(width - 2 * CANVAS_PAD) / d.total : 0;
	place_nodes(&d);

	begin(&d, out);
	for (uint32_t i = 0; d.total && i != CALLTREE_NONE; i = next_drawn(&d, i))
		put_frame(&d, i);
	canvas_end_boxes(&d.picture);
	if (!d.total)
		canvas_text(&d.picture, "", CANVAS_PAD, TOP + 12, job->selection->idle.samples ?
			    "All of it is idle: --idle shows it." :
			    "No samples. Record while the target is at work.");
	put_legend(&d);
	canvas_end(&d.picture);

	for (size_t i = 0; i < d.tree.idents.list.n; i++) {
		free(d.labels[i].clean);
		free(d.labels[i].xml);
	}
	buf_done(&d.scratch[0]);
	buf_done(&d.scratch[1]);
	free(d.labels);
	free(d.starts);
	free(d.causes);
	calltree_done(&d.tree);
	return 0;
}
