#include "analyze/wait/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/wait/account.h"
#include "analyze/wait/goroutines.h"
#include "analyze/groups.h"
#include "analyze/select.h"
#include "analyze/task/taskverdict.h"
#include "analyze/tree/ownfunction.h"
#include "base/buf.h"
#include "base/text/str.h"
#include "profile/profile.h"

enum {
	WORTH_PERCENT = 10,   /* of a thread's time, to say a word about it */
	CROWDED_PERCENT = 10, /* of what could run, that it stood in the queue */
	QUOTA_PERCENT = 5,    /* of a thread's time, that a quota stopped it: it is easily mended */
	NOTICED_PERCENT = 1,  /* of the longest thread's time; a smaller share is not reported */
};

void verdict_say(struct verdict *v, struct verdict_link link, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vec_push(&v->sentences, mem_vprintf(fmt, ap));
	va_end(ap);
	link.function = mem_strdup(link.function);
	link.task = mem_strdup(link.task);
	vec_push(&v->links, link);
}

/* The same of a finding, with the options of the command line that show more: the page has links instead. */
static void say_finding(struct verdict *v, struct verdict_link link, const char *commands, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static void say_finding(struct verdict *v, struct verdict_link link, const char *commands, const char *fmt, ...)
{
	_cleanup_free_ char *finding = NULL;
	va_list ap;

	va_start(ap, fmt);
	finding = mem_vprintf(fmt, ap);
	va_end(ap);
	link.finding = strlen(finding);
	verdict_say(v, link, "%s%s", finding, commands);
}

static const struct account_row *most_waiting(const struct account *a)
{
	const struct account_row *best = NULL;

	for (size_t i = 0; i < a->threads.n; i++) {
		const struct account_row *r = &a->threads.v[i];

		if (account_worth_ns(r) && (!best || account_worth_ns(r) > account_worth_ns(best)))
			best = r;
	}
	return best && account_worth_ns(best) * 100 >= best->wall_ns * WORTH_PERCENT ? best : NULL;
}

struct hot {
	uint64_t ns;
	enum cause cause;
	uint32_t ident, stack; /* stack: an example */
	const struct pattern *pattern; /* of that stack */
};

/* Where a thread waited most, of what counts. */
static struct hot hottest(const struct profile *p, struct idents *idents, const struct account_row *r,
			  const struct select_options *o)
{
	VEC(struct hot) list = { 0 };
	_cleanup_(map_done) struct map index = { 0 };
	struct hot best = { 0 };

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		struct causes_wait w;
		uint32_t ident;
		uint64_t *id;

		if (s->thread != r->thread || causes_role(o->causes, s->event) != ROLE_WAIT)
			continue;
		w = causes_of_sample(o->causes, s);
		if (!account_counts(r, w.cause))
			continue;
		ident = ownfunction_of_stack(idents, s->stack);
		id = map_put(&index, map_pair(w.cause, ident), list.n);
		if (*id == list.n)
			vec_push(&list, (struct hot){ 0, w.cause, ident, s->stack, w.pattern });
		list.v[*id].ns += select_value(p, i, ROLE_WAIT, o->from_ns, o->to_ns);
	}
	for (size_t i = 0; i < list.n; i++)
		if (list.v[i].ns > best.ns)
			best = list.v[i];
	vec_done(&list);
	return best;
}

static const char *doing(enum cause cause, const char *operation)
{
	static const char *const words[CAUSE_COUNT] = {
		[CAUSE_LOCK] = "waiting for a lock",
		[CAUSE_PARK] = "waiting to be woken",
		[CAUSE_DISK_READ] = "reading from disk",
		[CAUSE_DISK_WRITE] = "writing to disk",
		[CAUSE_FAULT] = "page faults from disk",
		[CAUSE_NETWORK] = "waiting for the network",
		[CAUSE_PIPE] = "waiting for a pipe or a process",
		[CAUSE_RECLAIM] = "freeing memory for others (reclaim)",
		[CAUSE_QUEUE] = "ready without a CPU",
		[CAUSE_QUOTA] = "stopped by the CPU quota",
	};

	if (operation && (cause == CAUSE_DISK_READ || cause == CAUSE_DISK_WRITE))
		return operation;
	return words[cause] ? words[cause] : cause_name(cause);
}

/* Adds " It is mostly ended by ...": the waker of a lock or a condition. */
static void add_waker(struct buf *b, const struct waits *w, enum cause cause, const char *function)
{
	if (cause != CAUSE_LOCK && cause != CAUSE_PARK)
		return;
	for (size_t i = 0; i < w->sites.n; i++) {
		const struct waits_site *s = &w->sites.v[i];

		if (s->cause != cause || strcmp(s->function, function))
			continue;
		if (s->wakers.n && !s->wakers.v[0].interrupt && s->wakers.v[0].ns * 2 >= s->woken_ns)
			buf_printf(b, ", mostly ended by `%s` of thread `%s`", s->wakers.v[0].function,
				   s->wakers.v[0].thread);
		return;
	}
}

static void judge_thread(struct verdict *v, const struct profile *p, const struct account_row *r,
			 const struct waits *w, const struct select_options *o)
{
	struct idents idents;
	struct hot hot;
	_cleanup_(buf_done) struct buf more = { 0 };
	char part[32], whole[32];

	idents_init(&idents, p, 0);
	hot = hottest(p, &idents, r, o);
	if (hot.ns && hot.ident != OWNFUNCTION_NONE) {
		const char *function = idents.list.v[hot.ident].name;
		_cleanup_free_ char *copy = mem_strdup(function);
		struct verdict_link link = { "wait", r->thread, hot.cause, copy };

		v->thread = r->thread;
		v->cause = hot.cause;
		v->pattern = hot.pattern;
		add_waker(&more, w, hot.cause, function);
		verdict_say(v, link, "%.0f %% of thread `%s` (%s of %s) is %s under `%s`%s.",
		    str_percent(hot.ns, r->wall_ns),
		    profile_str(p, p->threads.v[r->thread].name), str_duration(part, hot.ns),
		    str_duration(whole, r->wall_ns), doing(hot.cause, ownfunction_operation(p, hot.stack)), function,
		    more.n ? more.data : "");
		if (v->pattern && *v->pattern->means) {
			link.advice = true;
			verdict_say(v, link, "%s%s%s", v->pattern->means,
			    *v->pattern->fix ? " What usually helps: " : "",
			    v->pattern->fix);
		}
	}
	idents_done(&idents);
}

static void judge_cpus(struct verdict *v, const struct account *a)
{
	uint64_t cpu = a->total.ns[CAUSE_CPU], queue = a->total.ns[CAUSE_QUEUE];
	uint64_t active = account_active_ns(&a->total) - a->total.ns[CAUSE_SLEEP], longest = 0;
	char text[32];

	for (size_t i = 0; i < a->threads.n; i++)
		longest = MAX(longest, a->threads.v[i].wall_ns);
	if (queue * 100 > longest * NOTICED_PERCENT && queue * 100 >= (cpu + queue) * CROWDED_PERCENT)
		verdict_say(v, (struct verdict_link){ "queue", PROFILE_NONE },
		    "Threads were ready for %s without a CPU, %.0f %% of the time in which they could have "
		    "run: there are more of them than CPUs, or others took the CPUs.",
		    str_duration(text, queue), 100.0 * queue / (cpu + queue));
	else if (!v->sentences.n && cpu * 2 >= active && cpu)
		say_finding(v, (struct verdict_link){ "cpu", PROFILE_NONE }, " `--what cpu` shows where.",
			    "What is not idle is on the CPU, %s of it.", str_duration(text, cpu));
	else if (!v->sentences.n && a->total.wall_ns && active * 100 < a->total.wall_ns)
		verdict_say(v, (struct verdict_link){ NULL, PROFILE_NONE },
		    "The threads were idle: record while there is work to do.");
}

/* The thread that the CPU quota held up most; or, where the kernel does not tell for each thread, that it did. */
static void judge_quota(struct verdict *v, const struct profile *p, const struct account *a)
{
	const struct account_row *most = NULL;
	struct verdict_link link = { "throttled", PROFILE_NONE, CAUSE_QUOTA };
	char part[32], whole[32], all[32], quota[64] = "A CPU quota of its cgroup";
	struct groups g;
	uint64_t stopped;

	groups_make(&g, p);
	stopped = g.rows.n ? g.rows.v[0].throttled_ns : 0;
	if (g.rows.n && g.rows.v[0].quota_us)
		snprintf(quota, sizeof(quota), "The cgroup's quota of %.3g CPUs", groups_cpus(&g.rows.v[0]));
	groups_done(&g);
	for (size_t i = 0; i < a->threads.n; i++)
		if (a->threads.v[i].ns[CAUSE_QUOTA] && (!most || a->threads.v[i].ns[CAUSE_QUOTA] > most->ns[CAUSE_QUOTA]))
			most = &a->threads.v[i];
	if (most && most->ns[CAUSE_QUOTA] * 100 >= most->wall_ns * QUOTA_PERCENT) {
		link.thread = most->thread;
		verdict_say(v, link, "%s stopped thread `%s` for %s of %s, and all threads for %s: raise it (docker run --cpus, Kubernetes "
		    "limits.cpu, systemd CPUQuota=), or let fewer threads run at once.",
		    quota, profile_str(p, p->threads.v[most->thread].name), str_duration(part, most->ns[CAUSE_QUOTA]),
		    str_duration(whole, most->wall_ns), str_duration(all, a->total.ns[CAUSE_QUOTA]));
	} else if (!most && stopped && stopped * 100 >= select_duration_ns(p) * QUOTA_PERCENT) {
		link.what = "queue";
		verdict_say(v, link, "%s stopped it for %s, by the kernel's count for all of its CPUs: that is part of the run queue's time here, "
		    "as this kernel does not tell it for each thread. Raise the quota, or let fewer threads run at once.",
		    quota, str_duration(part, stopped));
	}
}

/* What waits in a Go program is a goroutine, mostly, and no thread. */
static void explain_go(struct verdict *v, const struct profile *p)
{
	bool recorded = goroutines_recorded(p);

	if (goroutines_is_go(p))
		say_finding(v, (struct verdict_link){ recorded ? "goroutine" : NULL, PROFILE_NONE },
			    recorded ? " `--what goroutine` shows the goroutines." :
				       " `record -e goroutine` records the waits of goroutines.",
			    "This is a Go program: a goroutine that waits for a channel, a mutex, a timer or the network leaves "
			    "its thread to others, so what is shown here are threads.");
}

void verdict_make(struct verdict *v, const struct profile *p, const struct account *a, const struct waits *w,
		  const struct select_options *o)
{
	const struct account_row *r = most_waiting(a);

	*v = (struct verdict){ .thread = PROFILE_NONE };
	if (r)
		judge_thread(v, p, r, w, o);
	taskverdict_add(v, p, o);
	judge_quota(v, p, a);
	judge_cpus(v, a);
	explain_go(v, p);
}

void verdict_make_without_waits(struct verdict *v, const struct profile *p, const struct select_options *o)
{
	*v = (struct verdict){ .thread = PROFILE_NONE };
	taskverdict_add(v, p, o);
}

void verdict_done(struct verdict *v)
{
	for (size_t i = 0; i < v->sentences.n; i++)
		free(v->sentences.v[i]);
	for (size_t i = 0; i < v->links.n; i++) {
		free(v->links.v[i].function);
		free(v->links.v[i].task);
	}
	vec_done(&v->sentences);
	vec_done(&v->links);
}
