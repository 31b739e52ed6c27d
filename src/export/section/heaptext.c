/*
 * heaptext.c - the section on the heap, as text and as JSON.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/memory/heap.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/section/section.h"
#include "export/report/table.h"

enum { USED = 34, TOP = 10 };

static void put_name(const struct export_job *job, struct cleantext_set *functions, struct buf *out, const char *s)
{
	cleantext_last_function(functions, out, s, job->options.columns, USED);
	buf_putc(out, '\n');
}

/* --- totals --- */

/* "± 1.2 MB": nothing where each was seen. */
static const char *error_of(char out[48], const struct heap_figures *f, const struct heap_sum *s)
{
	char text[32];

	if (f->exact || f->no_error || !s->samples)
		return "";
	snprintf(out, 48, " ± %s", str_bytes(text, heap_error(s)));
	return out;
}

static void put_sum(struct buf *out, const struct heap_figures *f, const char *what, const struct heap_sum *s,
		    const char *more)
{
	char bytes[32], objects[32], error[48], text[80];

	snprintf(text, sizeof(text), "%s%s", str_bytes(bytes, s->bytes), error_of(error, f, s));
	/* The sign for the error is two bytes and one column. */
	buf_printf(out, "  %-14s %-*s %14s objects%s\n", what, *error_of(error, f, s) ? 23 : 22, text,
		   str_count(objects, s->objects), more);
}

static void put_totals(const struct export_job *job, struct buf *out, const struct heap_figures *f)
{
	double s = f->duration_ns / 1e9;
	char a[32], b[32], c[32], more[96];

	table_title(job, out, "Heap");
	if (f->exact && (f->lost || f->execs))
		buf_puts(out, "  Each allocation was to be recorded, and some were not: the figures are too small.\n");
	else if (f->exact)
		buf_puts(out, "  Each allocation was recorded: the figures are exact.\n");
	else if (f->no_error)
		buf_puts(out, "  Sampled at different distances in these recordings: how far off the figures are is not known.\n");
	else
		buf_printf(out,
			   "  Sampled every %s on average, since the recording began; ± is one standard "
			   "error.\n",
			   str_bytes(a, f->interval));
	if (f->recordings)
		buf_printf(out,
			   "  Sums of %llu recordings, each since it began: peak and alive are what each had at its own moment, and "
			   "growth is not judged; look at one, or `gasflame diff` two.\n",
			   (unsigned long long)f->recordings);
	if (f->counted && !f->exact)
		buf_printf(out, "  %-14s %-22s %14s calls, counted by the hooks, exact%s\n", "counted",
			   str_bytes(a, f->counted_bytes), str_count(b, f->counted),
			   f->filtered ? ", of the whole recording" : "");
	snprintf(more, sizeof(more), ", %s a second", str_bytes(c, s ? f->allocated.bytes / s : 0));
	put_sum(out, f, "allocated", &f->allocated, more);
	snprintf(more, sizeof(more),
		 ", %.1f %% of the allocated bytes: freed before the thread's next allocation",
		 str_percent(f->temporary.bytes, f->allocated.bytes));
	put_sum(out, f, "temporary", &f->temporary, more);
	snprintf(more, sizeof(more), ", after %s", str_duration(c, f->peak_ns));
	put_sum(out, f, "peak", &f->peak, f->peak.objects && !f->recordings ? more : "");
	put_sum(out, f, f->ended ? "never freed" : "alive at end", &f->live, "");
	if (f->lifetimes)
		buf_printf(out,
			   "  %-14s half of what was freed within %s, 90 %% within %s, 99 %% within %s\n",
			   "lifetimes", str_duration(a, f->lifetime_ns[0]),
			   str_duration(b, f->lifetime_ns[1]), str_duration(c, f->lifetime_ns[2]));
	if (f->lost)
		buf_printf(out, "  %s samples found no room: the figures are too small by as many.\n",
			   str_count(a, f->lost));
	if (f->unseen)
		buf_printf(out, "  Of %s samples it was noticed late that they were freed.\n",
			   str_count(a, f->unseen));
	for (size_t i = 0; i < f->verdict.n; i++) {
		struct buf clean = { 0 };

		cleantext_put(&clean, f->verdict.v[i]);
		buf_printf(out, "  → %s\n", clean.data);
		buf_done(&clean);
	}
}

/* --- functions --- */

struct column {
	const char *title, *key;
	uint64_t (*value)(const struct heap_function *g);
	const struct heap_sum *(*sum)(const struct heap_function *g);
};

static uint64_t live_of(const struct heap_function *g)
{
	return g->live.bytes;
}
static uint64_t allocated_of(const struct heap_function *g)
{
	return g->allocated.bytes;
}
static uint64_t temporary_of(const struct heap_function *g)
{
	return g->temporary.bytes;
}
static uint64_t peak_of(const struct heap_function *g)
{
	return g->peak.bytes;
}
static const struct heap_sum *live_sum(const struct heap_function *g)
{
	return &g->live;
}
static const struct heap_sum *allocated_sum(const struct heap_function *g)
{
	return &g->allocated;
}
static const struct heap_sum *temporary_sum(const struct heap_function *g)
{
	return &g->temporary;
}
static const struct heap_sum *peak_sum(const struct heap_function *g)
{
	return &g->peak;
}

static uint64_t growth_of(const struct heap_function *g)
{
	return g->grows && g->thirds[2] > g->thirds[0] ? g->thirds[2] - g->thirds[0] : 0;
}

static const struct column columns[] = {
	{ "Alive at the end, by nearest own function", "live", live_of, live_sum },
	{ "At the peak", "peak", peak_of, peak_sum },
	{ "Allocated", "allocated", allocated_of, allocated_sum },
	{ "Temporary", "temporary", temporary_of, temporary_sum },
};

/* The rows with the most of something, most first. Caller frees. */
static const struct heap_function **order(const struct heap_figures *f,
					  uint64_t (*value)(const struct heap_function *), size_t *ret_n)
{
	const struct heap_function **rows = mem_alloc((f->functions.n + 1) * sizeof(*rows));
	size_t n = 0;

	/* Few rows are shown of possibly many: each finds its place among those so far. */
	for (size_t i = 0; i < f->functions.n; i++) {
		const struct heap_function *g = &f->functions.v[i];
		size_t at;

		if (!value(g))
			continue;
		for (at = n++; at && value(rows[at - 1]) < value(g); at--)
			rows[at] = rows[at - 1];
		rows[at] = g;
	}
	*ret_n = n;
	return rows;
}

static size_t shown(const struct export_job *job, size_t n)
{
	size_t limit = job->options.limit ? MIN(job->options.limit, (size_t)TOP) : n;

	return MIN(n, limit);
}

static void put_column(const struct export_job *job, struct buf *out, const struct heap_figures *f,
		       const struct column *c, uint64_t all)
{
	_cleanup_(cleantext_set_done) struct cleantext_set functions = { 0 };
	size_t n;
	const struct heap_function **rows = order(f, c->value, &n);

	if (n)
		table_title(job, out, c->title);
	for (size_t i = 0; i < shown(job, n); i++) {
		const struct heap_sum *s = c->sum(rows[i]);
		char share[32], bytes[32], objects[32];

		buf_printf(out, "%7s %10s %13s  ", str_share(share, str_percent(s->bytes, all)), str_bytes(bytes, s->bytes),
			   str_count(objects, s->objects));
		put_name(job, &functions, out, rows[i]->name);
	}
	free(rows);
}

static void put_growth(const struct export_job *job, struct buf *out, const struct heap_figures *f)
{
	_cleanup_(cleantext_set_done) struct cleantext_set functions = { 0 };
	size_t n;
	const struct heap_function **rows = order(f, growth_of, &n);

	if (n) {
		table_title(job, out, "Growing to the end: after a third of the time, two, at the end; mean age");
		for (size_t i = 0; i < shown(job, n); i++) {
			char a[32], b[32], c[32], age[32];

			buf_printf(out, "%9s %9s %9s %s  ", str_bytes(a, MAX(rows[i]->thirds[0], 0)),
				   str_bytes(b, MAX(rows[i]->thirds[1], 0)),
				   str_bytes(c, MAX(rows[i]->thirds[2], 0)),
				   str_right(age, str_duration(age, rows[i]->age_ns), 9));
			put_name(job, &functions, out, rows[i]->name);
		}
	}
	free(rows);
}

static void put_text(const struct export_job *job, struct buf *out)
{
	struct heap_figures f;

	if (heap_measure(&f, job->profile, &job->selection->options, job->options.own)) {
		const uint64_t all[] = { f.live.bytes, f.peak.bytes, f.allocated.bytes, f.temporary.bytes };

		put_totals(job, out, &f);
		put_growth(job, out, &f);
		for (size_t i = 0; i < ARRAY_LEN(columns); i++)
			put_column(job, out, &f, &columns[i], all[i]);
	}
	heap_done(&f);
}

/* --- JSON --- */

static void json_sum(struct json *j, const struct heap_figures *f, const char *key, const struct heap_sum *s)
{
	json_open_object(j, key);
	json_put_uints(j, { "bytes", s->bytes }, { "objects", s->objects }, { "samples", s->samples });
	json_put_fixed(j, "error_bytes", f->no_error ? NAN : heap_error(s), 0);
	json_close(j);
}

static void json_function(struct json *j, const struct heap_figures *f, const struct heap_function *g)
{
	json_open_row(j, 2);
	json_put_string(j, "name", g->name);
	json_put_string(j, "module", g->module);
	for (size_t k = 0; k < ARRAY_LEN(columns); k++)
		json_sum(j, f, columns[k].key, columns[k].sum(g));
	json_open_array(j, "thirds");
	for (size_t k = 0; k < ARRAY_LEN(g->thirds); k++)
		json_put_int(j, NULL, g->thirds[k]);
	json_close(j);
	json_put_fixed(j, "age_ns", g->age_ns, 0);
	json_put_bool(j, "grows", g->grows);
	json_close(j);
}

static void json_lifetime(struct json *j, const struct heap_figures *f)
{
	json_open_object(j, "lifetime_ns");
	json_put_uints(j, { "p50", f->lifetime_ns[0] }, { "p90", f->lifetime_ns[1] }, { "p99", f->lifetime_ns[2] },
		       { "objects", f->lifetimes });
	json_close(j);
}

static void json_figures(struct json *j, const struct heap_figures *f)
{
	json_put_bool(j, "exact", f->exact);
	json_put_uints(j, { "interval_bytes", f->interval }, { "duration_ns", f->duration_ns },
		       { "counted_bytes", f->counted_bytes }, { "counted", f->counted }, { "peak_ns", f->peak_ns });
	json_put_bool(j, "ended", f->ended);
	json_put_uints(j, { "lost", f->lost }, { "recordings", MAX(f->recordings, 1) });
	json_lifetime(j, f);
	json_break(j, 1);
	json_sum(j, f, "allocated", &f->allocated);
	json_sum(j, f, "freed", &f->freed);
	json_sum(j, f, "temporary", &f->temporary);
	json_sum(j, f, "live", &f->live);
	json_sum(j, f, "peak", &f->peak);
}

static void json_verdict(struct json *j, const struct heap_figures *f)
{
	json_open_array_line(j, "symptoms", 1);
	for (int i = 0; i < HEAP_SYMPTOMS; i++)
		if (f->symptoms[i])
			json_put_string(j, NULL, heap_symptom_name(i));
	json_close(j);
	json_break(j, 1);
	json_put_strings(j, "verdict", (const char *const *)f->verdict.v, f->verdict.n);
}

static void put_json(const struct export_job *job, struct json *j)
{
	struct heap_figures f;

	if (heap_measure(&f, job->profile, &job->selection->options, job->options.own)) {
		size_t n = job->options.limit ? MIN(job->options.limit, f.functions.n) : f.functions.n;

		json_open_object_line(j, "heap", 0);
		json_figures(j, &f);
		json_open_array_line(j, "functions", 1);
		for (size_t i = 0; i < n; i++)
			json_function(j, &f, &f.functions.v[i]);
		json_close(j);
		json_verdict(j, &f);
		json_close(j);
	}
	heap_done(&f);
}

const struct section section_heap = {
	.name = "heap", .text = put_text, .json = put_json, .json_after_tables = true
};
