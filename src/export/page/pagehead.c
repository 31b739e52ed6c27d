/*
 * pagehead.c - the head of a page's data, in JSON: all but the long columns.
 *
 * Accounts, waits and the verdict are those of the whole recording: the command line's selection only
 * sets the initial view.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "analyze/wait/account.h"
#include "analyze/diff/diff.h"
#include "analyze/quality.h"
#include "analyze/select.h"
#include "analyze/subsystem/subsystems.h"
#include "analyze/wait/verdict.h"
#include "analyze/wait/waits.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/text/str.h"
#include "base/version.h"
#include "export/diff/difftext.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/section/ownertext.h"
#include "export/section/section.h"
#include "export/page/page.h"
#include "export/page/pagedata.h"
#include "profile/profile.h"

enum { OWNERS_SHOWN = 8 };

static void put_real(struct json *j, const char *name, double value)
{
	json_put_real(j, name, value, 9);
}

/* --- the initial view --- */

/* Puts the threads that the filters leave: by name where all of that name are left. */
static void put_threads_picked(struct json *j, const struct export_job *sides, size_t n)
{
	const struct select_options *o = &sides[0].selection->options;

	if (!o->threads && !o->processes)
		return;
	json_open_array(j, "threads");
	for (size_t side = 0; side < n; side++) {
		const struct profile *p = sides[side].profile;
		_cleanup_free_ uint8_t *picked = NULL;

		if (select_threads(p, &sides[side].selection->options, &picked, NULL))
			continue;
		for (size_t i = 0; i < p->threads.n; i++) {
			if (picked[i])
				json_put_uint(j, NULL, p->threads.v[i].tid);
		}
	}
	json_close(j);
}

static void put_initial(struct json *j, const struct export_job *sides, size_t n)
{
	const struct export_job *job = &sides[n - 1];
	const struct select_options *o = &job->selection->options;

	json_open_object(j, "initial");
	if (*export_event(job))
		cleantext_json(j, "what", export_event(job));
	if (o->from_ns || o->to_ns) {
		json_open_array(j, "range");
		json_put_uint(j, NULL, o->from_ns);
		json_put_uint(j, NULL, o->to_ns ? o->to_ns : select_duration_ns(job->profile));
		json_close(j);
	}
	put_threads_picked(j, sides, n);
	if (o->function) {
		cleantext_json(j, "search", o->function);
		json_put_bool(j, "regex", true);
	}
	if (o->idle)
		json_put_bool(j, "idle", true);
	json_close(j);
}

static void put_left_out(struct json *j, const struct export_job *job, const struct pagetree *t,
			 const struct pagestacks *s)
{
	uint32_t event = job->selection->options.event;

	if (!s->left_out) {
		json_put_null(j, "leftOut");
		return;
	}
	/* Of all time: that of the CPU tells. */
	if (event >= job->profile->events.n && select_event(job->profile, NULL, &event, NULL))
		event = 0;
	json_open_object(j, "leftOut");
	put_real(j, "weightShare",
		 event < job->profile->events.n
			 ? pagestacks_left_out(t, s, t->event_of[t->side_count - 1][event])
			 : 0);
	json_put_uint(j, "nodes", s->left_out);
	json_close(j);
}

/* Puts the facts about a recording. */
static void put_recording(struct json *j, const struct export_job *job)
{
	const struct profile *p = job->profile;
	time_t wall = p->start_wall_ns / 1000000000;
	_cleanup_(buf_done) struct buf line = { 0 };
	char text[64] = "";
	struct tm tm;

	cleantext_json(j, "target", profile_str(p, p->target));
	for (size_t i = 0; i < p->owners.n && i < OWNERS_SHOWN; i++) {
		if (line.n)
			buf_puts(&line, "; ");
		ownertext_line(p, i, &line);
	}
	cleantext_json(j, "owners", line.n ? line.data : "");
	line.n = 0;
	cleantext_json(j, "host", profile_str(p, p->host));
	cleantext_json(j, "kernel", profile_str(p, p->kernel));
	if (p->start_wall_ns && gmtime_r(&wall, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	cleantext_json(j, "start", text);
	json_put_uint(j, "recordedNs", select_duration_ns(p));
	quality_line(job->quality, job->selection, &line);
	cleantext_json(j, "quality", line.n ? line.data : "");
}

static void put_meta(struct json *j, const struct export_job *sides, size_t n, const struct pagetree *t,
		     const struct pagestacks *s)
{
	const struct export_job *job = &sides[n - 1];

	json_open_object(j, "meta");
	cleantext_json(j, "version", gasflame_version);
	put_recording(j, job);
	if (n > 1) {
		json_open_object(j, "before");
		put_recording(j, &sides[0]);
		json_close(j);
	}
	json_put_uints(j, { "durationNs", t->duration_ns }, { "slotNs", s->slot_ns }, { "sides", n });
	json_open_array(j, "warnings");
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sides[i].quality->warnings.n; k++)
			cleantext_json(j, NULL, sides[i].quality->warnings.v[k]);
	json_close(j);
	put_initial(j, sides, n);
	put_left_out(j, job, t, s);
	json_close_line(j, 0);
}

/* --- tables --- */

static void put_strings(struct json *j, const char *name, const struct strtab *t)
{
	json_open_array(j, name);
	for (uint32_t i = 0; i < t->n; i++)
		cleantext_json(j, NULL, strtab_get(t, i));
	json_close_line(j, 0);
}

static void put_subsystems(struct json *j, const struct subsystems *t)
{
	json_open_array(j, "subsystems");
	for (size_t i = 0; t && i < t->list.n; i++)
		cleantext_json(j, NULL, t->list.v[i].name);
	json_close(j);
	json_break(j, 0);
}

/* "count/100" are hundredths: the page divides, and shows "count". */
static void put_unit(struct json *j, const char *unit)
{
	const char *slash = strrchr(unit, '/');
	uint64_t parts = 1;
	_cleanup_free_ char *whole = NULL;

	if (slash && !str_parse_uint(slash + 1, 1, 1ULL << 53, &parts))
		whole = mem_strndup(unit, slash - unit);
	cleantext_json(j, "unit", whole ? whole : unit);
	json_put_uint(j, "scale", parts);
}

static void put_events(struct json *j, const struct pagetree *t)
{
	static const char *const roles[] = {
		[ROLE_OTHER] = "other", [ROLE_CPU] = "cpu", [ROLE_WAIT] = "wait", [ROLE_QUEUE] = "queue"
	};

	json_open_array(j, "events");
	for (size_t i = 0; i < t->events.n; i++) {
		const struct pagetree_event *e = &t->events.v[i];

		json_open_object(j, NULL);
		cleantext_json(j, "name", e->name);
		put_unit(j, e->unit);
		cleantext_json(j, "describe", e->describe);
		json_put_uint(j, "period", e->period);
		cleantext_json(j, "role", roles[e->role]);
		if (e->spanned)
			json_put_bool(j, "spanned", true);
		json_close(j);
	}
	json_close(j);
	json_open_array_line(j, "causes", 0);
	for (int i = 0; i < CAUSE_COUNT; i++) {
		json_open_object(j, NULL);
		cleantext_json(j, "key", cause_key(i));
		cleantext_json(j, "name", cause_name(i));
		json_close(j);
	}
	json_close_line(j, 0);
}

static void put_account(struct json *j, const char *name, const struct account_row *r)
{
	if (!r) {
		json_put_null(j, name);
		return;
	}
	json_open_object(j, name);
	json_put_uint(j, "wallNs", r->wall_ns);
	json_open_array(j, "ns");
	for (int i = 0; i < CAUSE_COUNT; i++)
		json_put_uint(j, NULL, r->ns[i]);
	json_close(j);
	json_put_int(j, "missingNs", r->missing_ns);
	json_put_uint(j, "waits", r->waits);
	json_close(j);
}

/* Threads of one side; their processes come after so many others. */
static void put_threads_of(struct json *j, const struct profile *p, size_t side, uint32_t processes_before,
			   const struct account *a)
{
	_cleanup_free_ const struct account_row **rows = mem_alloc((p->threads.n + 1) * sizeof(*rows));
	uint64_t end_ns = select_duration_ns(p);

	for (size_t i = 0; i < a->threads.n; i++)
		rows[a->threads.v[i].thread] = &a->threads.v[i];
	for (size_t i = 0; i < p->threads.n; i++) {
		const struct profile_thread *t = &p->threads.v[i];

		json_open_object(j, NULL);
		json_put_uint(j, "tid", t->tid);
		cleantext_json(j, "name", profile_str(p, t->name));
		json_put_int(j, "process",
			t->process < p->processes.n ? (int64_t)processes_before + t->process : -1);
		json_put_uints(j, { "startNs", t->start_ns }, { "endNs", t->end_ns ? t->end_ns : end_ns },
			       { "side", side });
		put_account(j, "account", rows[i]);
		json_close_line(j, 0);
	}
}

static void put_threads(struct json *j, const struct export_job *sides, size_t n,
			const struct account *accounts)
{
	uint32_t processes = 0;

	json_open_array(j, "threads");
	for (size_t i = 0; i < n; i++) {
		put_threads_of(j, sides[i].profile, i, processes, &accounts[i]);
		processes += sides[i].profile->processes.n;
	}
	json_close(j);
	json_open_array_line(j, "processes", 0);
	for (size_t i = 0; i < n; i++) {
		const struct profile *p = sides[i].profile;

		for (size_t k = 0; k < p->processes.n; k++) {
			json_open_object(j, NULL);
			json_put_uint(j, "pid", p->processes.v[k].pid);
			cleantext_json(j, "name", profile_str(p, p->processes.v[k].name));
			cleantext_json(j, "command", profile_str(p, p->processes.v[k].command));
			json_put_uint(j, "side", i);
			json_close(j);
		}
	}
	json_close_line(j, 0);
}

/* --- over time: of the last side --- */

static void put_marks(struct json *j, const struct pagetree *t, const struct profile *p)
{
	json_open_array(j, "marks");
	for (size_t i = 0; i < p->marks.n; i++) {
		const struct profile_mark *m = &p->marks.v[i];

		json_open_object(j, NULL);
		cleantext_json(j, "name", profile_str(p, m->name));
		cleantext_json(j, "kind", profile_str(p, m->kind));
		json_put_uints(j, { "startNs", m->start_ns }, { "endNs", m->end_ns });
		json_put_int(j, "thread",
			m->thread < p->threads.n ? (int64_t)t->thread_first[t->side_count - 1] + m->thread
						 : -1);
		json_close(j);
	}
	json_close_line(j, 0);
}

/* --- findings --- */

/* Puts the verdict of a comparison. */
static void put_diff_verdict(struct json *j, const struct diff *d)
{
	_cleanup_(buf_done) struct buf text = { 0 };

	difftext_verdict(d, &text);
	/* The text becomes a sentence of its own. */
	if (text.n && text.data[0] >= 'a' && text.data[0] <= 'z')
		text.data[0] -= 'a' - 'A';
	json_open_array(j, "verdict");
	json_open_object(j, NULL);
	cleantext_json(j, "text", text.data);
	json_put_string(j, "advice", "");
	json_open_object(j, "state");
	json_put_string(j, "view", "diff");
	json_close(j);
	json_close(j);
	json_close_line(j, 0);
}

/* Of the last side, but for the verdict: that of two is what changed. */
static void put_findings(struct json *j, const struct export_job *job, struct causes *causes,
			 const struct account *a, bool any, const struct diff *d)
{
	const struct select_options o = { .causes = causes };
	struct export_job whole = *job;
	struct waits waits = { 0 };
	struct verdict verdict = { 0 };

	put_account(j, "account", any ? &a->total : NULL);
	if (any) {
		waits_make(&waits, job->profile, &o, SECTION_PAGE_WAITS);
		if (!d)
			verdict_make(&verdict, job->profile, a, &waits, &o);
	} else if (!d) {
		verdict_make_without_waits(&verdict, job->profile, &o);
	}
	if (d)
		put_diff_verdict(j, d);
	else
		page_verdict(j, job, &verdict, &waits);
	whole.waits = &waits;
	for (size_t i = 0; sections[i]; i++)
		if (sections[i]->page)
			sections[i]->page(&whole, j);
	verdict_done(&verdict);
	waits_done(&waits);
}

/* --- the difference --- */

static void put_difference(struct json *j, const char *name, const struct diff_value *v)
{
	json_open_object(j, name);
	put_real(j, "a", v->a);
	put_real(j, "b", v->b);
	put_real(j, "delta", v->delta);
	put_real(j, "low", v->low);
	put_real(j, "high", v->high);
	put_real(j, "q", v->q);
	json_put_bool(j, "significant", v->significant);
	json_close(j);
}

static void put_diff(struct json *j, const struct pagetree *t, const struct diff *d)
{
	if (!d) {
		json_put_null(j, "diff");
		return;
	}
	json_open_object(j, "diff");
	json_put_bool(j, "normalized", d->normalized);
	cleantext_json(j, "unit", d->unit);
	put_real(j, "scale", d->scale);
	json_put_bool(j, "timeless", d->timeless);
	put_difference(j, "all", &d->all);
	json_open_array(j, "rows");
	for (size_t i = 0; i < d->rows.n; i++) {
		const struct diff_row *r = &d->rows.v[i];
		uint32_t ident = pagetree_find(t, r->name, r->module, r->kind);

		if (ident == PROFILE_NONE)
			continue;
		json_open_object(j, NULL);
		json_put_uint(j, "ident", ident);
		put_difference(j, "self", &r->self);
		put_difference(j, "total", &r->total);
		json_put_bool(j, "onlyA", r->only_a);
		json_put_bool(j, "onlyB", r->only_b);
		json_close_line(j, 0);
	}
	json_close(j);
	json_close_line(j, 0);
}

static void put_columns(struct json *j, const struct pagetree *t, const struct pagestacks *s,
			const struct page_columns *c)
{
	json_open_object(j, "sizes");
	json_put_uints(j, { "idents", t->idents.n }, { "root", s->nodes.v[0] >> 1 }, { "nodes", s->nodes.n },
		       { "entries", s->entries.n }, { "samples", s->samples.n });
	json_put_bool(j, "times", s->times);
	json_put_bool(j, "all", !s->full.n);
	json_close(j);
	json_open_array(j, "columns");
	for (size_t i = 0; i < c->list.n; i++) {
		json_open_array(j, NULL);
		json_put_string(j, NULL, c->list.v[i].name);
		json_put_uint(j, NULL, c->list.v[i].raw_bytes);
		json_put_uint(j, NULL, c->list.v[i].packed.n);
		json_close(j);
	}
	json_close(j);
}

void page_head(struct buf *out, const struct export_job *sides, size_t n, const struct page_options *o,
	       const struct pagetree *t, const struct pagestacks *s, const struct page_columns *c)
{
	struct account accounts[PAGETREE_SIDES] = { 0 };
	bool any[PAGETREE_SIDES];
	struct json document = json_begin(out), *j = &document;

	for (size_t i = 0; i < n; i++) {
		const struct select_options all = { .causes = t->sides[i].causes };

		any[i] = account_make(&accounts[i], sides[i].profile, &all, all.causes);
	}
	json_open_object(j, NULL);
	json_put_uint(j, "format", 1);
	put_meta(j, sides, n, t, s);
	put_strings(j, "modules", &c->modules);
	put_strings(j, "crates", &c->crates);
	put_subsystems(j, t->subsystems);
	put_events(j, t);
	put_threads(j, sides, n, accounts);
	/* A request for a part does not repeat the data of the whole, which the page has already. */
	if (!o->under) {
		page_series(j, sides[n - 1].profile);
		put_marks(j, t, sides[n - 1].profile);
		put_findings(j, &sides[n - 1], t->sides[n - 1].causes, &accounts[n - 1], any[n - 1],
			     o->diff);
		put_diff(j, t, o->diff);
	}
	put_columns(j, t, s, c);
	json_end_line(j);
	for (size_t i = 0; i < n; i++)
		account_done(&accounts[i]);
}
