/*
 * memjson.c - memory for programs: JSON, the page and CSV (memtext.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "analyze/memory/rss.h"
#include "analyze/select.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/section/memtext.h"
#include "export/section/section.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum { PAGE_FILES = 8 };

/* --- JSON --- */

static void put_rows(const struct rss *r, enum rss_kind kind, size_t limit, struct json *j)
{
	size_t n = 0;

	json_open_array_line(j, kind == RSS_PART ? "parts" : "files", 1);
	for (size_t i = 0; i < r->rows.n; i++) {
		const struct rss_row *row = &r->rows.v[i];

		if (row->kind != kind || (limit && kind == RSS_DETAIL && n++ >= limit))
			continue;
		json_open_row(j, 2);
		json_put_string(j, kind == RSS_PART ? "part" : "path", kind == RSS_PART ? row->key : row->label);
		json_put_int(j, "bytes", row->bytes);
		if (row->estimate)
			json_put_bool(j, "estimate", true);
		json_close(j);
	}
	json_close(j);
}

void memjson_classes(const struct rss *r, struct json *j)
{
	for (size_t i = 0; i < r->classes.n; i++) {
		json_open_object(j, NULL);
		json_put_uints(j, { "size", r->classes.v[i].size }, { "live_bytes", r->classes.v[i].live_bytes },
			       { "rounding_bytes", r->classes.v[i].rounding_bytes });
		json_close(j);
	}
}

/* "usage":1 for each series of the prefix: its last value. Spaces in names become "_". */
static void put_gauges(const struct rss *r, const char *prefix, struct json *j)
{
	for (size_t i = 0; i < r->series.n; i++) {
		const struct rss_series *s = &r->series.v[i];
		_cleanup_free_ char *key = NULL;

		/* A series that only grows is shown as a rate; parts and files are in their own lists. */
		if (!str_starts(s->name, prefix) || strchr(s->name + strlen(prefix), '.') ||
		    strchr(s->name + strlen(prefix), ':') || str_ends(s->name, "reclaimed") ||
		    !strcmp(s->unit, "us"))
			continue;
		key = mem_printf("%s%s", s->name + strlen(prefix), strcmp(s->unit, "bytes") ? "" : "_bytes");
		for (char *c = key; *c; c++)
			*c = *c == ' ' ? '_' : *c;
		json_put_int(j, key, s->last);
	}
}

static void put_rates(const struct rss *r, struct json *j)
{
	static const struct {
		const char *series, *key;
		double scale;
	} rates[] = {
		{ KEY_MEM_FAULTS_MINOR, "minor_faults_per_second", 1 },
		{ KEY_MEM_FAULTS_MAJOR, "major_faults_per_second", 1 },
		{ KEY_MACHINE_RECLAIMED, "machine_reclaimed_bytes_per_second", 1 },
		{ KEY_MACHINE_RECLAIM_STALLS, "machine_direct_reclaims_per_second", 1 },
		{ KEY_CGROUP_MEMORY_RECLAIMED, "cgroup_reclaimed_bytes_per_second", 1 },
		{ KEY_PRESSURE_MEMORY_SOME, "machine_stalled_some_percent", 1e-4 },
		{ KEY_PRESSURE_MEMORY_FULL, "machine_stalled_full_percent", 1e-4 },
		{ KEY_CGROUP_MEMORY_SOME, "cgroup_stalled_some_percent", 1e-4 },
		{ KEY_CGROUP_MEMORY_FULL, "cgroup_stalled_full_percent", 1e-4 },
	};

	json_open_object_line(j, "rates", 1);
	for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
		double rate = rss_rate(r, rates[i].series);

		if (rate >= 0)
			json_put_fixed(j, rates[i].key, rate * rates[i].scale, 3);
	}
	json_close(j);
}

/* [time in ns, value], ... */
static void put_points(const struct rss_series *s, const struct profile *p, struct json *j)
{
	json_open_array(j, "points");
	for (size_t k = 0; k < p->points.n; k++) {
		const struct profile_point *point = &p->points.v[k];

		if (point->series != s->id || point->time_ns < s->first_ns || point->time_ns > s->last_ns)
			continue;
		json_open_array(j, NULL);
		json_put_uint(j, NULL, point->time_ns);
		json_put_int(j, NULL, point->value);
		json_close(j);
	}
	json_close(j);
}

static void put_series(const struct rss *r, const struct profile *p, struct json *j)
{
	json_open_array_line(j, "series", 1);
	for (size_t i = 0; i < r->series.n; i++) {
		const struct rss_series *s = &r->series.v[i];

		json_open_row(j, 2);
		json_put_string(j, "name", s->name);
		json_put_string(j, "unit", s->unit);
		json_put_int(j, "first", s->first);
		json_put_int(j, "last", s->last);
		json_put_int(j, "least", s->least);
		json_put_int(j, "most", s->most);
		put_points(s, p, j);
		json_close(j);
	}
	json_close(j);
}

static void put_cgroup(const struct rss *r, struct json *j)
{
	json_open_object_line(j, "cgroup", 1);
	json_put_string(j, "path", r->group);
	json_put_uint(j, "version", r->group_version);
	put_gauges(r, "cgroup.memory.", j);
	json_close(j);
}

static void put_jemalloc(const struct rss *r, struct json *j)
{
	json_open_object_line(j, "jemalloc", 1);
	put_gauges(r, "jemalloc.", j);
	if (r->fragmentation >= 0)
		json_put_fixed(j, "fragmentation", r->fragmentation, 6);
	json_close(j);
}

void memtext_object(const struct rss *r, const struct profile *p, size_t limit, bool points, const char *key,
		    struct json *j)
{
	static const char *const sources[] = { "none", "heap", "jemalloc" };

	json_open_object(j, key);
	json_put_uints(j, { "time_ns", r->moment_ns }, { "looks", r->looks });
	json_put_int(j, "rss_bytes", r->rss);
	json_put_string(j, "live_heap_from", sources[r->source]);
	if (r->source)
		json_put_int(j, "live_heap_bytes", r->live_bytes);
	if (r->source == RSS_FROM_HEAP)
		json_put_bool(j, "heap_since_start", r->from_start);
	if (r->walked) {
		put_rows(r, RSS_PART, 0, j);
		put_rows(r, RSS_DETAIL, limit, j);
	}
	if (r->classes.n) {
		json_open_array_line(j, "size_classes", 1);
		memjson_classes(r, j);
		json_close(j);
	}
	json_open_object_line(j, "process", 1);
	put_gauges(r, "mem.", j);
	json_close(j);
	if (*r->group)
		put_cgroup(r, j);
	if (rss_find(r, KEY_JEMALLOC_ALLOCATED) || rss_find(r, KEY_JEMALLOC_RESIDENT))
		put_jemalloc(r, j);
	put_rates(r, j);
	if (points)
		put_series(r, p, j);
	json_close(j);
}

void memjson_put(const struct export_job *job, struct json *j)
{
	struct rss r;

	rss_build(&r, job->profile, job->selection->options.from_ns, job->selection->options.to_ns);
	if (r.recorded) {
		json_break(j, 0);
		memtext_object(&r, job->profile, job->options.limit, true, "memory", j);
	}
	rss_done(&r);
}

/* --- the page --- */

/* The table that adds up to RSS; empty where memory was not recorded. */
void mempage_put(const struct export_job *job, struct json *j)
{
	size_t files = 0;
	struct rss r;

	rss_build(&r, job->profile, 0, 0);
	json_open_array(j, "memory");
	for (size_t i = 0; i < r.rows.n; i++) {
		const struct rss_row *row = &r.rows.v[i];

		if (row->kind == RSS_DETAIL && files++ >= PAGE_FILES)
			continue;
		json_open_object(j, NULL);
		cleantext_json(j, "label", row->label);
		cleantext_json(j, "note", row->note);
		json_put_int(j, "bytes", row->bytes);
		json_put_bool(j, "estimate", row->estimate);
		json_put_bool(j, "part", row->kind == RSS_PART);
		json_close(j);
	}
	json_close_line(j, 0);
	rss_done(&r);
}

/* --- CSV --- */

static const struct {
	const char *column, *series;
} csv[] = {
	{ "rss", KEY_MEM_RSS },
	{ "pss", KEY_MEM_PSS },
	{ "heap", KEY_MEM_PART_HEAP },
	{ "anonymous", KEY_MEM_PART_ANONYMOUS },
	{ "files", KEY_MEM_PART_FILES },
	{ "shared", KEY_MEM_PART_SHARED },
	{ "stacks", KEY_MEM_PART_STACKS },
	{ "data", KEY_MEM_PART_DATA },
	{ "other", KEY_MEM_PART_OTHER },
	{ "swap", KEY_MEM_SWAP },
	{ "page_tables", KEY_MEM_PAGE_TABLES },
	{ "minor_faults", KEY_MEM_FAULTS_MINOR },
	{ "major_faults", KEY_MEM_FAULTS_MAJOR },
	{ "cgroup_usage", KEY_CGROUP_MEMORY_USAGE },
	{ "cgroup_limit", KEY_CGROUP_MEMORY_LIMIT },
	{ "cgroup_stalled_us", KEY_CGROUP_MEMORY_SOME },
	{ "machine_stalled_us", KEY_PRESSURE_MEMORY_SOME },
	{ "jemalloc_allocated", KEY_JEMALLOC_ALLOCATED },
	{ "jemalloc_active", KEY_JEMALLOC_ACTIVE },
	{ "jemalloc_resident", KEY_JEMALLOC_RESIDENT },
};

void memtext_csv_header(struct buf *out)
{
	buf_puts(out, "time,seconds");
	for (size_t i = 0; i < ARRAY_LEN(csv); i++)
		buf_printf(out, ",%s", csv[i].column);
	buf_putc(out, '\n');
}

static void put_csv_row(const struct profile *p, uint64_t time_ns, const int64_t *values, const bool *known,
			struct buf *out)
{
	uint64_t wall_ns = p->start_wall_ns + time_ns;
	time_t seconds = wall_ns / 1000000000;
	struct tm tm = { 0 };
	char text[64];

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	buf_printf(out, "%s.%03uZ,%.3f", text, (unsigned)(wall_ns / 1000000 % 1000), time_ns / 1e9);
	for (size_t i = 0; i < ARRAY_LEN(csv); i++) {
		buf_putc(out, ',');
		if (known[i])
			buf_printf(out, "%" PRId64, values[i]);
	}
	buf_putc(out, '\n');
}

/* Points of one look have one time and stand together: the first of them is mem.rss. */
void memtext_csv_rows(const struct profile *p, uint64_t from_ns, struct buf *out)
{
	_cleanup_free_ uint32_t *column = mem_alloc((p->series.n + 1) * sizeof(*column));
	int64_t values[ARRAY_LEN(csv)] = { 0 };
	bool known[ARRAY_LEN(csv)] = { false };
	uint64_t time_ns = 0;
	bool any = false;

	for (size_t i = 0; i < p->series.n; i++) {
		column[i] = PROFILE_NONE;
		for (size_t k = 0; k < ARRAY_LEN(csv); k++)
			if (!strcmp(profile_str(p, p->series.v[i].name), csv[k].series))
				column[i] = k;
	}
	for (size_t i = 0; i < p->points.n; i++) {
		const struct profile_point *point = &p->points.v[i];
		uint32_t k = point->series < p->series.n ? column[point->series] : PROFILE_NONE;

		if (point->time_ns < from_ns || k == PROFILE_NONE)
			continue;
		if (any && point->time_ns != time_ns) {
			put_csv_row(p, time_ns, values, known, out);
			memset(known, 0, sizeof(known));
		}
		time_ns = point->time_ns;
		values[k] = point->value;
		known[k] = true;
		any = true;
	}
	if (any)
		put_csv_row(p, time_ns, values, known, out);
}
