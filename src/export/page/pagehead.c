/*
 * pagehead.c - the head of a page's data, in JSON: all but the long columns.
 *
 * Accounts, waits and the verdict are those of the whole recording: what the command line selects is only
 * what the page shows first.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "analyze/wait/account.h"
#include "analyze/diff/diff.h"
#include "analyze/memory/heap.h"
#include "analyze/quality.h"
#include "analyze/memory/rss.h"
#include "analyze/select.h"
#include "analyze/wait/verdict.h"
#include "analyze/wait/waits.h"
#include "base/text/str.h"
#include "export/diff/difftext.h"
#include "export/export.h"
#include "export/report/label.h"
#include "export/section/ownertext.h"
#include "export/page/page.h"
#include "export/page/pagedata.h"
#include "profile/profile.h"

enum { SITES = 20, WAKERS = 3, FILES = 8, OWNERS_SHOWN = 8 };

/* --- JSON: a comma comes before everything that does not begin a list --- */

static void comma(struct buf *b)
{
	size_t n = b->n;
	char last;

	while (n && b->data[n - 1] == '\n')
		n--;
	last = n ? b->data[n - 1] : '{';
	if (last != '{' && last != '[' && last != ':')
		buf_putc(b, ',');
}

static void key(struct buf *b, const char *name)
{
	comma(b);
	buf_printf(b, "\"%s\":", name);
}

/* Names of targets are made harmless. */
static void put_text(struct buf *b, const char *name, const char *value)
{
	struct buf text = { 0 };

	label_clean(&text, value);
	if (name)
		key(b, name);
	else
		comma(b);
	buf_json(b, text.n ? text.data : "");
	buf_done(&text);
}

static void put_uint(struct buf *b, const char *name, uint64_t value)
{
	key(b, name);
	buf_printf(b, "%llu", (unsigned long long)value);
}

static void put_int(struct buf *b, const char *name, int64_t value)
{
	key(b, name);
	buf_printf(b, "%lld", (long long)value);
}

static void put_flag(struct buf *b, const char *name, bool value)
{
	key(b, name);
	buf_puts(b, value ? "true" : "false");
}

/* JSON has no infinity. */
static void put_real(struct buf *b, const char *name, double value)
{
	key(b, name);
	if (value - value != 0)
		buf_puts(b, "null");
	else
		buf_printf(b, "%.9g", value);
}

static void open_list(struct buf *b, const char *name, char bracket)
{
	if (name)
		key(b, name);
	else
		comma(b);
	buf_putc(b, bracket);
}

/* --- what is shown first --- */

/* Those that the filters leave: by name where all of that name are left. */
static void put_threads_picked(struct buf *b, const struct export_job *sides, size_t n)
{
	const struct select_options *o = &sides[0].selection->options;

	if (!o->threads && !o->processes)
		return;
	open_list(b, "threads", '[');
	for (size_t side = 0; side < n; side++) {
		const struct profile *p = sides[side].profile;
		_cleanup_free_ uint8_t *picked = NULL;

		if (select_threads(p, &sides[side].selection->options, &picked, NULL))
			continue;
		for (size_t i = 0; i < p->threads.n; i++) {
			if (!picked[i])
				continue;
			comma(b);
			buf_printf(b, "%u", p->threads.v[i].tid);
		}
	}
	buf_putc(b, ']');
}

static void put_initial(struct buf *b, const struct export_job *sides, size_t n)
{
	const struct export_job *job = &sides[n - 1];
	const struct select_options *o = &job->selection->options;

	open_list(b, "initial", '{');
	if (*export_event(job))
		put_text(b, "what", export_event(job));
	if (o->from_ns || o->to_ns) {
		key(b, "range");
		buf_printf(b, "[%llu,%llu]", (unsigned long long)o->from_ns,
		           (unsigned long long)(o->to_ns ? o->to_ns : select_duration_ns(job->profile)));
	}
	put_threads_picked(b, sides, n);
	if (o->function) {
		put_text(b, "search", o->function);
		put_flag(b, "regex", true);
	}
	if (o->idle)
		put_flag(b, "idle", true);
	buf_putc(b, '}');
}

static void put_left_out(struct buf *b, const struct export_job *job, const struct pagetree *t,
                         const struct pagestacks *s)
{
	uint32_t event = job->selection->options.event;

	key(b, "leftOut");
	if (!s->left_out) {
		buf_puts(b, "null");
		return;
	}
	/* Of all time: that of the CPU tells. */
	if (event >= job->profile->events.n && select_event(job->profile, NULL, &event, NULL))
		event = 0;
	buf_putc(b, '{');
	put_real(b, "weightShare",
	         event < job->profile->events.n
	                 ? pagestacks_left_out(t, s, t->event_of[t->side_count - 1][event])
	                 : 0);
	put_uint(b, "nodes", s->left_out);
	buf_putc(b, '}');
}

/* What a recording is. */
static void put_recording(struct buf *b, const struct export_job *job)
{
	const struct profile *p = job->profile;
	time_t wall = p->start_wall_ns / 1000000000;
	struct buf line = { 0 };
	char text[64] = "";
	struct tm tm;

	put_text(b, "target", profile_str(p, p->target));
	for (size_t i = 0; i < p->owners.n && i < OWNERS_SHOWN; i++) {
		if (line.n)
			buf_puts(&line, "; ");
		ownertext_line(p, i, &line);
	}
	put_text(b, "owners", line.n ? line.data : "");
	line.n = 0;
	put_text(b, "host", profile_str(p, p->host));
	put_text(b, "kernel", profile_str(p, p->kernel));
	if (p->start_wall_ns && gmtime_r(&wall, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	put_text(b, "start", text);
	put_uint(b, "recordedNs", select_duration_ns(p));
	quality_line(job->quality, job->selection, &line);
	put_text(b, "quality", line.n ? line.data : "");
	buf_done(&line);
}

static void put_meta(struct buf *b, const struct export_job *sides, size_t n, const struct pagetree *t,
                     const struct pagestacks *s)
{
	const struct export_job *job = &sides[n - 1];

	open_list(b, "meta", '{');
	put_text(b, "version", GASFLAME_VERSION);
	put_recording(b, job);
	if (n > 1) {
		open_list(b, "before", '{');
		put_recording(b, &sides[0]);
		buf_putc(b, '}');
	}
	put_uint(b, "durationNs", t->duration_ns);
	put_uint(b, "slotNs", s->slot_ns);
	put_uint(b, "sides", n);
	open_list(b, "warnings", '[');
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sides[i].quality->warnings.n; k++)
			put_text(b, NULL, sides[i].quality->warnings.v[k]);
	buf_putc(b, ']');
	put_initial(b, sides, n);
	put_left_out(b, job, t, s);
	buf_puts(b, "}\n");
}

/* --- tables --- */

static void put_strings(struct buf *b, const char *name, const struct strtab *t)
{
	open_list(b, name, '[');
	for (uint32_t i = 0; i < t->n; i++)
		put_text(b, NULL, strtab_get(t, i));
	buf_puts(b, "]\n");
}

/* "count/100" are hundredths: the page divides, and shows "count". */
static void put_unit(struct buf *b, const char *unit)
{
	const char *slash = strrchr(unit, '/');
	uint64_t parts = 1;
	_cleanup_free_ char *whole = NULL;

	if (slash && !str_parse_uint(slash + 1, 1, 1ULL << 53, &parts))
		whole = mem_strndup(unit, slash - unit);
	put_text(b, "unit", whole ? whole : unit);
	put_uint(b, "scale", parts);
}

static void put_events(struct buf *b, const struct pagetree *t)
{
	static const char *const roles[] = {
		[ROLE_OTHER] = "other", [ROLE_CPU] = "cpu", [ROLE_WAIT] = "wait", [ROLE_QUEUE] = "queue"
	};

	open_list(b, "events", '[');
	for (size_t i = 0; i < t->events.n; i++) {
		const struct pagetree_event *e = &t->events.v[i];

		open_list(b, NULL, '{');
		put_text(b, "name", e->name);
		put_unit(b, e->unit);
		put_text(b, "describe", e->describe);
		put_uint(b, "period", e->period);
		put_text(b, "role", roles[e->role]);
		buf_putc(b, '}');
	}
	buf_puts(b, "]\n");
	open_list(b, "causes", '[');
	for (int i = 0; i < CAUSE_COUNT; i++) {
		open_list(b, NULL, '{');
		put_text(b, "key", cause_key(i));
		put_text(b, "name", cause_name(i));
		buf_putc(b, '}');
	}
	buf_puts(b, "]\n");
}

static void put_account(struct buf *b, const char *name, const struct account_row *r)
{
	key(b, name);
	if (!r) {
		buf_puts(b, "null");
		return;
	}
	buf_putc(b, '{');
	put_uint(b, "wallNs", r->wall_ns);
	open_list(b, "ns", '[');
	for (int i = 0; i < CAUSE_COUNT; i++) {
		comma(b);
		buf_printf(b, "%llu", (unsigned long long)r->ns[i]);
	}
	buf_putc(b, ']');
	put_int(b, "missingNs", r->missing_ns);
	put_uint(b, "waits", r->waits);
	buf_putc(b, '}');
}

/* Threads of one side; their processes come after so many others. */
static void put_threads_of(struct buf *b, const struct profile *p, size_t side, uint32_t processes_before,
			   const struct account *a)
{
	_cleanup_free_ const struct account_row **rows = mem_alloc((p->threads.n + 1) * sizeof(*rows));
	uint64_t end_ns = select_duration_ns(p);

	for (size_t i = 0; i < a->threads.n; i++)
		rows[a->threads.v[i].thread] = &a->threads.v[i];
	for (size_t i = 0; i < p->threads.n; i++) {
		const struct profile_thread *t = &p->threads.v[i];

		open_list(b, NULL, '{');
		put_uint(b, "tid", t->tid);
		put_text(b, "name", profile_str(p, t->name));
		put_int(b, "process",
			t->process < p->processes.n ? (int64_t)processes_before + t->process : -1);
		put_uint(b, "startNs", t->start_ns);
		put_uint(b, "endNs", t->end_ns ? t->end_ns : end_ns);
		put_uint(b, "side", side);
		put_account(b, "account", rows[i]);
		buf_puts(b, "}\n");
	}
}

static void put_threads(struct buf *b, const struct export_job *sides, size_t n,
			const struct account *accounts)
{
	uint32_t processes = 0;

	open_list(b, "threads", '[');
	for (size_t i = 0; i < n; i++) {
		put_threads_of(b, sides[i].profile, i, processes, &accounts[i]);
		processes += sides[i].profile->processes.n;
	}
	buf_puts(b, "]\n");
	open_list(b, "processes", '[');
	for (size_t i = 0; i < n; i++) {
		const struct profile *p = sides[i].profile;

		for (size_t k = 0; k < p->processes.n; k++) {
			open_list(b, NULL, '{');
			put_uint(b, "pid", p->processes.v[k].pid);
			put_text(b, "name", profile_str(p, p->processes.v[k].name));
			put_text(b, "command", profile_str(p, p->processes.v[k].command));
			put_uint(b, "side", i);
			buf_putc(b, '}');
		}
	}
	buf_puts(b, "]\n");
}

/* --- over time: of the last side --- */

static void put_series(struct buf *b, const struct profile *p)
{
	open_list(b, "series", '[');
	for (size_t i = 0; i < p->series.n; i++) {
		open_list(b, NULL, '{');
		put_text(b, "name", profile_str(p, p->series.v[i].name));
		put_text(b, "unit", profile_str(p, p->series.v[i].unit));
		for (int what = 0; what < 2; what++) {
			open_list(b, what ? "v" : "t", '[');
			for (size_t k = 0; k < p->points.n; k++) {
				if (p->points.v[k].series != i)
					continue;
				comma(b);
				if (what)
					buf_printf(b, "%lld", (long long)p->points.v[k].value);
				else
					buf_printf(b, "%llu", (unsigned long long)p->points.v[k].time_ns);
			}
			buf_putc(b, ']');
		}
		buf_puts(b, "}\n");
	}
	buf_puts(b, "]\n");
}

static void put_marks(struct buf *b, const struct pagetree *t, const struct profile *p)
{
	open_list(b, "marks", '[');
	for (size_t i = 0; i < p->marks.n; i++) {
		const struct profile_mark *m = &p->marks.v[i];

		open_list(b, NULL, '{');
		put_text(b, "name", profile_str(p, m->name));
		put_text(b, "kind", profile_str(p, m->kind));
		put_uint(b, "startNs", m->start_ns);
		put_uint(b, "endNs", m->end_ns);
		put_int(b, "thread",
		        m->thread < p->threads.n ? (int64_t)t->thread_first[t->side_count - 1] + m->thread
		                                 : -1);
		buf_putc(b, '}');
	}
	buf_puts(b, "]\n");
}

/* --- waits --- */

static void put_waker(struct buf *b, const struct waits_waker *w)
{
	struct buf text = { 0 };
	char ns[32], count[32];

	if (w->interrupt)
		buf_puts(&text, waits_interrupt(w->interrupt));
	else
		buf_printf(&text, "%s of thread %s", w->function, w->thread);
	buf_printf(&text, ": %s in %s", str_duration(ns, w->ns), str_count(count, w->count));
	put_text(b, NULL, text.data);
	buf_done(&text);
}

static void put_waits(struct buf *b, const struct profile *p, const struct waits *w)
{
	open_list(b, "waits", '[');
	for (size_t i = 0; i < w->sites.n && i < SITES; i++) {
		const struct waits_site *s = &w->sites.v[i];

		open_list(b, NULL, '{');
		put_text(b, "function", s->function);
		put_text(b, "cause", cause_key(s->cause));
		put_text(b, "operation", s->operation ? s->operation : "");
		put_uint(b, "ns", s->ns);
		put_uint(b, "count", s->count);
		put_uint(b, "longestNs", s->longest_ns);
		put_uint(b, "threads", s->threads);
		put_text(b, "thread",
		         s->thread < p->threads.n ? profile_str(p, p->threads.v[s->thread].name) : "");
		put_text(b, "means", s->pattern ? s->pattern->means : "");
		put_text(b, "fix", s->pattern ? s->pattern->fix : "");
		open_list(b, "wakers", '[');
		for (size_t k = 0; k < s->wakers.n && k < WAKERS; k++)
			put_waker(b, &s->wakers.v[k]);
		buf_puts(b, "]}\n");
	}
	buf_puts(b, "]\n");
}

static void put_sentence(struct buf *b, const struct profile *p, const char *text, const struct verdict_link *l)
{
	open_list(b, NULL, '{');
	put_text(b, "text", text);
	key(b, "state");
	if (!l->what) {
		buf_puts(b, "null}");
		return;
	}
	buf_putc(b, '{');
	put_text(b, "view", "flame");
	put_text(b, "what", l->what);
	if (l->thread < p->threads.n) {
		key(b, "threads");
		buf_printf(b, "[%u]", p->threads.v[l->thread].tid);
		key(b, "causes");
		buf_printf(b, "[\"%s\"]", cause_key(l->cause));
	}
	if (l->function)
		put_text(b, "focus", l->function);
	buf_puts(b, "}}");
}

/* Of the waits, and of the heap. */
static void put_verdict(struct buf *b, const struct export_job *job, const struct verdict *v)
{
	struct heap_figures heap;

	open_list(b, "verdict", '[');
	for (size_t i = 0; i < v->sentences.n; i++)
		put_sentence(b, job->profile, v->sentences.v[i], &v->links.v[i]);
	heap_measure(&heap, job->profile, &(struct select_options){ 0 }, job->options.own);
	for (size_t i = 0; i < heap.verdict.n; i++)
		put_sentence(b, job->profile, heap.verdict.v[i],
			     &(struct verdict_link){ .what = heap.links.v[i].what, .thread = PROFILE_NONE,
						     .function = (char *)heap.links.v[i].function });
	heap_done(&heap);
	buf_puts(b, "]\n");
}

/* The table that adds up to RSS; empty where memory was not recorded. */
static void put_memory(struct buf *b, const struct profile *p)
{
	size_t files = 0;
	struct rss r;

	rss_build(&r, p, 0, 0);
	open_list(b, "memory", '[');
	for (size_t i = 0; i < r.rows.n; i++) {
		const struct rss_row *row = &r.rows.v[i];

		if (row->kind == RSS_DETAIL && files++ >= FILES)
			continue;
		open_list(b, NULL, '{');
		put_text(b, "label", row->label);
		put_text(b, "note", row->note);
		put_int(b, "bytes", row->bytes);
		put_flag(b, "estimate", row->estimate);
		put_flag(b, "part", row->kind == RSS_PART);
		buf_puts(b, "}");
	}
	buf_puts(b, "]\n");
	rss_done(&r);
}

/* What a comparison says. */
static void put_diff_verdict(struct buf *b, const struct diff *d)
{
	struct buf text = { 0 };

	difftext_verdict(d, &text);
	/* A sentence of its own here. */
	if (text.n && text.data[0] >= 'a' && text.data[0] <= 'z')
		text.data[0] -= 'a' - 'A';
	open_list(b, "verdict", '[');
	open_list(b, NULL, '{');
	put_text(b, "text", text.data);
	buf_puts(b, ",\"state\":{\"view\":\"diff\"}}]\n");
	buf_done(&text);
}

/* Of the last side, but for the verdict: that of two is what changed. */
static void put_findings(struct buf *b, const struct export_job *job, struct causes *causes,
                         const struct account *a, bool any, const struct diff *d)
{
	const struct select_options o = { .causes = causes };
	struct waits waits = { 0 };
	struct verdict verdict = { 0 };

	put_account(b, "account", any ? &a->total : NULL);
	if (any) {
		waits_make(&waits, job->profile, &o, SITES);
		if (!d)
			verdict_make(&verdict, job->profile, a, &waits, &o);
	}
	if (d)
		put_diff_verdict(b, d);
	else
		put_verdict(b, job, &verdict);
	put_waits(b, job->profile, &waits);
	put_memory(b, job->profile);
	verdict_done(&verdict);
	waits_done(&waits);
}

/* --- the difference --- */

static void put_difference(struct buf *b, const char *name, const struct diff_value *v)
{
	open_list(b, name, '{');
	put_real(b, "a", v->a);
	put_real(b, "b", v->b);
	put_real(b, "delta", v->delta);
	put_real(b, "low", v->low);
	put_real(b, "high", v->high);
	put_real(b, "q", v->q);
	put_flag(b, "significant", v->significant);
	buf_putc(b, '}');
}

static void put_diff(struct buf *b, const struct pagetree *t, const struct diff *d)
{
	key(b, "diff");
	if (!d) {
		buf_puts(b, "null");
		return;
	}
	buf_putc(b, '{');
	put_flag(b, "normalized", d->normalized);
	put_text(b, "unit", d->unit);
	put_real(b, "scale", d->scale);
	put_flag(b, "timeless", d->timeless);
	put_difference(b, "all", &d->all);
	open_list(b, "rows", '[');
	for (size_t i = 0; i < d->rows.n; i++) {
		const struct diff_row *r = &d->rows.v[i];
		uint32_t ident = pagetree_find(t, r->name, r->module, r->kind);

		if (ident == PROFILE_NONE)
			continue;
		open_list(b, NULL, '{');
		put_uint(b, "ident", ident);
		put_difference(b, "self", &r->self);
		put_difference(b, "total", &r->total);
		put_flag(b, "onlyA", r->only_a);
		put_flag(b, "onlyB", r->only_b);
		buf_puts(b, "}\n");
	}
	buf_puts(b, "]}\n");
}

static void put_columns(struct buf *b, const struct pagetree *t, const struct pagestacks *s,
                        const struct page_columns *c)
{
	open_list(b, "sizes", '{');
	put_uint(b, "idents", t->idents.n);
	put_uint(b, "root", s->nodes.v[0] >> 1);
	put_uint(b, "nodes", s->nodes.n);
	put_uint(b, "entries", s->entries.n);
	put_uint(b, "samples", s->samples.n);
	put_flag(b, "times", s->times);
	put_flag(b, "all", !s->full.n);
	buf_putc(b, '}');
	open_list(b, "columns", '[');
	for (size_t i = 0; i < c->list.n; i++) {
		comma(b);
		buf_printf(b, "[\"%s\",%zu,%zu]", c->list.v[i].name, c->list.v[i].raw.n,
		           c->list.v[i].packed.n);
	}
	buf_putc(b, ']');
}

void page_head(struct buf *b, const struct export_job *sides, size_t n, const struct page_options *o,
               const struct pagetree *t, const struct pagestacks *s, const struct page_columns *c)
{
	struct account accounts[PAGETREE_SIDES] = { 0 };
	bool any[PAGETREE_SIDES];

	for (size_t i = 0; i < n; i++) {
		const struct select_options all = { .causes = t->sides[i].causes };

		any[i] = account_make(&accounts[i], sides[i].profile, &all, all.causes);
	}
	buf_puts(b, "{\"format\":1");
	put_meta(b, sides, n, t, s);
	put_strings(b, "modules", &c->modules);
	put_strings(b, "crates", &c->crates);
	put_events(b, t);
	put_threads(b, sides, n, accounts);
	/* What belongs to the whole is in the page already when it asks for a part. */
	if (!o->under) {
		put_series(b, sides[n - 1].profile);
		put_marks(b, t, sides[n - 1].profile);
		put_findings(b, &sides[n - 1], t->sides[n - 1].causes, &accounts[n - 1], any[n - 1],
			     o->diff);
		put_diff(b, t, o->diff);
	}
	put_columns(b, t, s, c);
	buf_puts(b, "}\n");
	for (size_t i = 0; i < n; i++)
		account_done(&accounts[i]);
}
