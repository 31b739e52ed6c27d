#include "export/svg/flamegraph.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text/str.h"
#include "export/svg/boxes.h"
#include "export/report/cleantext.h"
#include "export/svg/canvas.h"
#include "folded/stacklist.h"

struct flamegraph_options flamegraph_defaults(void)
{
	return (struct flamegraph_options){ .count_name = "samples",
					    .name_type = "Function:",
					    .font = "Verdana",
					    .width = 1200,
					    .row_height = 16,
					    .font_size = 12,
					    .font_width = 0.59,
					    .min_width = 0.1,
					    .factor = 1,
					    .palette = "hot" };
}

struct drawing {
	const struct stacklist *l;
	const struct flamegraph_options *o;
	struct canvas picture;
	struct boxes boxes;
	double unit;         /* of the list's counts */
	double total, scale; /* counts across the picture; px a count */
	struct label {
		char *clean, *xml;
	} * labels; /* by name; NULL = not made yet */
	struct buf scratch[4];
};

/* --- words --- */

/* The name without the mark at its end, clean, and as XML. */
static const struct label *label_of(struct drawing *d, uint32_t node)
{
	uint32_t id = d->l->nodes.v[node].frame;
	struct label *label = &d->labels[id];

	if (!label->clean) {
		const char *name = strtab_get(&d->l->names, id);
		size_t n = strlen(name);
		_cleanup_free_ char *plain = NULL;
		struct buf clean = { 0 }, xml = { 0 };

		if (n >= 4 && !strncmp(name + n - 4, "_[", 2) && strchr("kwij", name[n - 2]) &&
		    name[n - 1] == ']')
			n -= 4;
		plain = mem_strndup(name, n);
		buf_puts(&clean, "");
		cleantext_put(&clean, plain);
		buf_puts(&xml, "");
		buf_xml(&xml, clean.data);
		*label = (struct label){ clean.data, xml.data };
	}
	return label;
}

/* A count as flamegraph.pl shows it: whole, with commas. */
static void put_count(struct buf *b, double count)
{
	char digits[32];

	if (count < 1e18)
		buf_puts(b, str_count(digits, (uint64_t)count));
	else
		buf_printf(b, "%.0f", count);
}

/* "name (1,234 samples, 5.67%; +0.89%)" */
static void put_title(struct drawing *d, struct buf *b, const struct box *box)
{
	double size = box->node ? (box->end - box->start) / d->unit : d->total;
	double count = nearbyint(size * d->o->factor), all = d->total * d->o->factor;
	double change = (d->o->negate ? -box->change : box->change) / d->unit;

	buf_puts(b, box->node ? label_of(d, box->node)->xml : "all");
	buf_puts(b, " (");
	put_count(b, count);
	buf_putc(b, ' ');
	buf_xml(b, d->o->count_name);
	if (!box->node) {
		buf_puts(b, ", 100%)");
		return;
	}
	buf_puts(b, ", ");
	canvas_fixed(b, all > 0 ? 100 * count / all : 0, 2);
	if (box->differs)
		buf_printf(b, "%%; %s%.2f", change > 0 ? "+" : "", 100 * change / all);
	buf_puts(b, "%)");
}

/* --- colours --- */

/* In out, or in the map. */
static const char *colour_of(struct drawing *d, const struct box *box, uint64_t *seed,
			     char out[PALETTE_COLOUR])
{
	const char *name = stacklist_name(d->l, box->node), *known;

	if (box->node && !strcmp(name, "--"))
		return "rgb(160,160,160)";
	if (box->node && !strcmp(name, "-"))
		return "rgb(200,200,200)";
	if (box->differs)
		return palette_difference(out, d->o->negate ? -box->change : box->change,
					  d->boxes.most_change);
	if (!d->o->map)
		return palette_colour(out, d->o->palette, name, box->waker, d->o->pick, seed);
	known = palette_map_get(d->o->map, name);
	if (known)
		return known;
	palette_colour(out, d->o->palette, name, box->waker, d->o->pick, seed);
	palette_map_set(d->o->map, name, out);
	return out;
}

/* --- attributes that the user gives --- */

int flamegraph_attributes_parse(struct flamegraph_attributes *a, const char *text, struct err *err)
{
	if (!a->names.n)
		strtab_init(&a->names);
	for (size_t line = 1; *text; line++) {
		size_t n = strcspn(text, "\n"), name = strcspn(text, "\t\n");

		if (n && name == n)
			return err_set(err, EINVAL, "line %zu has no tab after the function's name", line);
		if (n) {
			*map_put(&a->lines, strtab_add_n(&a->names, text, name), 0) = a->texts.n;
			vec_push(&a->texts, mem_strndup(text + name + 1, n - name - 1));
		}
		text += n + (text[n] == '\n');
	}
	return 0;
}

void flamegraph_attributes_done(struct flamegraph_attributes *a)
{
	vec_done_each(&a->texts, e, free(*e));
	map_done(&a->lines);
	strtab_done(&a->names);
}

/* Copies the value of a key into b; false: it is not there. */
static bool find_value(const char *text, const char *key, struct buf *b)
{
	size_t n = strlen(key);

	while (text && *text) {
		if (!strncmp(text, key, n) && text[n] == '=') {
			text += n + 1;
			buf_add(b, text, strcspn(text, "\t"));
			return true;
		}
		text = strchr(text, '\t');
		if (text)
			text++;
	}
	return false;
}

/* Applies the attributes of a name to its box: scratch 0 title, 1 attributes, 2 before it. */
static void apply_attributes(struct drawing *d, const char *text, struct canvas_box *out)
{
	static const char *const plain[] = { "id", "class", "style", "onmouseover", "onmouseout", "onclick" };
	struct buf *title = &d->scratch[0], *attributes = &d->scratch[1], *before = &d->scratch[2], v = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(plain); i++, v.n = 0)
		if (find_value(text, plain[i], &v)) {
			buf_printf(attributes, " %s=\"", plain[i]);
			buf_xml(attributes, v.data);
			buf_putc(attributes, '"');
		}
	if (find_value(text, "g_extra", &v))
		buf_printf(attributes, " %s", v.data);
	v.n = 0;
	if (find_value(text, "title", &v)) {
		buf_puts(attributes, " data-name=\"");
		buf_xml(attributes, out->name);
		buf_putc(attributes, '"');
		title->n = 0;
		buf_xml(title, v.data);
	}
	v.n = 0;
	if (find_value(text, "href", &v)) {
		buf_puts(before, "<a xlink:href=\"");
		buf_xml(before, v.data);
		v.n = 0;
		buf_puts(before, "\" target=\"");
		buf_xml(before, find_value(text, "target", &v) ? v.data : "_top");
		v.n = 0;
		buf_putc(before, '"');
		if (find_value(text, "a_extra", &v))
			buf_printf(before, " %s", v.data);
		buf_putc(before, '>');
		out->after = "</a>";
	}
	buf_done(&v);
}

/* --- the picture --- */

static void put_box(struct drawing *d, const struct box *box, uint64_t *seed)
{
	struct flamegraph_attributes *a = d->o->attributes;
	char colour[PALETTE_COLOUR];
	double start = box->start / d->unit, end = box->node ? box->end / d->unit : d->total;
	struct canvas_box out = { .x = CANVAS_PAD + start * d->scale,
				   .end = CANVAS_PAD + end * d->scale,
				   .exact_start = box->start,
				   .exact_size = box->node ? box->end - box->start
							   : (uint64_t)llround(end * d->unit),
				   .depth = box->depth,
				   .name = box->node ? label_of(d, box->node)->clean : "all",
				   .fill = colour_of(d, box, seed, colour),
				   .after = "" };
	uint64_t *at = NULL;

	for (int i = 0; i < 3; i++) {
		d->scratch[i].n = 0;
		buf_puts(&d->scratch[i], "");
	}
	put_title(d, &d->scratch[0], box);
	if (a)
		at = map_get(&a->lines, strtab_add(&a->names, stacklist_name(d->l, box->node)));
	if (at)
		apply_attributes(d, a->texts.v[*at], &out);
	/* A colour of palette.map may be any text. */
	d->scratch[3].n = 0;
	buf_xml(&d->scratch[3], out.fill);
	out.fill = d->scratch[3].data;
	out.title = d->scratch[0].data;
	out.attributes = d->scratch[1].data;
	out.before = d->scratch[2].data;
	canvas_box(&d->picture, &out);
}

static void set_up_picture(struct drawing *d, struct buf *out)
{
	const struct flamegraph_options *o = d->o;
	bool subtitle = o->subtitle && *o->subtitle;
	double top = o->font_size * (subtitle ? 5 : 3), bottom = o->font_size * 2 + 10;
	double height = ceil((d->boxes.depth + 1.0) * o->row_height + top + bottom);

	d->picture = (struct canvas){
		.out = out,
		.width = o->width,
		.height = height,
		.top = top,
		.bottom = bottom,
		.row = o->row_height,
		.inverted = o->inverted,
		.font = o->font,
		.font_size = o->font_size,
		.char_width = o->font_size * o->font_width,
		.cut_end = true,
		.title = o->title && *o->title ? o->title
			 : o->inverted         ? "Icicle Graph"
					       : "Flame Graph",
		.subtitle = o->subtitle,
		.title_room = 100,
		.button_y = o->font_size * 2,
		.search_x = o->width - CANVAS_PAD - 30,
		.ignorecase_x = o->width - CANVAS_PAD,
		.matched_x = o->width - CANVAS_PAD,
		.details_y = height - bottom / 2,
		.details_lines = 1,
		.name_type = o->name_type,
		.encoding = o->encoding,
		.notes = o->notes,
		.decimals = 1,
		.total = d->total * d->unit,
	};
	palette_background(o->background, o->palette, d->picture.background);
}

/* For tools that make pictures unattended: the picture shows the error. */
static int no_counts(const struct drawing *d, struct buf *out, struct err *err)
{
	struct canvas p = { .out = out };

	buf_puts(out, "<?xml version=\"1.0\" standalone=\"no\"?>\n");
	buf_printf(out,
		   "<svg version=\"1.1\" width=\"%u\" height=\"%.6g\" viewBox=\"0 0 %u %.6g\" font-family=\"",
		   d->o->width, d->o->font_size * 5, d->o->width, d->o->font_size * 5);
	buf_xml(out, d->o->font);
	buf_printf(out, "\" font-size=\"%.6g\" xmlns=\"http://www.w3.org/2000/svg\">\n", d->o->font_size + 2);
	canvas_text(&p, "text-anchor=\"middle\" ", d->o->width / 2.0, d->o->font_size * 2,
		    "ERROR: there is no stack with a count in the input.");
	buf_puts(out, "</svg>\n");
	return err_set(err, ENODATA,
		       "no stack counts found: lines are \"outer;inner;leaf 123\", as "
		       "`gasflame report --format folded` writes them");
}

static void drawing_done(struct drawing *d)
{
	for (size_t i = 0; d->labels && i < d->l->names.n; i++) {
		free(d->labels[i].clean);
		free(d->labels[i].xml);
	}
	free(d->labels);
	for (size_t i = 0; i < ARRAY_LEN(d->scratch); i++)
		buf_done(&d->scratch[i]);
	boxes_done(&d->boxes);
}

int flamegraph_write(const struct stacklist *l, const struct flamegraph_options *o, struct buf *out,
		     struct err *err)
{
	struct drawing d = { .l = l, .o = o, .unit = stacklist_unit(l) };
	uint64_t total, seed = o->seed;

	if (stacklist_total(l, &total))
		return err_set(err, ERANGE, "the counts add up to more than can be counted");
	if (!total)
		return no_counts(&d, out, err);
	d.total = total / d.unit;
	if (o->total > d.total)
		d.total = o->total;
	d.scale = (o->width - 2 * CANVAS_PAD) / d.total;
	boxes_make(&d.boxes, l, o->flamechart,
		   o->min_percent ? d.total * o->min_width / 100 : o->min_width / d.scale);
	d.labels = mem_alloc(l->names.n * sizeof(*d.labels));
	set_up_picture(&d, out);
	canvas_begin(&d.picture);
	for (size_t i = 0; i < d.boxes.list.n; i++)
		put_box(&d, &d.boxes.list.v[i], &seed);
	canvas_end_boxes(&d.picture);
	canvas_end(&d.picture);
	drawing_done(&d);
	return 0;
}
