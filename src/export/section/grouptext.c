/*
 * grouptext.c - the limits of the targets' cgroups and how often they were hit, and the restarts that the
 * recording followed: one line each, and the same for programs.
 */

#include "analyze/groups.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/section/section.h"
#include "export/report/table.h"
#include "profile/profile.h"

static void put_title(const struct export_job *job, const char *text, struct buf *out)
{
	buf_printf(out, "\n%s%s%s\n", job->options.colour ? TABLE_BOLD : "", text, job->options.colour ? TABLE_NORMAL : "");
}

static void put_cpu(const struct groups_row *r, struct buf *out)
{
	char quota[32], period[32], stopped[32], a[32], b[32];

	if (!r->quota_us)
		return;
	buf_printf(out, "%.3g CPUs (%s of each %s), used up in %s of %s periods: its CPUs stood still for %s", groups_cpus(r),
		   str_duration(quota, r->quota_us * 1000), str_duration(period, r->period_us * 1000),
		   str_count(a, r->throttled_periods), str_count(b, r->periods), str_duration(stopped, r->throttled_ns));
}

static void put_memory(const struct groups_row *r, struct buf *out)
{
	char limit[32], high[32], most[32], a[32], b[32];

	if (!r->limit_bytes && !r->high_bytes && !r->limit_hits && !r->oom_kills)
		return;
	if (r->quota_us)
		buf_puts(out, "; ");
	buf_puts(out, "memory ");
	if (r->limit_bytes)
		buf_printf(out, "%s", str_bytes(limit, r->limit_bytes));
	if (r->high_bytes)
		buf_printf(out, "%sslowed down from %s on", r->limit_bytes ? ", " : "", str_bytes(high, r->high_bytes));
	buf_printf(out, ", at most %s in use, limit met %s times, %s OOM kills", str_bytes(most, r->most_bytes),
		   str_count(a, r->limit_hits), str_count(b, r->oom_kills));
}

static void put_text(const struct export_job *job, struct buf *out)
{
	char time[32];
	struct groups g;

	groups_make(&g, job->profile);
	if (g.rows.n)
		put_title(job, "What the cgroups grant", out);
	for (size_t i = 0; i < g.rows.n; i++) {
		_cleanup_free_ char *label = groups_label(g.rows.v[i].path);

		cleantext_put(out, label);
		buf_puts(out, ": ");
		put_cpu(&g.rows.v[i], out);
		put_memory(&g.rows.v[i], out);
		buf_putc(out, '\n');
	}
	if (g.restarts.n)
		put_title(job, "Restarts", out);
	for (size_t i = 0; i < g.restarts.n; i++) {
		buf_printf(out, "at %s: ", str_duration(time, g.restarts.v[i].start_ns));
		cleantext_put(out, g.restarts.v[i].text);
		buf_putc(out, '\n');
	}
	if (g.restarts.n)
		buf_printf(out, "not running for %s in all\n", str_duration(time, g.down_ns));
	groups_done(&g);
}

static void put_row(const struct groups_row *r, struct json *j)
{
	const struct json_count numbers[] = {
		{ "quota_us", r->quota_us }, { "period_us", r->period_us }, { "periods", r->periods },
		{ "throttled_periods", r->throttled_periods }, { "throttled_ns", r->throttled_ns },
		{ "memory_limit", r->limit_bytes }, { "memory_high", r->high_bytes }, { "memory_most", r->most_bytes },
		{ "limit_hits", r->limit_hits }, { "oom_kills", r->oom_kills },
	};

	json_open_row(j, 1);
	json_put_string(j, "path", r->path);
	json_put_counts(j, numbers, ARRAY_LEN(numbers));
	json_close(j);
}

static void put_restarts(const struct groups *g, struct json *j)
{
	json_open_object_line(j, "restarts", 0);
	json_put_uints(j, { "count", g->count }, { "not_running_ns", g->down_ns });
	json_open_array(j, "list");
	for (size_t i = 0; i < g->restarts.n; i++) {
		json_open_row(j, 1);
		json_put_uints(j, { "start_ns", g->restarts.v[i].start_ns }, { "end_ns", g->restarts.v[i].end_ns });
		json_put_string(j, "text", g->restarts.v[i].text);
		json_close(j);
	}
	json_close(j);
	json_close(j);
}

static void put_json(const struct export_job *job, struct json *j)
{
	struct groups g;

	groups_make(&g, job->profile);
	if (g.rows.n) {
		json_open_array_line(j, "cgroups", 0);
		for (size_t i = 0; i < g.rows.n; i++)
			put_row(&g.rows.v[i], j);
		json_close(j);
	}
	if (g.restarts.n)
		put_restarts(&g, j);
	groups_done(&g);
}

const struct section section_cgroups = { .name = "cgroups", .text = put_text, .json = put_json };
