/*
 * dot.c - a call graph for Graphviz, the picture of jeprof and pprof: a box for each function, as large as what it cost itself, and
 * an arrow for each call, as thick as what went through it.
 *
 *	dot -Tsvg slow.dot >slow.svg
 *
 * A picture of all functions is of no use: shown are the heaviest, half of them by what they cost themselves and half by what
 * they cost with all below. A call through functions that are left out is dotted. The legend says what is missing.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/foreign/stacksums.h"
#include "export/report/cleantext.h"
#include "profile/profile.h"

enum {
	NODES = 80,
	NODE_LEAST = 500,    /* parts of the whole: one that costs less than 0.2 % is not shown unless all were asked for */
	EDGE_LEAST = 1000,   /* the same for calls: 0.1 % */
	NAME_COLUMNS = 44,
	LINE_COLUMNS = 24,
};

struct node {
	uint64_t self, total;
	uint32_t function;
	bool shown;
	size_t seen; /* 1 + the last stack it was on */
};

struct edge {
	uint64_t value;
	uint32_t from, to;
	bool through; /* functions that are left out are between them */
	size_t seen;
};

struct picture {
	const struct export_job *job;
	struct stacksums sums;
	VEC(struct node) nodes; /* of each function */
	VEC(struct edge) edges;
	struct map edge_index;
	uint64_t all;
	size_t shown, edges_dropped;
	struct buf *out;
};

/* --- what is shown --- */

static uint64_t value_of(const struct picture *g, size_t i)
{
	const uint64_t *values = stacksums_values(&g->sums, i);
	uint64_t sum = 0;

	for (size_t e = 0; e < g->sums.events.n; e++)
		sum += values[e];
	return sum;
}

static void add_nodes(struct picture *g, size_t i)
{
	uint64_t value = value_of(g, i);

	stacksums_places(&g->sums, i);
	for (uint32_t f = g->nodes.n; f < g->sums.functions.n; f++)
		vec_push(&g->nodes, (struct node){ .function = f });
	g->all += value;
	g->nodes.v[g->sums.places.v[0].function].self += value;
	for (size_t k = 0; k < g->sums.places.n; k++) {
		struct node *n = &g->nodes.v[g->sums.places.v[k].function];

		if (n->seen != i + 1)
			n->total += value;
		n->seen = i + 1;
	}
}

static int by_self(const void *a, const void *b, void *nodes)
{
	const struct node *x = (struct node *)nodes + *(const uint32_t *)a, *y = (struct node *)nodes + *(const uint32_t *)b;

	return ORDER(y->self, x->self) ?: ORDER(y->total, x->total) ?: ORDER(x->function, y->function);
}

static int by_total(const void *a, const void *b, void *nodes)
{
	const struct node *x = (struct node *)nodes + *(const uint32_t *)a, *y = (struct node *)nodes + *(const uint32_t *)b;

	return ORDER(y->total, x->total) ?: ORDER(y->self, x->self) ?: ORDER(x->function, y->function);
}

static bool show(struct picture *g, uint32_t node, uint64_t value)
{
	bool every = !g->job->options.limit;

	if (g->nodes.v[node].shown || !value || (!every && value < g->all / NODE_LEAST))
		return false;
	g->nodes.v[node].shown = true;
	g->shown++;
	return true;
}

/* Takes the heaviest of the one order and of the other in turn; with --sort total only of the other. */
static void choose_nodes(struct picture *g)
{
	const struct export_options *o = &g->job->options;
	size_t limit = o->default_limit ? NODES : o->limit ? o->limit : SIZE_MAX, n = g->nodes.n;
	_cleanup_free_ uint32_t *self = mem_alloc((n + 1) * sizeof(*self)), *total = mem_alloc((n + 1) * sizeof(*total));

	for (uint32_t i = 0; i < n; i++)
		self[i] = total[i] = i;
	qsort_r(self, n, sizeof(*self), by_self, g->nodes.v);
	qsort_r(total, n, sizeof(*total), by_total, g->nodes.v);
	for (size_t a = o->order == TOP_BY_TOTAL ? n : 0, b = 0; (a < n || b < n) && g->shown < limit;) {
		while (a < n && !show(g, self[a], g->nodes.v[self[a]].self))
			a++;
		if (g->shown == limit)
			break;
		while (b < n && !show(g, total[b], g->nodes.v[total[b]].total))
			b++;
	}
}

static void add_edge(struct picture *g, size_t stack, uint32_t from, uint32_t to, bool through, uint64_t value)
{
	uint64_t *id = map_put(&g->edge_index, map_pair(from, to), g->edges.n);
	struct edge *e;

	if (*id == g->edges.n)
		vec_push(&g->edges, (struct edge){ .from = from, .to = to, .through = true });
	e = &g->edges.v[*id];
	if (e->seen != stack + 1)
		e->value += value;
	e->seen = stack + 1;
	e->through &= through;
}

static void add_edges(struct picture *g, size_t i)
{
	uint64_t value = value_of(g, i);
	uint32_t from = PROFILE_NONE;
	bool through = false;

	stacksums_places(&g->sums, i);
	for (size_t k = g->sums.places.n; k-- > 0;) {
		uint32_t function = g->sums.places.v[k].function;

		if (!g->nodes.v[function].shown) {
			through = true;
			continue;
		}
		if (from != PROFILE_NONE)
			add_edge(g, i, from, function, through, value);
		from = function;
		through = false;
	}
}

static int compare_edges(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return ORDER(y->value, x->value) ?: ORDER(x->from, y->from) ?: ORDER(x->to, y->to);
}

/* --- text --- */

/* A string of dot: quotes and backslashes are escaped, and a backslash of ours begins what it begins. */
static void put_escaped(struct buf *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			buf_putc(out, '\\');
		buf_putc(out, *s);
	}
}

static void put_clean(struct buf *out, const char *s)
{
	_cleanup_(buf_done) struct buf clean = { 0 };

	cleantext_put(&clean, s);
	put_escaped(out, clean.n ? clean.data : "");
}

/* A name in lines of some columns, broken after "::", ".", "," or a space. */
static void put_lines(struct buf *out, const char *name)
{
	const char *line = name, *last = NULL;

	for (const char *s = name; *s; s++) {
		_cleanup_free_ char *piece = NULL;

		if (s > name && strchr(":.,> ", s[-1]) && !strchr(":.,> ", *s))
			last = s;
		if (s - line < LINE_COLUMNS || !last || last == line)
			continue;
		piece = mem_strndup(line, last - line);
		put_escaped(out, piece);
		buf_puts(out, "\\n");
		line = last;
		last = NULL;
	}
	put_escaped(out, line);
}

/* From pale to strong, by the share of the whole. */
static void put_colour(struct buf *out, const char *key, double share, bool strong)
{
	double x = pow(share, 0.6);
	int red = strong ? 150 - 20 * x : 251 - 8 * x, green = strong ? 140 - 100 * x : 249 - 118 * x,
	    blue = strong ? 130 - 100 * x : 246 - 146 * x;

	buf_printf(out, "%s=\"#%02x%02x%02x\"", key, red, green, blue);
}

static double share_of(const struct picture *g, uint64_t value)
{
	return str_percent(value, g->all) / 100;
}

static void put_amount(const struct picture *g, uint64_t value)
{
	char text[32], percent[32];

	put_escaped(g->out, export_value(text, g->job, value));
	buf_printf(g->out, " (%s)", str_share(percent, 100 * share_of(g, value)));
}

static void put_node(const struct picture *g, const struct node *n, struct cleantext_set *names)
{
	const struct stackfunction *f = &g->sums.functions.v[n->function];
	_cleanup_(buf_done) struct buf clean = { 0 }, name = { 0 };

	cleantext_put(&clean, f->name);
	cleantext_function(names, &name, clean.n ? clean.data : "", NAME_COLUMNS);
	buf_printf(g->out, "\tn%u [label=\"", n->function);
	put_lines(g->out, name.n ? name.data : "");
	buf_puts(g->out, "\\n");
	if (n->self == n->total) {
		put_amount(g, n->self);
	} else {
		if (n->self)
			put_amount(g, n->self);
		buf_puts(g->out, n->self ? "\\nof " : "0 of ");
		put_amount(g, n->total);
	}
	buf_printf(g->out, "\", fontsize=%.1f, ", 10 + 22 * sqrt(share_of(g, n->self)));
	put_colour(g->out, "fillcolor", share_of(g, n->total), false);
	buf_puts(g->out, ", ");
	put_colour(g->out, "color", share_of(g, n->total), true);
	buf_puts(g->out, ", tooltip=\"");
	put_clean(g->out, f->name);
	buf_puts(g->out, *f->module ? ", " : "");
	put_clean(g->out, f->module);
	buf_puts(g->out, "\"];\n");
}

static void put_edge(const struct picture *g, const struct edge *e)
{
	double share = share_of(g, e->value);
	char text[32];

	buf_printf(g->out, "\tn%u -> n%u [label=\" %s\", weight=%d, penwidth=%.2f, ", e->from, e->to, export_value(text, g->job, e->value),
		   1 + (int)(100 * share), 0.6 + 5 * share);
	put_colour(g->out, "color", share, true);
	if (e->through)
		buf_puts(g->out, ", style=dotted");
	buf_puts(g->out, ", tooltip=\"");
	put_clean(g->out, g->sums.functions.v[e->from].name);
	buf_puts(g->out, " → ");
	put_clean(g->out, g->sums.functions.v[e->to].name);
	buf_puts(g->out, "\"];\n");
}

/* How much of the whole the boxes themselves are, and what was left out. */
static void put_legend(const struct picture *g)
{
	const struct profile *p = g->job->profile;
	_cleanup_(buf_done) struct buf when = { 0 };
	uint64_t self = 0;
	char text[32];

	for (size_t i = 0; i < g->nodes.n; i++)
		if (g->nodes.v[i].shown)
			self += g->nodes.v[i].self;
	export_when(g->job, &when);
	buf_puts(g->out, "\tlegend [shape=note, style=filled, fillcolor=\"#ffffff\", color=\"#999999\", fontsize=13, label=\"");
	put_clean(g->out, profile_str(p, p->target));
	buf_puts(g->out, "\\l");
	put_clean(g->out, export_event(g->job));
	buf_printf(g->out, ": %s", export_value(text, g->job, g->all));
	if (when.n && p->duration_ns) {
		buf_puts(g->out, "\\l");
		put_clean(g->out, when.data);
	}
	buf_printf(g->out, "\\l%zu of %zu functions are shown: %.1f %% of it is their own\\l", g->shown, g->nodes.n,
		   100 * share_of(g, self));
	if (g->edges_dropped)
		buf_printf(g->out, "%zu arrows below %s are left out\\l", g->edges_dropped, export_value(text, g->job, MAX(1, g->all / EDGE_LEAST)));
	buf_puts(g->out, "a dotted arrow leads through functions that are not shown\\l\"];\n");
}

static void put_picture(struct picture *g)
{
	struct cleantext_set names = { 0 };

	buf_puts(g->out, "digraph \"");
	put_clean(g->out, profile_str(g->job->profile, g->job->profile->target));
	buf_puts(g->out, "\" {\n"
			 "\tgraph [nodesep=0.25, ranksep=0.45, bgcolor=\"#ffffff\", fontname=\"Helvetica,Arial,DejaVu Sans,sans-serif\"];\n"
			 "\tnode [shape=box, style=\"filled,rounded\", fontname=\"Helvetica,Arial,DejaVu Sans,sans-serif\", margin=\"0.12,0.06\"];\n"
			 "\tedge [fontname=\"Helvetica,Arial,DejaVu Sans,sans-serif\", fontsize=10, arrowsize=0.7];\n");
	put_legend(g);
	for (size_t i = 0; i < g->nodes.n; i++)
		if (g->nodes.v[i].shown)
			put_node(g, &g->nodes.v[i], &names);
	for (size_t i = 0; i < g->edges.n - g->edges_dropped; i++)
		put_edge(g, &g->edges.v[i]);
	buf_puts(g->out, "}\n");
	cleantext_set_done(&names);
}

int dot_write(const struct export_job *job, struct buf *out, struct err *err)
{
	struct picture g = { .job = job, .out = out };
	int r = stacksums_make(&g.sums, job, err);

	for (size_t i = 0; i < g.sums.list.n; i++)
		add_nodes(&g, i);
	choose_nodes(&g);
	for (size_t i = 0; i < g.sums.list.n; i++)
		add_edges(&g, i);
	vec_sort(&g.edges, compare_edges);
	for (size_t i = 0; i < g.edges.n; i++)
		g.edges_dropped += g.edges.v[i].value < g.all / EDGE_LEAST || !g.edges.v[i].value;
	if (!r)
		put_picture(&g);
	vec_done(&g.nodes);
	vec_done(&g.edges);
	map_done(&g.edge_index);
	stacksums_done(&g.sums);
	return r;
}
