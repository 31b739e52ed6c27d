#include "export/export.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/text/str.h"
#include "export/diff/difftext.h"
#include "export/page/page.h"
#include "profile/profile.h"

enum { FORMATS_MAX = 48 };

const struct export_format export_formats[] = {
	{ "html", "a page for a browser with flame graphs, time and tables", ".html",
	  EXPORT_PAGE | EXPORT_BESIDE | EXPORT_ACCOUNT, html_write, page_write_diff },
	{ "text", "tables by function, module and thread", ".txt",
	  EXPORT_VIEWS | EXPORT_ROWS | EXPORT_ACCOUNT | EXPORT_LINES, text_write, difftext_write },
	{ "summary", "how often what happened: locks, I/O, context switches, faults", ".summary", 0, summary_write },
	{ "json", "the tables of text as JSON", ".json", EXPORT_VIEWS | EXPORT_ROWS | EXPORT_ACCOUNT, json_write,
	  diffjson_write },
	{ "csv", "a table by function, or another one, for spreadsheets", ".csv", EXPORT_VIEWS | EXPORT_ROWS, csv_write },
	{ "svg", "a flame graph to click through in a browser", ".svg", EXPORT_STACKS | EXPORT_PICTURE | EXPORT_BESIDE,
	  svg_write },
	{ "folded", "a line for each stack, for flamegraph.pl, speedscope and scripts", ".folded",
	  EXPORT_STACKS | EXPORT_INLINED, folded_write, difffolded_write },
	{ "dot", "a call graph for Graphviz, as jeprof and pprof draw it", ".dot", EXPORT_ROWS, dot_write },
	{ "pprof", "all events as one profile for go tool pprof, Pyroscope and others", ".pb.gz", EXPORT_EVENTS | EXPORT_BINARY, pprof_write },
	{ "otlp", "all events as profiles of OpenTelemetry, for collectors", ".otlp", EXPORT_EVENTS | EXPORT_TIMES | EXPORT_BINARY, otlp_write },
	{ "speedscope", "samples in their order, by thread and event, for speedscope", ".speedscope.json",
	  EXPORT_EVENTS | EXPORT_TIMES, speedscope_write },
	{ "firefox", "threads over time with blocks and long waits, for the Firefox profiler (profiler.firefox.com)", ".firefox.json",
	  EXPORT_EVENTS | EXPORT_TIMES, firefox_write },
	{ "perfetto", "states of threads over time, who woke whom, and samples, for ui.perfetto.dev", ".pftrace",
	  EXPORT_EVENTS | EXPORT_TIMES | EXPORT_BINARY, perfetto_write },
	{ "perf-script", "samples one by one as perf script prints them, for stackcollapse-perf.pl and grep", ".perf",
	  EXPORT_EVENTS | EXPORT_TIMES, perfscript_write },
	{ "callgrind", "a call graph for callgrind_annotate and KCachegrind", ".callgrind", EXPORT_EVENTS, callgrind_write },
	{ "jsonl", "a line of JSON for each sample, for scripts", ".jsonl", EXPORT_EVENTS | EXPORT_TIMES, jsonl_write },
	{ "csv-samples", "a row for each sample, for DuckDB, ClickHouse and pandas", ".samples.csv",
	  EXPORT_EVENTS | EXPORT_TIMES, csvsamples_write },
	{ "heap-table", "a heap by function in the columns of jemalloc's own tool", ".heaptable", EXPORT_ROWS,
	  heaptable_write },
	{ "massif", "the heap over time with trees, for ms_print and massif-visualizer", ".massif", 0, massif_write },
	{ "heap_v2", "a heap as jemalloc dumps it, with its symbols, for jeprof", ".heap", EXPORT_EVENTS, heapv2_write },
	{ "heaptrack", "a heap with a line for each allocation, for heaptrack_print", ".heaptrack", EXPORT_EVENTS | EXPORT_TIMES,
	  heaptrack_write },
	{ 0 },
};
_Static_assert(ARRAY_LEN(export_formats) <= FORMATS_MAX, "export_names() has no room for all formats");

const struct export_format *export_find(const char *name)
{
	for (const struct export_format *f = export_formats; f->name; f++)
		if (!strcmp(f->name, name))
			return f;
	return NULL;
}

const struct export_format *export_find_path(const char *path)
{
	const struct export_format *found = NULL;

	/* ".speedscope.json" is more than ".json". */
	for (const struct export_format *f = export_formats; f->name; f++)
		if (str_ends(path, f->extension) && (!found || strlen(f->extension) > strlen(found->extension)))
			found = f;
	return found;
}

const char *const *export_names(bool diff)
{
	static const char *names[2][FORMATS_MAX];
	size_t n = 0;

	for (const struct export_format *f = export_formats; f->name; f++)
		if (!diff || f->diff)
			names[diff][n++] = f->name;
	return names[diff];
}

char *export_list(unsigned flags, bool diff, const char *more)
{
	const char *names[FORMATS_MAX];
	struct buf b = { 0 };
	size_t n = 0;

	for (const struct export_format *f = export_formats; f->name; f++)
		if (f->flags & flags && (!diff || f->diff))
			names[n++] = f->name;
	if (more)
		names[n++] = more;
	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%s%s", !i ? "" : i + 1 < n ? ", " : " and ", names[i]);
	return b.data;
}

bool export_weighs_samples(const struct export_job *job)
{
	const struct profile *p = job->profile;
	const struct selection *s = job->selection;
	uint32_t event = s->options.event;

	if (job->options.weigh != EXPORT_WEIGH_AUTO)
		return job->options.weigh == EXPORT_WEIGH_SAMPLES;
	if (s->waits || event == SELECT_IO)
		return false;
	if (event >= p->events.n || !s->all.value)
		return true;
	/* Where the rate was changed, or recordings of several rates were merged, samples are not alike. */
	return p->events.v[event].period &&
	       s->recorded.value == s->recorded.samples * p->events.v[event].period;
}

bool export_shows_causes(const struct export_job *job)
{
	return (job->selection->waits || job->selection->mixed) && job->selection->options.causes;
}

uint64_t export_unit_parts(const char *unit)
{
	uint64_t parts;

	if (!str_starts(unit, "count/") || str_parse_uint(unit + strlen("count/"), 1, 1000000000, &parts))
		return 1;
	return parts;
}

void export_decimal(struct buf *b, uint64_t value, uint64_t parts)
{
	uint64_t fraction = value % parts;

	buf_printf(b, "%llu", (unsigned long long)(value / parts));
	if (fraction)
		buf_putc(b, '.');
	while (fraction && parts >= 10) {
		parts /= 10;
		buf_putc(b, '0' + fraction / parts);
		fraction %= parts;
	}
}

/* Three significant digits, or all that are whole. */
static char *show_parts(char out[32], uint64_t value, uint64_t parts)
{
	double v = (double)value / parts;

	if (v >= 100 || value % parts == 0)
		return str_count(out, (value + parts / 2) / parts);
	snprintf(out, 32, "%.3g", v);
	return out;
}

char *export_value(char out[32], const struct export_job *job, uint64_t value)
{
	const char *unit = job->selection->unit;
	uint64_t parts = export_unit_parts(unit);

	if (!strcmp(unit, "ns"))
		return str_duration(out, value);
	if (!strcmp(unit, "bytes"))
		return str_bytes(out, value);
	return parts > 1 ? show_parts(out, value, parts) : str_count(out, value);
}

const char *export_event(const struct export_job *job)
{
	return job->selection->name;
}

const char *export_event_describe(const struct export_job *job)
{
	return job->selection->describe;
}

void export_when(const struct export_job *job, struct buf *b)
{
	const struct profile *p = job->profile;
	const struct select_options *o = &job->selection->options;
	time_t wall = p->start_wall_ns / 1000000000;
	char text[64], duration[32];
	struct tm tm;

	if (!select_duration_ns(p) && !p->start_wall_ns) {
		buf_puts(b, "imported"); /* without times */
		return;
	}
	buf_puts(b, str_duration(duration, select_duration_ns(p)));
	if (p->start_wall_ns && localtime_r(&wall, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		buf_printf(b, " from %s", text);
	if (o->from_ns || o->to_ns)
		buf_printf(b, ", of it %.4g to %.4g s", o->from_ns / 1e9,
			   (o->to_ns ? o->to_ns : select_duration_ns(p)) / 1e9);
}
