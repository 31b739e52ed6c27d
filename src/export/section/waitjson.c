/*
 * waitjson.c - the account, the verdict and the waits of waittext.c for programs. All times are nanoseconds.
 */
#include "analyze/wait/account.h"
#include "analyze/wait/verdict.h"
#include "analyze/wait/waits.h"
#include "base/buf.h"
#include "export/export.h"
#include "export/section/section.h"
#include "profile/profile.h"

static void put_string(struct buf *b, const char *key, const char *value)
{
	buf_printf(b, "\"%s\":", key);
	buf_json(b, value);
}

static void put_row(struct buf *b, const struct account_row *r)
{
	buf_printf(b, "\"wall\":%llu,\"waits\":%llu,\"missing\":%lld", (unsigned long long)r->wall_ns,
		   (unsigned long long)r->waits, (long long)r->missing_ns);
	for (int i = 0; i < CAUSE_COUNT; i++)
		buf_printf(b, ",\"%s\":%llu", cause_key(i), (unsigned long long)r->ns[i]);
}

static void put_account(struct buf *b, const struct profile *p, const struct account *a)
{
	buf_printf(b,
		   ",\n\"account\":{\"lost\":%llu,\"unseen_threads\":%llu,\"cpu_from\":\"%s\",\n \"total\":{",
		   (unsigned long long)a->lost, (unsigned long long)a->unseen,
		   a->cpu_is_the_rest ? "rest"
		   : a->sampled_cpu   ? "samples"
				      : "kernel");
	put_row(b, &a->total);
	buf_puts(b, "},\n \"threads\":[");
	for (size_t i = 0; i < a->threads.n; i++) {
		const struct profile_thread *t = &p->threads.v[a->threads.v[i].thread];

		buf_puts(b, i ? ",\n  {" : "\n  {");
		put_string(b, "name", profile_str(p, t->name));
		buf_printf(b, ",\"tid\":%u,", t->tid);
		put_row(b, &a->threads.v[i]);
		buf_putc(b, '}');
	}
	buf_puts(b, "]}");
}

static void put_verdict(struct buf *b, const struct profile *p, const struct verdict *v)
{
	buf_puts(b, ",\n\"verdict\":{\"sentences\":[");
	for (size_t i = 0; i < v->sentences.n; i++) {
		if (i)
			buf_putc(b, ',');
		buf_json(b, v->sentences.v[i]);
	}
	buf_putc(b, ']');
	if (v->thread < p->threads.n) {
		buf_putc(b, ',');
		put_string(b, "thread", profile_str(p, p->threads.v[v->thread].name));
		buf_printf(b, ",\"tid\":%u,\"cause\":\"%s\"", p->threads.v[v->thread].tid,
			   cause_key(v->cause));
	}
	if (v->pattern) {
		buf_putc(b, ',');
		put_string(b, "pattern", v->pattern->name);
	}
	buf_putc(b, '}');
}

static void put_wakers(struct buf *b, const struct waits_site *s)
{
	buf_puts(b, ",\"wakers\":[");
	for (size_t i = 0; i < s->wakers.n; i++) {
		const struct waits_waker *w = &s->wakers.v[i];

		buf_puts(b, i ? ",{" : "{");
		if (w->interrupt) {
			put_string(b, "interrupt", waits_interrupt(w->interrupt));
		} else {
			put_string(b, "function", w->function);
			buf_putc(b, ',');
			put_string(b, "thread", w->thread);
		}
		buf_printf(b, ",\"ns\":%llu,\"count\":%llu}", (unsigned long long)w->ns,
			   (unsigned long long)w->count);
	}
	buf_puts(b, "],\"wakers_ran\":[");
	for (size_t i = 0; i < s->ran.n; i++) {
		buf_puts(b, i ? ",{" : "{");
		put_string(b, "function", s->ran.v[i].function);
		buf_printf(b, ",\"ns\":%llu}", (unsigned long long)s->ran.v[i].ns);
	}
	buf_putc(b, ']');
}

static void put_chains(struct buf *b, const struct waits_site *s)
{
	buf_puts(b, ",\"chains\":[");
	for (size_t i = 0; i < s->chains.n; i++) {
		const struct waits_chain *c = &s->chains.v[i];

		buf_printf(b, "%s{\"ns\":%llu,\"count\":%llu,\"ended_by\":\"%s\",\"links\":[", i ? "," : "",
			   (unsigned long long)c->ns, (unsigned long long)c->count, waits_interrupt(c->end));
		for (uint32_t k = 0; k < c->link_count; k++) {
			buf_puts(b, k ? ",{" : "{");
			put_string(b, "thread", c->links[k].thread);
			buf_printf(b, ",\"cause\":\"%s\",", cause_key(c->links[k].cause));
			put_string(b, "function", c->links[k].function);
			buf_putc(b, '}');
		}
		buf_puts(b, "]}");
	}
	buf_putc(b, ']');
}

static void put_waits(struct buf *b, const struct profile *p, const struct waits *w, size_t limit)
{
	buf_puts(b, ",\n\"waits\":[");
	for (size_t i = 0; i < w->sites.n && (!limit || i < limit); i++) {
		const struct waits_site *s = &w->sites.v[i];

		buf_puts(b, i ? ",\n {" : "\n {");
		put_string(b, "cause", cause_key(s->cause));
		buf_putc(b, ',');
		put_string(b, "function", s->function);
		buf_putc(b, ',');
		put_string(b, "module", s->module);
		if (s->pattern) {
			buf_putc(b, ',');
			put_string(b, "pattern", s->pattern->name);
		}
		if (s->operation) {
			buf_putc(b, ',');
			put_string(b, "operation", s->operation);
		}
		buf_printf(b, ",\"ns\":%llu,\"count\":%llu,\"longest\":%llu,\"threads\":%u,",
			   (unsigned long long)s->ns, (unsigned long long)s->count,
			   (unsigned long long)s->longest_ns, s->threads);
		put_string(b, "thread", profile_str(p, p->threads.v[s->thread].name));
		put_wakers(b, s);
		put_chains(b, s);
		buf_putc(b, '}');
	}
	buf_putc(b, ']');
}

void waitjson_put(const struct export_job *job, struct buf *out)
{
	if (!job->account || !job->waits || !job->verdict)
		return;
	put_account(out, job->profile, job->account);
	put_verdict(out, job->profile, job->verdict);
	put_waits(out, job->profile, job->waits, job->options.limit);
}
