/*
 * benchpage.c - measured runs as a page: how the values lie, and how they went from run to run.
 *
 * Plain HTML and SVG without a script; its policy allows none, and no network. All text is escaped.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stats/bootstrap.h"
#include "bench/compare.h"
#include "bench/runs.h"
#include "stats/stats.h"
#include "base/buf.h"
#include "base/mem.h"
#include "export/bench/bench.h"
#include "export/report/cleantext.h"

enum {
	WIDTH = 1000,
	LEFT = 170, /* room for the names of lanes, and the values of an axis */
	RIGHT = 30,
	LANE = 56,
	AXIS = 38,
	ORDER_HEIGHT = 190,
	TICKS = 6,
	NAME_COLUMNS = 21,
	DOTS_MAX = 5000,
};

static const char *const colours[] = { "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00" };

static const char head[] = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
			   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
			   "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
			   "<meta name=\"viewport\" content=\"width=device-width\">\n<title>gasflame "
			   "bench</title>\n<style>\n"
			   ":root{color-scheme:light dark;--line:#8886;--text:#222;--ground:#fff}\n"
			   "@media(prefers-color-scheme:dark){:root{--text:#ddd;--ground:#181818}}\n"
			   "body{font:14px "
			   "system-ui,sans-serif;color:var(--text);background:var(--ground);max-width:1040px;"
			   "margin:20px "
			   "auto;padding:0 20px}\n"
			   "h1{font-size:18px}h2{font-size:15px;margin:28px 0 6px}\n"
			   "table{border-collapse:collapse;font:12px ui-monospace,monospace}\n"
			   "td,th{padding:2px 10px;text-align:right;border-bottom:1px solid "
			   "var(--line)}td:first-child,th:first-child{text-align:left}\n"
			   "svg{width:100%;height:auto;display:block}text{font:11px "
			   "ui-monospace,monospace;fill:var(--text)}\n"
			   ".command{font-family:ui-monospace,monospace;overflow-wrap:anywhere}.key{display:"
			   "inline-block;width:12px;height:12px;margin-right:6px}\n"
			   ".conclusion{font-size:15px;overflow-wrap:anywhere}.axis{font-family:system-ui,sans-serif}\n"
			   /* Where there is no room, what is wide scrolls by itself. */
			   ".wide{overflow-x:auto}.wide svg{min-width:880px}\n"
			   "@media print{:root{color-scheme:light;--text:#222;--ground:#fff}*{print-color-adjust:exact}"
			   "svg,table{break-inside:avoid}h2{break-after:avoid}.wide svg{min-width:0}}\n"
			   "</style></head><body>\n";

struct scale {
	double low, high;
	double from, to; /* pixels */
};

static double place(const struct scale *s, double x)
{
	return s->high > s->low ? s->from + (x - s->low) / (s->high - s->low) * (s->to - s->from)
				: (s->from + s->to) / 2;
}

static const char *colour(uint32_t command)
{
	return colours[command % ARRAY_LEN(colours)];
}

/* All values of a figure; false where there are none. */
static bool find_scale(const struct runs *r, uint32_t m, struct scale *s)
{
	s->low = INFINITY;
	s->high = -INFINITY;
	for (size_t i = 0; i < r->rows.n; i++) {
		double x = runs_value(r, i, m);

		if (isfinite(x)) {
			s->low = fmin(s->low, x);
			s->high = fmax(s->high, x);
		}
	}
	return s->low <= s->high;
}

/* Puts a value, with its tooltip. */
static void put_dot(const struct runs *r, size_t row, uint32_t m, double x, double y, struct buf *out)
{
	char text[32];

	bench_value(text, runs_value(r, row, m), r->metrics.v[m].unit);
	buf_printf(out,
		   "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\" fill-opacity=\".7\"><title>run "
		   "%llu: %s</title></circle>\n",
		   x, y, colour(r->rows.v[row].command), (unsigned long long)r->rows.v[row].round, text);
}

/* 1, 2 or 5 times a power of ten, so that a scale has about that many of them. */
static double tick_step(const struct scale *s, int wanted)
{
	double rough = (s->high - s->low) / wanted, ten = pow(10, floor(log10(rough))), times = rough / ten;

	return ten * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

/* "60 ms" of "60.00 ms": a tick needs no more digits. */
static char *tick_text(char out[32], double x, const char *unit)
{
	char *point, *end, *from;

	bench_value(out, x, unit);
	point = strchr(out, '.');
	if (!point)
		return out;
	from = end = point + 1 + strspn(point + 1, "0123456789");
	while (from[-1] == '0')
		from--;
	if (from[-1] == '.')
		from--;
	memmove(from, end, strlen(end) + 1);
	return out;
}

/* Ticks of a scale: their first one, and how many; a scale of one value has that one. */
struct ticks {
	double first, step;
	int n;
};

static struct ticks find_ticks(const struct scale *s, int wanted)
{
	struct ticks t = { s->low, 0, 1 };

	if (s->high <= s->low || !isfinite(s->high - s->low))
		return t;
	t.step = tick_step(s, wanted);
	t.first = ceil(s->low / t.step - 1e-9) * t.step;
	t.n = (int)fmin(floor((s->high - t.first) / t.step + 1e-9) + 1, 2.0 * wanted + 2);
	return t;
}

/* The axis below the lanes, with a line up for each tick, and what it measures at its end. */
static void put_axis(const struct scale *s, const struct runs_metric *m, double y, struct buf *out)
{
	struct ticks t = find_ticks(s, TICKS);
	char text[32];

	buf_printf(out, "<line x1=\"%g\" x2=\"%g\" y1=\"%g\" y2=\"%g\" stroke=\"var(--line)\"/>\n", s->from,
		   s->to, y, y);
	for (int i = 0; i < t.n; i++) {
		double x = t.first + i * t.step, at = place(s, x);

		buf_printf(out, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%g\" stroke=\"var(--line)\" stroke-width=\".5\"/>\n", at,
			   at, y + 4);
		buf_printf(out, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%s</text>\n", at, y + 16, tick_text(text, x, m->unit));
	}
	buf_printf(out, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\" class=\"axis\">", (s->from + s->to) / 2, y + 32);
	buf_xml(out, m->name);
	buf_puts(out, " of a run</text>\n");
}

/* Commands may differ only where their names are cut. */
static void put_number(const struct runs *r, uint32_t command, struct buf *out)
{
	if (r->commands.n > 1)
		buf_printf(out, "%u: ", command + 1);
}

/* The name of a command at the left of its lane. */
static void put_lane_name(const struct runs *r, uint32_t command, struct buf *out)
{
	_cleanup_(buf_done) struct buf clean = { 0 }, cut = { 0 };

	cleantext_put(&clean, r->commands.v[command]);
	cleantext_cut(&cut, clean.data ? clean.data : "", NAME_COLUMNS);
	buf_printf(out, "<text x=\"0\" y=\"%g\">", command * (double)LANE + LANE / 2.0 + 4);
	put_number(r, command, out);
	buf_xml(out, cut.data ? cut.data : "");
	buf_puts(out, "</text>\n");
}

/* The median with its interval, behind the dots. */
static void put_middle(const struct runs *r, uint32_t command, uint32_t m, const struct scale *s, double top,
		       double *values, struct buf *out)
{
	static const double median[] = { 0.5 };
	size_t n = runs_column(r, command, m, values, NULL);
	const struct bootstrap_side side = { .values = values, .n = n };
	const struct bootstrap_options o = { .seed = n };
	struct bootstrap_interval i;

	bootstrap_level(&side, median, 1, &o, &i);
	if (!isnan(i.low))
		buf_printf(out,
			   "<rect x=\"%.1f\" y=\"%g\" width=\"%.1f\" height=\"%d\" fill=\"%s\" "
			   "fill-opacity=\".2\"/>\n",
			   place(s, i.low), top + 4, fmax(place(s, i.high) - place(s, i.low), 1), LANE - 8,
			   colour(command));
	if (n)
		buf_printf(out,
			   "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%g\" y2=\"%g\" stroke=\"%s\" "
			   "stroke-width=\"2\"/>\n",
			   place(s, i.estimate), place(s, i.estimate), top + 2, top + LANE - 2,
			   colour(command));
}

/* A lane a command, a dot a run; up and down only keeps dots apart. */
static void put_distribution(const struct runs *r, uint32_t m, struct scale s, double *values,
			     struct buf *out)
{
	double bottom = (double)r->commands.n * LANE;

	buf_printf(out, "<svg viewBox=\"0 0 %d %g\" role=\"img\" aria-label=\"distribution\">\n", WIDTH,
		   bottom + AXIS);
	put_axis(&s, &r->metrics.v[m], bottom, out);
	for (uint32_t c = 0; c < r->commands.n; c++) {
		put_lane_name(r, c, out);
		put_middle(r, c, m, &s, c * (double)LANE, values, out);
	}
	for (size_t i = 0; i < r->rows.n && i < DOTS_MAX; i++) {
		double x = runs_value(r, i, m);

		if (isfinite(x))
			put_dot(r, i, m, place(&s, x),
				r->rows.v[i].command * (double)LANE + 10 + (double)(i * 7 % 37), out);
	}
	buf_puts(out, "</svg>\n");
}

/* In the order in which they were made: drift shows here, and a first run that had to warm up. */
static void put_order(const struct runs *r, uint32_t m, const struct scale *values, struct buf *out)
{
	struct scale across = { 1, (double)r->rows.n, LEFT, WIDTH - RIGHT };
	struct scale up = { values->low, values->high, ORDER_HEIGHT - AXIS, 10 };
	struct ticks t = find_ticks(&up, TICKS / 2), runs = find_ticks(&across, TICKS);
	char text[32];

	buf_printf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"run by run\">\n", WIDTH,
		   ORDER_HEIGHT);
	for (int i = 0; i < t.n; i++) {
		double y = place(&up, t.first + i * t.step);

		buf_printf(out, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"var(--line)\" stroke-width=\".5\"/>\n", LEFT,
			   WIDTH - RIGHT, y, y);
		buf_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 8, y + 4,
			   tick_text(text, t.first + i * t.step, r->metrics.v[m].unit));
	}
	for (int i = 0; i < runs.n; i++)
		if (runs.step >= 1 || !runs.step)
			buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n",
				   place(&across, runs.first + i * runs.step), ORDER_HEIGHT - 20, runs.first + i * runs.step);
	for (size_t i = 0; i < r->rows.n && i < DOTS_MAX; i++) {
		double x = runs_value(r, i, m);

		if (isfinite(x))
			put_dot(r, i, m, place(&across, (double)(i + 1)), place(&up, x), out);
	}
	buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" class=\"axis\">runs, in the order in which they were made</text>\n</svg>\n",
		   (LEFT + WIDTH - RIGHT) / 2, ORDER_HEIGHT - 4);
}

static void put_table(const struct runs *r, uint32_t command, double *values, struct buf *out)
{
	char text[32];

	buf_puts(out, "<div class=\"wide\"><table><tr><th></th><th>median</th><th>mean</th><th>stddev</th><th>min</th><th>max</"
		      "th><th>p90</th><th>p95</th><th>p99</th></tr>\n");
	for (uint32_t m = 0; m < r->metrics.n; m++) {
		const char *unit = r->metrics.v[m].unit;
		struct stats_summary s;

		stats_describe(values, runs_column(r, command, m, values, NULL), &s);
		const double cells[] = { s.median, s.mean, s.stddev, s.min, s.max, s.p90, s.p95, s.p99 };

		if (!s.n)
			continue;
		buf_puts(out, "<tr><td>");
		buf_xml(out, r->metrics.v[m].name);
		buf_puts(out, "</td>");
		for (size_t i = 0; i < ARRAY_LEN(cells); i++)
			buf_printf(out, "<td>%s</td>",
				   isnan(cells[i]) ? "" : bench_value(text, cells[i], unit));
		buf_puts(out, "</tr>\n");
	}
	buf_puts(out, "</table></div>\n");
}

/* What the terminal says: each command against the first; of one alone its median. */
static void put_conclusion(const struct runs *r, uint32_t chief, double *values, struct buf *out)
{
	const struct runs *files[] = { r };
	char text[32];

	for (uint32_t c = 1; c < r->commands.n; c++) {
		const struct compare_side a = { files, 1, 0 }, b = { files, 1, c };
		_cleanup_(buf_done) struct buf sentence = { 0 };
		struct comparison made;

		if (compare_make(&a, &b, &(struct compare_options){ .floor = -1 }, &made, NULL))
			continue;
		compare_sentence(&made, &sentence);
		buf_puts(out, "<p class=\"conclusion\"><code>");
		buf_xml(out, r->commands.v[c]);
		buf_puts(out, "</code>, against <code>");
		buf_xml(out, r->commands.v[0]);
		buf_puts(out, "</code>: <strong>");
		buf_xml(out, sentence.data);
		buf_puts(out, "</strong></p>\n");
		comparison_done(&made);
	}
	if (r->commands.n == 1 && chief < r->metrics.n) {
		struct stats_summary s;

		stats_describe(values, runs_column(r, 0, chief, values, NULL), &s);
		if (!s.n)
			return;
		buf_puts(out, "<p class=\"conclusion\"><strong>");
		buf_xml(out, r->metrics.v[chief].name);
		buf_printf(out, ": %s</strong> (median of %zu run%s", bench_value(text, s.median, r->metrics.v[chief].unit), s.n,
			   s.n == 1 ? "" : "s");
		buf_printf(out, ", from %s", bench_value(text, s.min, r->metrics.v[chief].unit));
		buf_printf(out, " to %s)</p>\n", bench_value(text, s.max, r->metrics.v[chief].unit));
	}
}

/* Which colour is which, before the first picture. */
static void put_legend(const struct runs *r, struct buf *out)
{
	for (uint32_t c = 0; c < r->commands.n; c++) {
		buf_printf(out, "<div class=\"command\"><span class=\"key\" style=\"background:%s\"></span>", colour(c));
		put_number(r, c, out);
		buf_xml(out, r->commands.v[c]);
		buf_puts(out, "</div>\n");
	}
}

/* Times and rates have pictures. */
static void put_metric(const struct runs *r, uint32_t m, bool chief, double *values, struct buf *out)
{
	struct scale s = { .from = LEFT, .to = WIDTH - RIGHT };

	if ((!chief && strcmp(r->metrics.v[m].unit, "s") && strcmp(r->metrics.v[m].unit, "gas/s")) ||
	    !find_scale(r, m, &s))
		return;
	buf_puts(out, "<h2>");
	buf_xml(out, r->metrics.v[m].name);
	buf_puts(out, "</h2>\n");
	buf_puts(out, "<div class=\"wide\">\n");
	put_distribution(r, m, s, values, out);
	if (chief)
		put_order(r, m, &s, out);
	buf_puts(out, "</div>\n");
}

void benchpage_put(const struct runs *r, struct buf *out)
{
	_cleanup_free_ double *values = mem_alloc((r->rows.n + 1) * sizeof(*values));
	uint32_t chief = runs_main_metric(r);

	buf_puts(out, head);
	buf_printf(out, "<h1>gasflame bench \xc2\xb7 %zu runs</h1>\n", r->rows.n);
	put_conclusion(r, chief, values, out);
	put_legend(r, out);
	if (chief < r->metrics.n)
		put_metric(r, chief, true, values, out);
	for (uint32_t m = 0; m < r->metrics.n; m++)
		if (m != chief)
			put_metric(r, m, false, values, out);
	for (uint32_t c = 0; c < r->commands.n; c++) {
		buf_printf(out, "<h2 class=\"command\"><span class=\"key\" style=\"background:%s\"></span>",
			   colour(c));
		buf_xml(out, r->commands.v[c]);
		buf_puts(out, "</h2>\n");
		put_table(r, c, values, out);
	}
	buf_puts(out, "<p>A dot is a run; the line is the median, the band its 95 % interval (bootstrap). In "
		      "the second picture the runs stand in the order in which they were "
		      "made.</p>\n</body></html>\n");
}
