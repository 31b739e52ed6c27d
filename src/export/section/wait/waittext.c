/*
 * waittext.c - the longest waits with what ended them: wakers, what the wakers ran, and the chain behind them.
 *
 * Names are cut to a terminal as in the other tables.
 */
#include <string.h>

#include "analyze/wait/waits.h"
#include "base/buf.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/report/table.h"
#include "export/section/section.h"
#include "profile/profile.h"

enum { SITES = 10, WAKERS = 3, LEAST_NAME = 20 };

static void put_bold(const struct export_job *job, struct buf *out, const char *text)
{
	buf_printf(out, "%s%s%s", job->options.colour ? TABLE_BOLD : "", text, job->options.colour ? TABLE_NORMAL : "");
}

/* Puts a name or a sentence from a target, made safe to show; columns 0 = whole. */
static void put_clean(struct buf *out, const char *text, size_t room, bool function)
{
	_cleanup_(buf_done) struct buf clean = { 0 };

	cleantext_put(&clean, *text ? text : "[no name]");
	if (!room)
		buf_puts(out, clean.data);
	else if (function)
		cleantext_function(NULL, out, clean.data, room);
	else
		cleantext_cut(out, clean.data, room);
}

/* Returns the room for a name after the columns before it; 0 = no limit. */
static size_t room(const struct export_job *job, size_t before)
{
	unsigned width = job->options.columns;

	return !width ? 0 : width > before + LEAST_NAME ? width - before : LEAST_NAME;
}

/* Returns the room for the name of a thread beside a function; 0 = no limit. */
static size_t thread_room(const struct export_job *job)
{
	return job->options.columns ? MAX(job->options.columns / 4, (unsigned)LEAST_NAME) : 0;
}

static void put_wakers(const struct export_job *job, const struct waits_site *s, struct buf *out)
{
	char text[32];

	for (size_t i = 0; i < s->wakers.n && i < WAKERS; i++) {
		const struct waits_waker *w = &s->wakers.v[i];

		buf_printf(out, "%11s %7s  ", i ? "" : "woken by", str_share(text, str_percent(w->ns, s->woken_ns)));
		if (w->interrupt) {
			buf_puts(out, waits_interrupt(w->interrupt));
		} else {
			_cleanup_(buf_done) struct buf thread = { 0 };

			put_clean(&thread, w->thread, thread_room(job), false);
			put_clean(out, w->function, room(job, 21 + 3 + cleantext_columns(thread.data)), true);
			buf_printf(out, " (%s)", thread.data);
		}
		buf_putc(out, '\n');
	}
	for (size_t i = 0; i < s->ran.n && i < WAKERS; i++) {
		buf_printf(out, "%11s %s  ", i ? "" : "wakers ran", str_right(text, str_duration(text, s->ran.v[i].ns), 9));
		put_clean(out, s->ran.v[i].function, room(job, 23), true);
		buf_putc(out, '\n');
	}
}

/* Puts the causes for which the waker itself waited, a line each. */
static void put_chains(const struct export_job *job, const struct waits_site *s, struct buf *out)
{
	char text[32];

	for (size_t i = 0; i < s->chains.n && i < 2; i++) {
		const struct waits_chain *c = &s->chains.v[i];

		buf_printf(out, "%11s %s  ", i ? "" : "chain", str_right(text, str_duration(text, c->ns), 9));
		for (uint32_t k = 0; k < c->link_count; k++) {
			struct buf thread = { 0 };

			put_clean(&thread, c->links[k].thread, thread_room(job), false);
			buf_printf(out, "%*s%s waited: %s, ", k ? 23 : 0, "", thread.data,
				   cause_name(c->links[k].cause));
			put_clean(out, c->links[k].function,
				  room(job, 35 + cleantext_columns(thread.data) +
						    strlen(cause_name(c->links[k].cause))),
				  true);
			buf_putc(out, '\n');
			buf_done(&thread);
		}
		if (c->end)
			buf_printf(out, "%23send of the chain: %s\n", "", waits_interrupt(c->end));
	}
}

/* Narrow terminals have no room for how long one wait is. */
static bool is_wide(const struct export_job *job)
{
	return !job->options.columns || job->options.columns >= 100;
}

static void put_site(const struct export_job *job, const struct waits_site *s, struct buf *out)
{
	const struct profile *p = job->profile;
	struct buf who = { 0 };
	char a[32], b[32], share[32];

	buf_puts(&who, " (");
	put_clean(&who, profile_str(p, p->threads.v[s->thread].name), thread_room(job), false);
	if (s->threads > 1)
		buf_printf(&who, " and %s more", str_count(a, s->threads - 1));
	buf_puts(&who, ")");
	buf_printf(out, "%7s %s %9s ", str_share(share, str_percent(s->ns, job->waits->ns)),
		   str_right(a, str_duration(a, s->ns), 9), str_count(b, s->count));
	if (is_wide(job))
		buf_printf(out, "%s %s ", str_right(a, str_duration(a, s->count ? s->ns / s->count : 0), 9),
			   str_right(b, s->longest_ns ? str_duration(b, s->longest_ns) : "-", 9));
	buf_printf(out, " %-12s ", cause_name(s->cause));
	put_clean(out, s->function, room(job, (is_wide(job) ? 62 : 42) + cleantext_columns(who.data)), true);
	buf_printf(out, "%s\n", who.data);
	buf_done(&who);
	put_wakers(job, s, out);
	put_chains(job, s, out);
}

static void put_sites(const struct export_job *job, const struct waits *w, struct buf *out)
{
	size_t limit = job->options.limit, shown = MIN(w->sites.n, limit && limit < SITES ? limit : SITES);
	uint64_t sleep_ns = 0, rest_ns = 0;
	char a[32], b[32];

	for (size_t i = 0; i < w->sites.n; i++) {
		sleep_ns += w->sites.v[i].cause == CAUSE_SLEEP ? w->sites.v[i].ns : 0;
		rest_ns += i >= shown ? w->sites.v[i].ns : 0;
	}
	buf_putc(out, '\n');
	put_bold(job, out, "The longest waits");
	buf_printf(out, ", %% of %s blocked", str_duration(a, w->ns));
	if (w->idle_ns)
		buf_printf(out, " (and %s idle)", str_duration(a, w->idle_ns));
	if (sleep_ns)
		buf_printf(out, "; sleep, %s, is last", str_duration(a, sleep_ns));
	buf_printf(out, "\n%17s %9s ", "time", "waits");
	if (is_wide(job))
		buf_printf(out, "%9s %9s ", "mean", "longest");
	buf_printf(out, " %-12s %s\n", "cause", "in");
	for (size_t i = 0; i < shown; i++)
		put_site(job, &w->sites.v[i], out);
	if (shown < w->sites.n)
		buf_printf(out, "and %s more places, %s\n", str_count(a, w->sites.n - shown),
			   str_duration(b, rest_ns));
}

static void put_text(const struct export_job *job, struct buf *out)
{
	if (job->waits && job->waits->sites.n)
		put_sites(job, job->waits, out);
}

const struct section section_waits = { .name = "waits", .text = put_text, .json = waitjson_put, .page = waitpage_put };
