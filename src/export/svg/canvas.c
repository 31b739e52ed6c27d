#include "export/svg/canvas.h"

#include <math.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/mem.h"
#include "export/report/cleantext.h"
#include "flame.js.h"

enum { GAP = 1 }; /* px between rows */

void canvas_number(struct buf *b, uint64_t v)
{
	char text[24];
	size_t n = sizeof(text);

	do
		text[--n] = '0' + v % 10;
	while (v /= 10);
	buf_add(b, text + n, sizeof(text) - n);
}

/* Multiplying may round a value beside a half to a half: then printf decides. */
static bool near_half(double v)
{
	return fabs(v - floor(v) - 0.5) < 1e-5 || v > 1e9;
}

void canvas_fixed(struct buf *b, double v, unsigned decimals)
{
	static const unsigned scales[] = { 1, 10, 100, 1000, 10000 };
	unsigned scale = scales[decimals];
	uint64_t rounded;

	if (near_half(v * scale)) {
		buf_printf(b, "%.*f", (int)decimals, v);
		return;
	}
	rounded = (uint64_t)(v * scale + 0.5);
	canvas_number(b, rounded / scale);
	if (!decimals)
		return;
	buf_putc(b, '.');
	for (unsigned place = scale / 10; place; place /= 10)
		buf_putc(b, '0' + rounded / place % 10);
}

/* Pixels with up to four decimals. */
static void put_short(struct buf *b, double px)
{
	uint64_t v = llround(px * 10000);
	unsigned fraction = v % 10000, place = 1000;

	canvas_number(b, v / 10000);
	if (fraction)
		buf_putc(b, '.');
	for (; fraction; fraction %= place, place /= 10)
		buf_putc(b, '0' + fraction / place);
}

static double rounded(double v, unsigned decimals)
{
	double scale = decimals == 1 ? 10 : 10000;
	char text[64];

	if (!near_half(v * scale))
		return floor(v * scale + 0.5) / scale;
	snprintf(text, sizeof(text), "%.*f", (int)decimals, v);
	sscanf(text, "%lf", &v);
	return v;
}

void canvas_text(struct canvas *p, const char *attributes, double x, double y, const char *text)
{
	buf_printf(p->out, "<text %sx=\"%.6g\" y=\"%.6g\">", attributes, x, y);
	buf_xml(p->out, text);
	buf_puts(p->out, "</text>\n");
}

/* --- head --- */

static const char monospaced[] =
	"text { font: 12px ui-monospace, \"DejaVu Sans Mono\", \"Liberation Mono\", Menlo, Consolas, "
	"monospace; fill: #000; white-space: pre }\n";

static const char style[] = "#subtitle { fill: #555; text-anchor: middle }\n"
			    "#search, #ignorecase, #unzoom { cursor: pointer; fill: #555 }\n"
			    "#search, #ignorecase, #matched { text-anchor: end }\n"
			    "#search:hover, #ignorecase:hover, #unzoom:hover, #ignorecase.on { fill: #000; "
			    "font-weight: bold }\n"
			    "#legend text { fill: #555 }\n"
			    "#frames text { pointer-events: none }\n"
			    "#frames > g:hover { stroke: #000; stroke-width: 0.5; cursor: pointer }\n"
			    "#frames > g:hover text { stroke: none }\n"
			    ".dark text { fill: #fff }\n"
			    ".hide { display: none }\n"
			    ".parent { opacity: 0.5 }\n"
			    "</style>\n";

/* name="value" with a space before it. */
static void put_attribute(struct buf *b, const char *name, const char *value)
{
	buf_printf(b, " %s=\"", name);
	buf_xml(b, value);
	buf_putc(b, '"');
}

/* A comment may hold anything but two hyphens. */
static void put_notes(struct buf *b, const char *notes)
{
	_cleanup_(buf_done) struct buf clean = { 0 };

	cleantext_put(&clean, notes);
	for (size_t i = 1; i < clean.n; i++)
		if (clean.data[i] == '-' && clean.data[i - 1] == '-')
			clean.data[i] = ' ';
	buf_printf(b, "<!-- NOTES: %s -->\n", clean.n ? clean.data : "");
}

static void put_root(struct canvas *p)
{
	struct buf *b = p->out;

	buf_puts(b, "<?xml version=\"1.0\" encoding=\"");
	buf_xml(b, p->encoding ? p->encoding : "UTF-8");
	buf_printf(b,
	           "\" standalone=\"no\"?>\n"
	           "<svg version=\"1.1\" width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\" "
	           "data-inverted=\"%d\" data-char=\"%.6g\" data-slack=\"%.6g\" data-base=\"%.6g\"",
	           p->width, p->height, p->width, p->height, p->inverted, p->char_width, p->slack,
	           (p->row - GAP) / 2 + 3);
	put_attribute(b, "data-nametype", p->name_type);
	if (p->cut_end)
		buf_puts(b, " data-cut=\"end\"");
	if (p->total > 0)
		buf_printf(b, " data-total=\"%.17g\"", p->total);
	if (p->font) {
		/* Where the font is missing a browser would take one with serifs. */
		_cleanup_free_ char *fonts = mem_printf("%s, sans-serif", p->font);

		put_attribute(b, "font-family", fonts);
		buf_printf(b, " font-size=\"%.6g\"", p->font_size);
	}
	buf_puts(b, " xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\">\n"
	            "<!-- Flame graph by gasflame. Click a frame to zoom, Ctrl-F or F3 to search, "
	            "Ctrl-I to ignore case. -->\n");
	if (p->notes)
		put_notes(b, p->notes);
}

static void put_background(struct canvas *p)
{
	struct buf *b = p->out;

	if (p->background[1]) {
		buf_puts(b, "<defs><linearGradient id=\"background\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"1\">"
		            "<stop offset=\"5%\" stop-color=\"");
		buf_xml(b, p->background[0]);
		buf_puts(b, "\"/><stop offset=\"95%\" stop-color=\"");
		buf_xml(b, p->background[1]);
		buf_puts(b, "\"/></linearGradient></defs>\n");
	}
	buf_puts(b, "<rect width=\"100%\" height=\"100%\" fill=\"");
	buf_xml(b, p->background[1] ? "url(#background)" : p->background[0]);
	buf_puts(b, "\"/>\n");
	if (p->defs)
		buf_puts(b, p->defs);
}

/* A text that fits into the picture, in the middle of it. */
static void put_heading(struct canvas *p, const char *attributes, double y, const char *text, double room)
{
	_cleanup_(buf_done) struct buf clean = { 0 }, fitted = { 0 };

	if (!text || !*text)
		return;
	cleantext_put(&clean, text);
	if (clean.n && room > 0)
		cleantext_cut(&fitted, clean.data, room);
	if (fitted.n)
		canvas_text(p, attributes, p->width / 2.0, y, fitted.data);
}

void canvas_begin(struct canvas *p)
{
	double title_size = p->font_size + 5;

	put_root(p);
	buf_puts(p->out, "<style>\n");
	buf_puts(p->out, p->font ? "text { fill: #000; white-space: pre }\n" : monospaced);
	buf_printf(p->out, "#title { font-size: %.6gpx; text-anchor: middle }\n", title_size);
	buf_puts(p->out, style);
	put_background(p);
	put_heading(p, "id=\"title\" ", p->button_y, p->title,
	            (p->width - 2 * p->title_room) / (p->char_width * title_size / p->font_size));
	/* Both lines stand where flamegraph.pl has them, unless there is a legend below. */
	put_heading(p, "id=\"subtitle\" ", p->font ? p->button_y * 2 : 42, p->subtitle,
	            (p->width - 2 * CANVAS_PAD) / p->char_width);
	buf_puts(p->out, "<g id=\"frames\">\n");
}

/* --- boxes --- */

static void put_rect(struct canvas *p, const struct canvas_box *box, double y)
{
	struct buf *b = p->out;
	double x = box->x, w = box->end - box->x;

	buf_puts(b, "<rect x=\"");
	if (p->decimals == 1) {
		/* As flamegraph.pl: both edges are rounded, and the width is their difference. */
		canvas_fixed(b, x, 1);
		w = rounded(box->end, 1) - rounded(x, 1);
	} else {
		put_short(b, x);
	}
	buf_puts(b, "\" y=\"");
	put_short(b, y);
	buf_puts(b, "\" width=\"");
	if (p->decimals == 1)
		canvas_fixed(b, MAX(w, 0), 1);
	else
		put_short(b, w);
	buf_puts(b, "\" height=\"");
	put_short(b, p->row - GAP);
	buf_puts(b, "\" fill=\"");
	buf_puts(b, box->fill);
	buf_puts(b, "\" rx=\"2\"/>");
}

static void fit_text(const struct canvas *p, const char *name, double w, struct buf *b)
{
	double columns = (w - p->slack) / p->char_width;

	if (columns < 3)
		return;
	columns = MIN(columns, 1e6);
	if (p->cut_end)
		cleantext_cut(b, name, columns);
	else
		cleantext_fit(b, name, columns);
}

void canvas_box(struct canvas *p, const struct canvas_box *box)
{
	double y = p->inverted ? p->top + box->depth * p->row
	                       : p->height - p->bottom - (box->depth + 1.0) * p->row + GAP;
	struct buf *b = p->out, text = { 0 };

	buf_puts(b, "<g");
	buf_puts(b, box->attributes);
	if (p->total > 0) {
		buf_puts(b, " data-at=\"");
		canvas_number(b, box->exact_start);
		buf_putc(b, ',');
		canvas_number(b, box->exact_size);
		buf_putc(b, '"');
	}
	buf_puts(b, "><title>");
	buf_puts(b, box->title);
	buf_puts(b, "</title>");
	buf_puts(b, box->before);
	put_rect(p, box, y);
	fit_text(p, box->name, box->end - box->x, &text);
	if (text.n) {
		buf_puts(b, "<text x=\"");
		put_short(b, box->x + 3);
		buf_puts(b, "\" y=\"");
		put_short(b, y + (p->row - GAP) / 2 + 3);
		buf_puts(b, "\">");
		buf_xml(b, text.data);
		buf_puts(b, "</text>");
	}
	buf_puts(b, box->after);
	buf_puts(b, "</g>\n");
	buf_done(&text);
}

/* --- foot --- */

void canvas_end_boxes(struct canvas *p)
{
	buf_puts(p->out, "</g>\n");
}

void canvas_end(struct canvas *p)
{
	struct buf *b = p->out;
	double last = p->details_y + 15 * (p->details_lines - 1);

	canvas_text(p, "id=\"unzoom\" class=\"hide\" ", CANVAS_PAD, p->button_y, "Reset Zoom");
	canvas_text(p, "id=\"search\" ", p->search_x, p->button_y, "Search");
	canvas_text(p, "id=\"ignorecase\" ", p->ignorecase_x, p->button_y, "ic");
	buf_printf(b, "<text id=\"details\"><tspan x=\"%d\" y=\"%.6g\">&#160;</tspan>", CANVAS_PAD,
	           p->details_y);
	for (unsigned i = 1; i < p->details_lines; i++)
		buf_printf(b, "<tspan x=\"%d\" y=\"%.6g\"></tspan>", CANVAS_PAD, p->details_y + 15 * i);
	buf_puts(b, "</text>\n");
	canvas_text(p, "id=\"matched\" class=\"hide\" ", p->matched_x, last, "Matched:");
	buf_puts(b, "<script><![CDATA[\n");
	buf_puts(b, flame_js);
	buf_puts(b, "]]></script>\n</svg>\n");
}
