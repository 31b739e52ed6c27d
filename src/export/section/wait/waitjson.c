/*
 * waitjson.c - the account, the verdict and the waits of waittext.c for programs, and the waits for the page. All times
 * are nanoseconds.
 */
#include "analyze/wait/account.h"
#include "analyze/wait/verdict.h"
#include "analyze/wait/waits.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/section/section.h"
#include "profile/profile.h"

enum { PAGE_WAKERS = 3 };

static void put_row(struct json *j, const struct account_row *r)
{
	json_put_uints(j, { "wall", r->wall_ns }, { "waits", r->waits });
	json_put_int(j, "missing", r->missing_ns);
	for (int i = 0; i < CAUSE_COUNT; i++)
		json_put_uint(j, cause_key(i), r->ns[i]);
}

static void put_account(struct json *j, const struct profile *p, const struct account *a)
{
	json_open_object_line(j, "account", 0);
	json_put_uints(j, { "lost", a->lost }, { "unseen_threads", a->unseen });
	json_put_string(j, "cpu_from", a->cpu_is_the_rest ? "rest" : a->sampled_cpu ? "samples" : "kernel");
	json_open_object_line(j, "total", 1);
	put_row(j, &a->total);
	json_close(j);
	json_open_array_line(j, "threads", 1);
	for (size_t i = 0; i < a->threads.n; i++) {
		const struct profile_thread *t = &p->threads.v[a->threads.v[i].thread];

		json_open_row(j, 2);
		json_put_string(j, "name", profile_str(p, t->name));
		json_put_uint(j, "tid", t->tid);
		put_row(j, &a->threads.v[i]);
		json_close(j);
	}
	json_close(j);
	json_close(j);
}

static void put_verdict(struct json *j, const struct profile *p, const struct verdict *v)
{
	json_open_object_line(j, "verdict", 0);
	json_put_strings(j, "sentences", (const char *const *)v->sentences.v, v->sentences.n);
	if (v->thread < p->threads.n) {
		json_put_string(j, "thread", profile_str(p, p->threads.v[v->thread].name));
		json_put_uint(j, "tid", p->threads.v[v->thread].tid);
		json_put_string(j, "cause", cause_key(v->cause));
	}
	if (v->pattern)
		json_put_string(j, "pattern", v->pattern->name);
	json_close(j);
}

static void put_wakers(struct json *j, const struct waits_site *s)
{
	json_open_array(j, "wakers");
	for (size_t i = 0; i < s->wakers.n; i++) {
		const struct waits_waker *w = &s->wakers.v[i];

		json_open_object(j, NULL);
		if (w->interrupt) {
			json_put_string(j, "interrupt", waits_interrupt(w->interrupt));
		} else {
			json_put_string(j, "function", w->function);
			json_put_string(j, "thread", w->thread);
		}
		json_put_uints(j, { "ns", w->ns }, { "count", w->count });
		json_close(j);
	}
	json_close(j);
	json_open_array(j, "wakers_ran");
	for (size_t i = 0; i < s->ran.n; i++) {
		json_open_object(j, NULL);
		json_put_string(j, "function", s->ran.v[i].function);
		json_put_uint(j, "ns", s->ran.v[i].ns);
		json_close(j);
	}
	json_close(j);
}

static void put_chain(struct json *j, const struct waits_chain *c)
{
	json_open_object(j, NULL);
	json_put_uints(j, { "ns", c->ns }, { "count", c->count });
	json_put_string(j, "ended_by", waits_interrupt(c->end));
	json_open_array(j, "links");
	for (uint32_t k = 0; k < c->link_count; k++) {
		json_open_object(j, NULL);
		json_put_string(j, "thread", c->links[k].thread);
		json_put_string(j, "cause", cause_key(c->links[k].cause));
		json_put_string(j, "function", c->links[k].function);
		json_close(j);
	}
	json_close(j);
	json_close(j);
}

static void put_site(struct json *j, const struct profile *p, const struct waits_site *s)
{
	json_open_row(j, 1);
	json_put_string(j, "cause", cause_key(s->cause));
	json_put_string(j, "function", s->function);
	json_put_string(j, "module", s->module);
	if (s->pattern)
		json_put_string(j, "pattern", s->pattern->name);
	if (s->operation)
		json_put_string(j, "operation", s->operation);
	json_put_uints(j, { "ns", s->ns }, { "count", s->count }, { "longest", s->longest_ns },
		       { "threads", s->threads });
	json_put_string(j, "thread", profile_str(p, p->threads.v[s->thread].name));
	put_wakers(j, s);
	json_open_array(j, "chains");
	for (size_t i = 0; i < s->chains.n; i++)
		put_chain(j, &s->chains.v[i]);
	json_close(j);
	json_close(j);
}

static void put_waits(struct json *j, const struct profile *p, const struct waits *w, size_t limit)
{
	json_open_array_line(j, "waits", 0);
	for (size_t i = 0; i < w->sites.n && (!limit || i < limit); i++)
		put_site(j, p, &w->sites.v[i]);
	json_close(j);
}

void waitjson_put(const struct export_job *job, struct json *j)
{
	if (!job->account || !job->waits || !job->verdict)
		return;
	put_account(j, job->profile, job->account);
	put_verdict(j, job->profile, job->verdict);
	put_waits(j, job->profile, job->waits, job->options.limit);
}

/* --- the page --- */

static void put_page_waker(struct json *j, const struct waits_waker *w)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	char ns[32], count[32];

	if (w->interrupt)
		buf_puts(&text, waits_interrupt(w->interrupt));
	else
		buf_printf(&text, "%s of thread %s", w->function, w->thread);
	buf_printf(&text, ": %s in %s", str_duration(ns, w->ns), str_count(count, w->count));
	cleantext_json(j, NULL, text.data);
}

void waitpage_put(const struct export_job *job, struct json *j)
{
	const struct profile *p = job->profile;
	const struct waits *w = job->waits;

	json_open_array(j, "waits");
	for (size_t i = 0; i < w->sites.n && i < SECTION_PAGE_WAITS; i++) {
		const struct waits_site *s = &w->sites.v[i];

		json_open_object(j, NULL);
		cleantext_json(j, "function", s->function);
		cleantext_json(j, "cause", cause_key(s->cause));
		cleantext_json(j, "operation", s->operation ? s->operation : "");
		json_put_uints(j, { "ns", s->ns }, { "count", s->count }, { "longestNs", s->longest_ns },
			       { "threads", s->threads });
		cleantext_json(j, "thread",
		         s->thread < p->threads.n ? profile_str(p, p->threads.v[s->thread].name) : "");
		cleantext_json(j, "means", s->pattern ? s->pattern->means : "");
		cleantext_json(j, "fix", s->pattern ? s->pattern->fix : "");
		json_open_array(j, "wakers");
		for (size_t k = 0; k < s->wakers.n && k < PAGE_WAKERS; k++)
			put_page_waker(j, &s->wakers.v[k]);
		json_close(j);
		json_close_line(j, 0);
	}
	json_close_line(j, 0);
}
