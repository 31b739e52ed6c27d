/*
 * waitjson.c - the account, the verdict and the waits of waittext.c for programs, and the waits for the page. All times
 * are nanoseconds.
 */
#include "analyze/tree/ident.h"
#include "analyze/wait/account.h"
#include "analyze/wait/cause.h"
#include "analyze/wait/kernelwait.h"
#include "analyze/wait/verdict.h"
#include "analyze/wait/waits.h"
#include "base/json.h"
#include "base/vec.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/section/section.h"
#include "profile/profile.h"

enum { PAGE_FRAMES = 40, PAGE_CHAINS = 4, PAGE_WAITERS = 12 };

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
	if (job->verdict && !job->account && job->verdict->sentences.n)
		put_verdict(j, job->profile, job->verdict);
	if (!job->account || !job->waits || !job->verdict)
		return;
	put_account(j, job->profile, job->account);
	put_verdict(j, job->profile, job->verdict);
	put_waits(j, job->profile, job->waits, job->options.limit);
}

/* --- the page --- */

/* Puts the functions of a waker's stack, outermost first: the program's. Of a thread of the kernel all but the way to wake
 * somebody. */
static void put_page_stack(struct json *j, struct idents *idents, uint32_t stack)
{
	const struct profile *p = idents->p;
	VEC(uint32_t) names = { 0 };
	bool user = false;

	for (uint32_t s = stack; s && !user; s = p->stacks.v[s].parent)
		user = p->frames.v[p->stacks.v[s].frame].kind == FRAME_USER;

	for (; stack && names.n < PAGE_FRAMES; stack = p->stacks.v[stack].parent) {
		uint32_t frame = p->stacks.v[stack].frame, n;
		const uint32_t *list = idents_of_frame(idents, frame, &n);

		if (!names.n && p->frames.v[frame].kind == FRAME_KERNEL && (user || kernel_is_waking(cause_frame_name(p, frame))))
			continue;
		while (n-- > 0)
			vec_push(&names, list[n]);
	}
	json_open_array(j, "stack");
	while (names.n)
		cleantext_json(j, NULL, idents->list.v[names.v[--names.n]].name);
	json_close(j);
	vec_done(&names);
}

static void put_page_wakers(struct json *j, struct idents *idents, const struct waits_site *s)
{
	json_open_array(j, "wakers");
	for (size_t i = 0; i < s->wakers.n; i++) {
		const struct waits_waker *w = &s->wakers.v[i];

		json_open_object(j, NULL);
		cleantext_json(j, "function", w->interrupt ? waits_interrupt(w->interrupt) : w->function);
		cleantext_json(j, "thread", w->thread);
		json_put_uints(j, { "ns", w->ns }, { "count", w->count }, { "longestNs", w->longest_ns });
		if (!w->interrupt)
			put_page_stack(j, idents, w->stack);
		json_close(j);
	}
	json_close(j);
	json_open_array(j, "ran");
	for (size_t i = 0; i < s->ran.n; i++) {
		json_open_object(j, NULL);
		cleantext_json(j, "function", s->ran.v[i].function);
		json_put_uint(j, "ns", s->ran.v[i].ns);
		json_close(j);
	}
	json_close(j);
}

static void put_page_chains(struct json *j, const struct waits_site *s)
{
	json_open_array(j, "chains");
	for (size_t i = 0; i < s->chains.n && i < PAGE_CHAINS; i++) {
		const struct waits_chain *c = &s->chains.v[i];

		json_open_object(j, NULL);
		json_put_uints(j, { "ns", c->ns }, { "count", c->count });
		json_put_string(j, "end", waits_interrupt(c->end));
		json_open_array(j, "links");
		for (uint32_t k = 0; k < c->link_count; k++) {
			json_open_object(j, NULL);
			cleantext_json(j, "thread", c->links[k].thread);
			json_put_string(j, "cause", cause_key(c->links[k].cause));
			cleantext_json(j, "function", c->links[k].function);
			json_close(j);
		}
		json_close(j);
		json_close(j);
	}
	json_close(j);
}

/* Puts who waited. The rest, beyond PAGE_WAITERS names, is in the site's own figures. */
static void put_page_waiters(struct json *j, const struct waits_site *s)
{
	json_open_array(j, "waiters");
	for (size_t i = 0; i < s->waiters.n && i < PAGE_WAITERS; i++) {
		json_open_object(j, NULL);
		cleantext_json(j, "thread", s->waiters.v[i].thread);
		json_put_uints(j, { "threads", s->waiters.v[i].threads }, { "ns", s->waiters.v[i].ns });
		json_close(j);
	}
	json_close(j);
}

static const char *thread_name(const struct profile *p, uint32_t thread)
{
	return thread < p->threads.n ? profile_str(p, p->threads.v[thread].name) : "";
}

void waitpage_put(const struct export_job *job, struct json *j)
{
	const struct profile *p = job->profile;
	const struct waits *w = job->waits;
	struct idents idents;

	idents_init(&idents, p, 0);
	json_open_array(j, "waits");
	for (size_t i = 0; i < w->sites.n && i < SECTION_PAGE_WAITS; i++) {
		const struct waits_site *s = &w->sites.v[i];

		json_open_object(j, NULL);
		cleantext_json(j, "function", s->function);
		cleantext_json(j, "cause", cause_key(s->cause));
		cleantext_json(j, "operation", s->operation ? s->operation : "");
		json_put_uints(j, { "ns", s->ns }, { "count", s->count }, { "longestNs", s->longest_ns },
			       { "longestAtNs", s->longest_at_ns }, { "threads", s->threads }, { "wokenNs", s->woken_ns });
		cleantext_json(j, "longestThread", thread_name(p, s->longest_thread));
		cleantext_json(j, "thread", thread_name(p, s->thread));
		cleantext_json(j, "means", s->pattern ? s->pattern->means : "");
		cleantext_json(j, "fix", s->pattern ? s->pattern->fix : "");
		put_page_waiters(j, s);
		put_page_wakers(j, &idents, s);
		put_page_chains(j, s);
		json_close_line(j, 0);
	}
	json_close_line(j, 0);
	idents_done(&idents);
}
