/*
 * memjson.c - memory for programs: JSON and CSV (memtext.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "analyze/memory/rss.h"
#include "analyze/select.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/json.h"
#include "export/section/memtext.h"
#include "export/section/section.h"
#include "profile/profile.h"

/* --- JSON --- */

static void put_rows(const struct rss *r, enum rss_kind kind, size_t limit, struct buf *out)
{
	size_t n = 0;

	buf_puts(out, kind == RSS_PART ? ",\n \"parts\":[" : ",\n \"files\":[");
	for (size_t i = 0; i < r->rows.n; i++) {
		const struct rss_row *row = &r->rows.v[i];

		if (row->kind != kind || (limit && kind == RSS_DETAIL && n >= limit))
			continue;
		buf_puts(out, n++ ? ",\n  {" : "\n  {");
		jsonfield_string(out, kind == RSS_PART ? "part" : "path",
			    kind == RSS_PART ? row->key : row->label);
		buf_printf(out, ",\"bytes\":%" PRId64 "%s}", row->bytes,
			   row->estimate ? ",\"estimate\":true" : "");
	}
	buf_putc(out, ']');
}

static void put_classes(const struct rss *r, struct buf *out)
{
	buf_puts(out, ",\n \"size_classes\":[");
	for (size_t i = 0; i < r->classes.n; i++)
		buf_printf(out, "%s{\"size\":%" PRIu64 ",\"live_bytes\":%" PRIu64 ",\"rounding_bytes\":%" PRIu64 "}",
			   i ? "," : "", r->classes.v[i].size, r->classes.v[i].live_bytes,
			   r->classes.v[i].rounding_bytes);
	buf_putc(out, ']');
}

/* "usage":1 for each series of the prefix: its last value. Spaces in names become "_". */
static void put_gauges(const struct rss *r, const char *prefix, struct buf *out)
{
	bool any = false;

	for (size_t i = 0; i < r->series.n; i++) {
		const struct rss_series *s = &r->series.v[i];
		_cleanup_free_ char *key = NULL;

		/* Of what only grows a rate is shown, and parts and files are above. */
		if (!str_starts(s->name, prefix) || strchr(s->name + strlen(prefix), '.') ||
		    strchr(s->name + strlen(prefix), ':') || str_ends(s->name, "reclaimed") ||
		    !strcmp(s->unit, "us"))
			continue;
		key = mem_printf("%s%s", s->name + strlen(prefix), strcmp(s->unit, "bytes") ? "" : "_bytes");
		for (char *c = key; *c; c++)
			*c = *c == ' ' ? '_' : *c;
		buf_puts(out, any ? "," : "");
		buf_json(out, key);
		buf_printf(out, ":%" PRId64, s->last);
		any = true;
	}
}

static void put_rate(const struct rss *r, const char *series, const char *key, double scale, struct buf *out)
{
	double rate = rss_rate(r, series);

	if (rate >= 0)
		buf_printf(out, "%s\"%s\":%.3f", out->data[out->n - 1] == '{' ? "" : ",", key, rate * scale);
}

static void put_rates(const struct rss *r, struct buf *out)
{
	buf_puts(out, ",\n \"rates\":{");
	put_rate(r, "mem.faults.minor", "minor_faults_per_second", 1, out);
	put_rate(r, "mem.faults.major", "major_faults_per_second", 1, out);
	put_rate(r, "machine.reclaimed", "machine_reclaimed_bytes_per_second", 1, out);
	put_rate(r, "machine.reclaim stalls", "machine_direct_reclaims_per_second", 1, out);
	put_rate(r, "cgroup.memory.reclaimed", "cgroup_reclaimed_bytes_per_second", 1, out);
	put_rate(r, "pressure.memory.some", "machine_stalled_some_percent", 1e-4, out);
	put_rate(r, "pressure.memory.full", "machine_stalled_full_percent", 1e-4, out);
	put_rate(r, "cgroup.memory.some", "cgroup_stalled_some_percent", 1e-4, out);
	put_rate(r, "cgroup.memory.full", "cgroup_stalled_full_percent", 1e-4, out);
	buf_putc(out, '}');
}

/* [time in ns, value], ... by series. */
static void put_points(const struct rss *r, const struct profile *p, struct buf *out)
{
	buf_puts(out, ",\n \"series\":[");
	for (size_t i = 0; i < r->series.n; i++) {
		const struct rss_series *s = &r->series.v[i];
		bool any = false;

		buf_puts(out, i ? ",\n  {" : "\n  {");
		jsonfield_string(out, "name", s->name);
		buf_putc(out, ',');
		jsonfield_string(out, "unit", s->unit);
		buf_printf(out,
			   ",\"first\":%" PRId64 ",\"last\":%" PRId64 ",\"least\":%" PRId64
			   ",\"most\":%" PRId64 ",\"points\":[",
			   s->first, s->last, s->least, s->most);
		for (size_t k = 0; k < p->points.n; k++) {
			const struct profile_point *point = &p->points.v[k];

			if (point->series != s->id || point->time_ns < s->first_ns ||
			    point->time_ns > s->last_ns)
				continue;
			buf_printf(out, "%s[%" PRIu64 ",%" PRId64 "]", any ? "," : "", point->time_ns,
				   point->value);
			any = true;
		}
		buf_puts(out, "]}");
	}
	buf_putc(out, ']');
}

void memtext_object(const struct rss *r, const struct profile *p, size_t limit, bool points, struct buf *out)
{
	static const char *const sources[] = { "none", "heap", "jemalloc" };

	buf_printf(out, "{\"time_ns\":%" PRIu64 ",\"looks\":%zu,\"rss_bytes\":%" PRId64 ",", r->moment_ns,
		   r->looks, r->rss);
	jsonfield_string(out, "live_heap_from", sources[r->source]);
	if (r->source)
		buf_printf(out, ",\"live_heap_bytes\":%" PRId64, r->live_bytes);
	if (r->source == RSS_FROM_HEAP)
		buf_printf(out, ",\"heap_since_start\":%s", r->from_start ? "true" : "false");
	if (r->walked) {
		put_rows(r, RSS_PART, 0, out);
		put_rows(r, RSS_DETAIL, limit, out);
	}
	if (r->classes.n)
		put_classes(r, out);
	buf_puts(out, ",\n \"process\":{");
	put_gauges(r, "mem.", out);
	buf_puts(out, "}");
	if (*r->group) {
		buf_puts(out, ",\n \"cgroup\":{");
		jsonfield_string(out, "path", r->group);
		buf_printf(out, ",\"version\":%u,", r->group_version);
		put_gauges(r, "cgroup.memory.", out);
		buf_puts(out, "}");
	}
	if (rss_find(r, "jemalloc.allocated") || rss_find(r, "jemalloc.resident")) {
		buf_puts(out, ",\n \"jemalloc\":{");
		put_gauges(r, "jemalloc.", out);
		if (r->fragmentation >= 0)
			buf_printf(out, ",\"fragmentation\":%.6f", r->fragmentation);
		buf_puts(out, "}");
	}
	put_rates(r, out);
	if (points)
		put_points(r, p, out);
	buf_putc(out, '}');
}

void memjson_put(const struct export_job *job, struct buf *out)
{
	struct rss r;

	rss_build(&r, job->profile, job->selection->options.from_ns, job->selection->options.to_ns);
	if (r.recorded) {
		buf_puts(out, ",\n\"memory\":");
		memtext_object(&r, job->profile, job->options.limit, true, out);
	}
	rss_done(&r);
}

/* --- CSV --- */

static const struct {
	const char *column, *series;
} csv[] = {
	{ "rss", "mem.rss" },
	{ "pss", "mem.pss" },
	{ "heap", "mem.part.heap" },
	{ "anonymous", "mem.part.anonymous" },
	{ "files", "mem.part.files" },
	{ "shared", "mem.part.shared" },
	{ "stacks", "mem.part.stacks" },
	{ "data", "mem.part.data" },
	{ "other", "mem.part.other" },
	{ "swap", "mem.swap" },
	{ "page_tables", "mem.page tables" },
	{ "minor_faults", "mem.faults.minor" },
	{ "major_faults", "mem.faults.major" },
	{ "cgroup_usage", "cgroup.memory.usage" },
	{ "cgroup_limit", "cgroup.memory.limit" },
	{ "cgroup_stalled_us", "cgroup.memory.some" },
	{ "machine_stalled_us", "pressure.memory.some" },
	{ "jemalloc_allocated", "jemalloc.allocated" },
	{ "jemalloc_active", "jemalloc.active" },
	{ "jemalloc_resident", "jemalloc.resident" },
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
