/*
 * goroutinetext.c - the waits of goroutines by reason and place, with those who ended them; the same for programs.
 */
#include "analyze/select.h"
#include "analyze/wait/goroutines.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/report/table.h"
#include "export/section/section.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum { REASON_COLUMNS = 22, BEFORE_FUNCTION = 42 + REASON_COLUMNS };

static void put_function(const struct export_job *job, const char *function, struct buf *out)
{
	_cleanup_(buf_done) struct buf clean = { 0 };
	unsigned width = job->options.columns;

	cleantext_put(&clean, *function ? function : "[no name]");
	if (width)
		cleantext_function(NULL, out, clean.data, width > BEFORE_FUNCTION + 20 ? width - BEFORE_FUNCTION : 20);
	else
		buf_puts(out, clean.data);
	buf_putc(out, '\n');
}

static void put_row(const struct export_job *job, const struct goroutines_row *r, uint64_t all_ns, struct buf *out)
{
	_cleanup_(buf_done) struct buf reason = { 0 };
	uint64_t mean = r->count ? r->ns / r->count : 0;
	char a[32], b[32], c[32], d[32];

	cleantext_put(&reason, r->reason);
	if (r->idle)
		buf_printf(out, "%7s", "idle");
	else
		buf_printf(out, "%7s", str_share(a, str_percent(r->ns, all_ns)));
	buf_printf(out, " %s %9s %s %s  %-*s ", str_right(a, str_duration(a, r->ns), 9), str_count(b, r->count),
		   str_right(c, str_duration(c, mean), 9),
		   /* Only of the waits that were kept one by one: where these are few, longer ones are among the rest. */
		   str_right(d, r->longest_ns && r->longest_ns >= mean ? str_duration(d, r->longest_ns) : "-", 9), REASON_COLUMNS, reason.data ? reason.data : "");
	put_function(job, r->function, out);
	for (size_t i = 0; i < r->wakers.n && !r->idle; i++) {
		buf_printf(out, "%11s %7s  ", i ? "" : "ended by", str_share(a, str_percent(r->wakers.v[i].ns, r->woken_ns)));
		put_function(job, r->wakers.v[i].function, out);
	}
}

/* Puts what the figures cannot show. */
static void put_remarks(const struct export_job *job, const struct goroutines *g, struct buf *out)
{
	const struct profile *p = job->profile;
	uint64_t parks = profile_counter(p, KEY_GOROUTINES_PARKS), before = profile_counter(p, KEY_GOROUTINES_BEFORE);
	uint64_t seconds_ns = select_duration_ns(p);
	char a[32], b[32], c[32];

	buf_printf(out, "Waits overlap, and no thread is blocked by them. Goroutines were ready for %s before a thread ran them "
		   "(%s each).\n", str_duration(a, g->queue_ns), str_duration(b, g->queue_count ? g->queue_ns / g->queue_count : 0));
	if (parks && seconds_ns)
		buf_printf(out, "%s parks, %s a second.\n", str_count(a, parks), str_count(b, parks / (seconds_ns / 1e9)));
	if (before)
		buf_printf(out, "%s waits had begun before the recording, and are not in it.\n", str_count(c, before));
	if (profile_counter(p, KEY_GOROUTINES_GIVEN_UP))
		buf_puts(out, "The probes were taken away before the end, as they were passed too often: later waits are not in it.\n");
}

static void put_text(const struct export_job *job, struct buf *out)
{
	struct goroutines g;
	size_t shown;
	char a[32];

	if (!job->selection || !goroutines_recorded(job->profile))
		return;
	goroutines_make(&g, job->profile, &job->selection->options);
	shown = table_shown(job, g.rows.n);
	if (g.rows.n) {
		buf_printf(out, "\n%sWhere goroutines wait%s, %% of %s parked", job->options.colour ? TABLE_BOLD : "",
			   job->options.colour ? TABLE_NORMAL : "", str_duration(a, g.ns));
		if (g.idle_ns)
			buf_printf(out, " (and %s idle)", str_duration(a, g.idle_ns));
		buf_printf(out, "\n%17s %9s %9s %9s  %-*s %s\n", "time", "waits", "mean", "longest", REASON_COLUMNS, "for", "in");
		for (size_t i = 0; i < shown; i++)
			put_row(job, &g.rows.v[i], g.ns, out);
		if (shown < g.rows.n)
			buf_printf(out, "and %s more places (--limit 0 shows all)\n", str_count(a, g.rows.n - shown));
		put_remarks(job, &g, out);
	}
	goroutines_done(&g);
}

static void put_json_row(const struct goroutines_row *r, struct json *j)
{
	json_open_row(j, 2);
	json_put_string(j, "reason", r->reason);
	json_put_string(j, "function", r->function);
	json_put_string(j, "module", r->module);
	json_put_uints(j, { "ns", r->ns }, { "count", r->count }, { "longest_ns", r->longest_ns });
	json_put_bool(j, "idle", r->idle);
	json_open_array(j, "ended_by");
	for (size_t i = 0; i < r->wakers.n; i++) {
		json_open_object(j, NULL);
		json_put_string(j, "function", r->wakers.v[i].function);
		json_put_uints(j, { "ns", r->wakers.v[i].ns }, { "count", r->wakers.v[i].count });
		json_close(j);
	}
	json_close(j);
	json_close(j);
}

static void put_json(const struct export_job *job, struct json *j)
{
	const struct profile *p = job->profile;
	struct goroutines g;

	if (!job->selection || !goroutines_recorded(p))
		return;
	goroutines_make(&g, p, &job->selection->options);
	json_open_object_line(j, "goroutines", 0);
	json_put_uints(j, { "ns", g.ns }, { "count", g.count }, { "idle_ns", g.idle_ns }, { "ready_ns", g.queue_ns },
		       { "ready_count", g.queue_count }, { "parks", profile_counter(p, KEY_GOROUTINES_PARKS) },
		       { "begun_before", profile_counter(p, KEY_GOROUTINES_BEFORE) });
	json_open_array_line(j, "waits", 1);
	for (size_t i = 0; i < g.rows.n && (!job->options.limit || i < job->options.limit); i++)
		put_json_row(&g.rows.v[i], j);
	json_close(j);
	json_close(j);
	goroutines_done(&g);
}

const struct section section_goroutines = { .name = "goroutines", .text = put_text, .json = put_json };
