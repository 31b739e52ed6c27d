/*
 * callgrind.c - a call graph in callgrind's format, for callgrind_annotate and KCachegrind:
 *
 *	fl=(1) /src/trie.rs
 *	fn=(1) reth_trie::root
 *	12 1000000			the cost of line 12 itself
 *	cfn=(2) keccak256		a call in line 14, with everything below
 *	calls=3 0
 *	14 3000000
 *
 * Of a function that is on a stack several times, only the outermost call costs: the calls to a function add up to its samples, with
 * recursion, too. So that this is true of functions that nothing calls as well, a function "[all]" calls them. The number of calls
 * is that of samples: how often a function was really called is not known.
 */
#include <ctype.h>
#include <string.h>

#include "analyze/select.h"
#include "base/buf.h"
#include "base/mem.h"
#include "export/export.h"
#include "export/foreign/stacksums.h"
#include "export/report/cleantext.h"
#include "profile/profile.h"

#define ALL PROFILE_NONE /* the caller of the outermost functions */

struct record {
	uint32_t function, callee; /* callee NONE = what a line itself cost */
	uint32_t file, line;
	uint32_t own_file;         /* 0 = that of the function: such lines come first */
	size_t values;             /* where its costs begin */
	uint64_t calls;
};
#define NO_CALLEE PROFILE_NONE

struct graph {
	struct stacksums sums;
	VEC(struct record) records;
	VEC(uint64_t) values;
	struct map links, ids; /* a trie of numbers, and records by its nodes */
	VEC(size_t) seen;      /* of each function, 1 + the last stack on which it was */
	struct buf *out;
	struct map named[3];   /* names that have a number already */
	struct strtab names;
};

static uint32_t link_to(struct graph *g, uint32_t node, uint32_t number)
{
	return *map_put(&g->links, map_pair(node, number), g->links.n + 1);
}

static struct record *record_of(struct graph *g, const struct stackplace *at, uint32_t callee)
{
	uint32_t node = link_to(g, link_to(g, link_to(g, link_to(g, 0, at->function), at->file), at->line), callee);
	uint64_t *id = map_put(&g->ids, node, g->records.n);

	if (*id == g->records.n) {
		vec_push(&g->records, (struct record){ at->function, callee, at->file, at->line, .values = g->values.n });
		for (size_t i = 0; i < g->sums.events.n; i++)
			vec_push(&g->values, 0);
	}
	return &g->records.v[*id];
}

static void add_values(struct graph *g, const struct record *r, const uint64_t *values)
{
	for (size_t i = 0; i < g->sums.events.n; i++)
		g->values.v[r->values + i] += values[i];
}

static void add_stack(struct graph *g, size_t i)
{
	const uint64_t *values = stacksums_values(&g->sums, i);
	struct stackplace all = { .function = ALL };
	struct stackplace *places;

	stacksums_places(&g->sums, i);
	places = g->sums.places.v;
	while (g->seen.n < g->sums.functions.n)
		vec_push(&g->seen, 0);
	add_values(g, record_of(g, &places[0], NO_CALLEE), values);
	for (size_t k = g->sums.places.n; k-- > 0;) {
		uint32_t function = places[k].function;
		struct record *r = record_of(g, k + 1 < g->sums.places.n ? &places[k + 1] : &all, function);

		r->calls += g->sums.list.v[i].count;
		if (g->seen.v[function] != i + 1)
			add_values(g, r, values);
		g->seen.v[function] = i + 1;
	}
}

/* By function; in it lines of its own file first, and a line's own cost before its calls. */
static int compare_records(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	return ORDER(x->function, y->function) ?: ORDER(x->own_file, y->own_file) ?: ORDER(x->line, y->line) ?:
	       ORDER(x->callee != NO_CALLEE, y->callee != NO_CALLEE) ?: ORDER(x->callee, y->callee);
}

/* --- text --- */

enum named { OBJECT, FILE_NAME, FUNCTION };

/* "fn=(7) name", and "fn=(7)" the next time. */
static void put_name(struct graph *g, const char *key, enum named kind, uint32_t id, const char *name)
{
	uint64_t *known = map_put(&g->named[kind], id, 0);

	buf_printf(g->out, "%s=(%u)", key, id + 1);
	if (!*known) {
		buf_putc(g->out, ' ');
		cleantext_put(g->out, *name ? name : "???");
	}
	*known = 1;
	buf_putc(g->out, '\n');
}

static void put_function(struct graph *g, uint32_t function, bool called)
{
	static const struct stackfunction all = { .name = "[all]", .module = "" };
	const struct stackfunction *f = function == ALL ? &all : &g->sums.functions.v[function];

	put_name(g, called ? "cob" : "ob", OBJECT, strtab_add(&g->names, f->module), f->module);
	put_name(g, called ? "cfi" : "fl", FILE_NAME, f->file, strtab_get(&g->sums.files, f->file));
	put_name(g, called ? "cfn" : "fn", FUNCTION, function == ALL ? 0 : function + 1, f->name);
}

static void put_record(struct graph *g, const struct record *r)
{
	if (r->callee != NO_CALLEE) {
		put_function(g, r->callee, true);
		buf_printf(g->out, "calls=%llu 0\n", (unsigned long long)MAX(r->calls, 1));
	}
	buf_printf(g->out, "%u", r->line);
	for (size_t i = 0; i < g->sums.events.n; i++)
		buf_printf(g->out, " %llu", (unsigned long long)g->values.v[r->values + i]);
	buf_putc(g->out, '\n');
}

static void put_records(struct graph *g)
{
	const struct record *before = NULL;

	for (size_t i = 0; i < g->records.n; before = &g->records.v[i++]) {
		const struct record *r = &g->records.v[i];

		if (!before || before->function != r->function) {
			buf_putc(g->out, '\n');
			put_function(g, r->function, false);
		}
		if (before && before->function == r->function ? before->file != r->file : r->own_file)
			put_name(g, "fi", FILE_NAME, r->file, strtab_get(&g->sums.files, r->file));
		put_record(g, r);
	}
}

/* One word; of two events of a name the second has its unit. */
static void put_event(struct buf *out, const struct profile *p, const struct stacksums *s, size_t i)
{
	const struct profile_event *e = &p->events.v[s->events.v[i]];
	const char *parts[2] = { profile_str(p, e->name), NULL };

	for (size_t k = 0; k < i; k++)
		if (p->events.v[s->events.v[k]].name == e->name)
			parts[1] = profile_str(p, e->unit);
	for (size_t k = 0; k < 2 && parts[k]; k++) {
		if (k)
			buf_putc(out, '_');
		for (const char *c = parts[k]; *c; c++)
			buf_putc(out, isalnum((unsigned char)*c) || strchr("-.", *c) ? *c : '_');
	}
}

static void put_head(struct graph *g, const struct export_job *job)
{
	const struct profile *p = job->profile;
	const struct stacksums *s = &g->sums;

	buf_puts(g->out, "# callgrind format\nversion: 1\ncreator: gasflame\ncmd: ");
	cleantext_put(g->out, profile_str(p, p->target));
	buf_puts(g->out, "\npositions: line\nevents:");
	for (size_t i = 0; i < s->events.n; i++) {
		buf_putc(g->out, ' ');
		put_event(g->out, p, s, i);
	}
	if (!s->events.n)
		buf_puts(g->out, " samples");
	buf_putc(g->out, '\n');
}

/* The unit of each event, as a comment: "desc:" after the events is unknown to callgrind_annotate, before them it is shown. */
static void put_units(struct graph *g, const struct profile *p)
{
	for (size_t i = 0; i < g->sums.events.n; i++) {
		buf_puts(g->out, "# Unit of ");
		put_event(g->out, p, &g->sums, i);
		buf_puts(g->out, ": ");
		cleantext_put(g->out, profile_str(p, p->events.v[g->sums.events.v[i]].unit));
		buf_putc(g->out, '\n');
	}
}

static void put_totals(struct graph *g)
{
	buf_puts(g->out, "\ntotals:");
	for (size_t e = 0; e < g->sums.events.n; e++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < g->sums.list.n; i++)
			sum += stacksums_values(&g->sums, i)[e];
		buf_printf(g->out, " %llu", (unsigned long long)sum);
	}
	buf_puts(g->out, g->sums.events.n ? "\n" : " 0\n");
}

int callgrind_write(const struct export_job *job, struct buf *out, struct err *err)
{
	struct graph g = { .out = out };
	int r = stacksums_make(&g.sums, job, err);

	strtab_init(&g.names);
	for (size_t i = 0; i < g.sums.list.n; i++)
		add_stack(&g, i);
	for (size_t i = 0; i < g.records.n; i++) {
		struct record *x = &g.records.v[i];

		x->own_file = x->function == ALL || x->file == g.sums.functions.v[x->function].file ? 0 : x->file + 1;
	}
	vec_sort(&g.records, compare_records);
	if (!r) {
		put_head(&g, job);
		put_units(&g, job->profile);
		put_records(&g);
		put_totals(&g);
	}
	vec_done(&g.records);
	vec_done(&g.values);
	vec_done(&g.seen);
	map_done(&g.links);
	map_done(&g.ids);
	for (size_t i = 0; i < ARRAY_LEN(g.named); i++)
		map_done(&g.named[i]);
	strtab_done(&g.names);
	stacksums_done(&g.sums);
	return r;
}
