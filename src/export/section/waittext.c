/*
 * waittext.c - the account of the threads' time, the verdict, and the hottest waits with their wakers.
 *
 * A column for each cause that is more than nothing in the total, on a terminal as many as fit and the rest
 * in one; threads that did most first, the rest in one line. Names are cut to a terminal as in the other
 * tables.
 */
#include <stdio.h>
#include <string.h>

#include "analyze/wait/account.h"
#include "analyze/wait/verdict.h"
#include "analyze/wait/waits.h"
#include "base/buf.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/section/section.h"
#include "export/report/table.h"
#include "profile/profile.h"

enum { NAME_COLUMNS = 26, NAME_MOST = 48, CELL_COLUMNS = 9, SITES = 10, WAKERS = 3 };

/* In the order of the columns. */
static const struct {
	enum cause cause;
	const char *head;
} columns[] = {
	{ CAUSE_CPU, "on CPU" },      { CAUSE_QUEUE, "queue" },      { CAUSE_QUOTA, "throttled" }, { CAUSE_LOCK, "lock" },
	{ CAUSE_PARK, "condition" },  { CAUSE_DISK_READ, "disk rd" }, { CAUSE_DISK_WRITE, "disk wr" },
	{ CAUSE_FAULT, "fault" },     { CAUSE_NETWORK, "network" },  { CAUSE_SLEEP, "sleep" },
	{ CAUSE_PIPE, "pipe" },       { CAUSE_RECLAIM, "reclaim" },  { CAUSE_IDLE, "idle" },
	{ CAUSE_UNKNOWN, "unknown" },
};

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

static void put_duration(struct buf *out, uint64_t ns)
{
	char text[32];

	buf_printf(out, " %*s", CELL_COLUMNS, ns ? str_duration(text, ns) : "-");
}

struct layout {
	int name; /* columns */
	bool shown[CAUSE_COUNT];
	bool other; /* some are not: one column for them */
};

/* Chooses the causes that are not 0; on a terminal the largest that fit, with room for wall, others,
 * missing. */
static struct layout lay_out(const struct export_job *job, size_t name)
{
	const uint64_t *ns = job->account->total.ns;
	struct layout l = { .name = MAX(NAME_COLUMNS, MIN(name, (size_t)NAME_MOST)) };
	size_t n = 0, fit = CAUSE_COUNT, width = job->options.columns;

	if (width)
		fit = width > (size_t)l.name + 5 * (CELL_COLUMNS + 1) ? (width - l.name) / (CELL_COLUMNS + 1) - 3 : 2;
	l.shown[CAUSE_CPU] = l.shown[CAUSE_QUEUE] = true;
	for (n = 2; n < fit; n++) {
		int most = -1;

		for (int c = 0; c < CAUSE_COUNT; c++)
			if (!l.shown[c] && ns[c] && (most < 0 || ns[c] > ns[most]))
				most = c;
		if (most < 0)
			break;
		l.shown[most] = true;
	}
	for (int c = 0; c < CAUSE_COUNT; c++)
		l.other |= ns[c] && !l.shown[c];
	return l;
}

static void put_row(const struct layout *l, const struct account_row *r, const char *name, struct buf *out)
{
	_cleanup_(buf_done) struct buf label = { 0 };
	int64_t missing = r->missing_ns;
	uint64_t other = 0;

	put_clean(&label, name, l->name, false);
	buf_printf(out, "%s%*s", label.data, l->name - (int)cleantext_columns(label.data), "");
	put_duration(out, r->wall_ns);
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		if (l->shown[columns[i].cause])
			put_duration(out, r->ns[columns[i].cause]);
		else
			other += r->ns[columns[i].cause];
	if (l->other)
		put_duration(out, other);
	put_duration(out, missing > 0 ? missing : 0);
	buf_putc(out, '\n');
}

static void put_heads(const struct layout *l, struct buf *out)
{
	buf_printf(out, "%-*s %*s", l->name, "thread", CELL_COLUMNS, "wall");
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		if (l->shown[columns[i].cause])
			buf_printf(out, " %*s", CELL_COLUMNS, columns[i].head);
	if (l->other)
		buf_printf(out, " %*s", CELL_COLUMNS, "others");
	buf_printf(out, " %*s\n", CELL_COLUMNS, "missing");
}

static void add_rest(struct account_row *rest, const struct account_row *r)
{
	rest->threads += r->threads;
	rest->wall_ns += r->wall_ns;
	rest->missing_ns += r->missing_ns;
	for (int i = 0; i < CAUSE_COUNT; i++)
		rest->ns[i] += r->ns[i];
}

/* Puts remarks that the figures cannot show. */
static void put_remarks(const struct account *a, struct buf *out)
{
	double missing = str_percent(a->total.missing_ns, a->total.wall_ns);
	char text[32];

	if (a->lost)
		buf_printf(out, "%s records of waits were lost: what they held is missing\n",
			   str_count(text, a->lost));
	if (a->unseen)
		buf_printf(out, "%s thread%s did not run once: %s not in any column but wall and missing\n",
			   str_count(text, a->unseen), a->unseen == 1 ? "" : "s",
			   a->unseen == 1 ? "it is" : "they are");
	if (missing > 1)
		buf_printf(out, "%.1f %% of the threads' time is missing\n", missing);
	else if (missing < -1)
		buf_printf(out,
			   "%.1f %% more was counted than the threads' time: they are older than was seen\n",
			   -missing);
	if (a->cpu_is_the_rest)
		buf_puts(out, "on CPU is what the waits leave: it was not measured for this range\n");
	else if (a->sampled_cpu)
		buf_puts(out, "on CPU is from samples for this range, so a few percent can be missing\n");
}

/* "engine (4242)", or "block_executor_ (warm_block) x30". Caller frees. */
static char *row_name(const struct export_job *job, const struct account_row *r, int width)
{
	const struct profile_thread *t = &job->profile->threads.v[r->thread];
	const char *name = profile_str(job->profile, t->name);

	if (r->threads > 1)
		return mem_printf("%.*s x%u", width - 8, name, r->threads);
	return mem_printf("%.*s (%u)", width - 10, name, t->tid);
}

/* The longest name of the rows that are shown. */
static size_t name_columns(const struct export_job *job, const struct account_rows *rows, size_t shown)
{
	size_t most = 0;

	for (size_t i = 0; i < shown; i++) {
		_cleanup_free_ char *name = row_name(job, &rows->list.v[i], NAME_MOST);

		most = MAX(most, cleantext_columns(name));
	}
	return most;
}

static void put_account(const struct export_job *job, struct buf *out)
{
	const struct account *a = job->account;
	struct account_row rest = { .thread = PROFILE_NONE };
	struct account_rows rows;
	struct layout l;
	size_t limit = job->options.limit, shown;
	char text[64], number[32];

	account_join_crowds(a, job->profile, &rows);
	shown = limit && limit < rows.list.n ? limit : rows.list.n;
	l = lay_out(job, name_columns(job, &rows, shown));
	buf_putc(out, '\n');
	put_bold(job, out, "Where the time of the threads went");
	buf_putc(out, '\n');
	put_heads(&l, out);
	for (size_t i = 0; i < rows.list.n; i++) {
		_cleanup_free_ char *name = NULL;

		if (i >= shown) {
			add_rest(&rest, &rows.list.v[i]);
			continue;
		}
		name = row_name(job, &rows.list.v[i], NAME_MOST);
		put_row(&l, &rows.list.v[i], name, out);
	}
	if (rest.threads) {
		snprintf(text, sizeof(text), "%s others", str_count(number, rest.threads));
		put_row(&l, &rest, text, out);
	}
	snprintf(text, sizeof(text), "all %s", str_count(number, a->total.threads));
	put_row(&l, &a->total, text, out);
	put_remarks(a, out);
	vec_done(&rows.list);
}

/* Sentences, broken between words. */
static void put_wrapped(const struct export_job *job, const char *text, struct buf *out)
{
	size_t width = job->options.columns ? MAX(job->options.columns, 40) : 100, used = 0;
	struct buf clean = { 0 };
	const char *s;

	cleantext_put(&clean, text);
	for (s = clean.data; *s;) {
		size_t word = strcspn(s, " ");

		if (used && used + 1 + word > width) {
			buf_putc(out, '\n');
			used = 0;
		} else if (used) {
			buf_putc(out, ' ');
			used++;
		}
		buf_add(out, s, word);
		used += word;
		s += word;
		s += strspn(s, " ");
	}
	buf_putc(out, '\n');
	buf_done(&clean);
}

static void put_verdict(const struct export_job *job, struct buf *out)
{
	if (!job->verdict->sentences.n)
		return;
	buf_putc(out, '\n');
	put_bold(job, out, "Verdict");
	buf_putc(out, '\n');
	for (size_t i = 0; i < job->verdict->sentences.n; i++)
		put_wrapped(job, job->verdict->sentences.v[i], out);
}

/* Returns the room for a name after the columns before it; 0 = no limit. */
static size_t room(const struct export_job *job, size_t before)
{
	unsigned width = job->options.columns;

	return !width ? 0 : width > before + 20 ? width - before : 20;
}

static void put_wakers(const struct export_job *job, const struct waits_site *s, struct buf *out)
{
	char text[32];

	for (size_t i = 0; i < s->wakers.n && i < WAKERS; i++) {
		const struct waits_waker *w = &s->wakers.v[i];

		buf_printf(out, "%11s %5.1f%%  ", i ? "" : "woken by",
			   str_percent(w->ns, s->woken_ns));
		if (w->interrupt) {
			buf_puts(out, waits_interrupt(w->interrupt));
		} else {
			put_clean(out, w->function, room(job, 20 + 3 + cleantext_columns(w->thread)), true);
			buf_puts(out, " (");
			put_clean(out, w->thread, 0, false);
			buf_putc(out, ')');
		}
		buf_putc(out, '\n');
	}
	for (size_t i = 0; i < s->ran.n && i < WAKERS; i++) {
		buf_printf(out, "%11s %9s  ", i ? "" : "wakers ran", str_duration(text, s->ran.v[i].ns));
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

		buf_printf(out, "%11s %9s  ", i ? "" : "chain", str_duration(text, c->ns));
		for (uint32_t k = 0; k < c->link_count; k++) {
			struct buf thread = { 0 };

			put_clean(&thread, c->links[k].thread, 0, false);
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
	char a[32], b[32];

	buf_puts(&who, " (");
	put_clean(&who, profile_str(p, p->threads.v[s->thread].name), 0, false);
	if (s->threads > 1)
		buf_printf(&who, " and %s more", str_count(a, s->threads - 1));
	buf_puts(&who, ")");
	buf_printf(out, "%6.2f%% %9s %9s ", str_percent(s->ns, job->waits->ns),
		   str_duration(a, s->ns), str_count(b, s->count));
	if (is_wide(job))
		buf_printf(out, "%9s %9s ", str_duration(a, s->count ? s->ns / s->count : 0),
			   s->longest_ns ? str_duration(b, s->longest_ns) : "-");
	buf_printf(out, " %-12s ", cause_name(s->cause));
	put_clean(out, s->function, room(job, (is_wide(job) ? 62 : 42) + cleantext_columns(who.data)), true);
	buf_printf(out, "%s\n", who.data);
	buf_done(&who);
	put_wakers(job, s, out);
	put_chains(job, s, out);
}

static void put_waits(const struct export_job *job, struct buf *out)
{
	const struct waits *w = job->waits;
	size_t limit = job->options.limit, shown = MIN(w->sites.n, limit && limit < SITES ? limit : SITES);
	uint64_t sleep_ns = 0, rest_ns = 0;
	char a[32], b[32];

	if (!w->sites.n)
		return;
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
	if (!job->account || !job->waits || !job->verdict)
		return;
	put_verdict(job, out);
	put_account(job, out);
	put_waits(job, out);
}

const struct section section_waits = { .name = "waits", .text = put_text, .json = waitjson_put, .page = waitpage_put };
