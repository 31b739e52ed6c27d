/*
 * taskjson.c - async tasks for programs: the member "tasks" of a report.
 */
#include "analyze/select.h"
#include "analyze/task/blockers.h"
#include "analyze/task/taskchains.h"
#include "analyze/task/taskhealth.h"
#include "analyze/task/tasks.h"
#include "analyze/wait/cause.h"
#include "base/json.h"
#include "base/mem.h"
#include "export/export.h"
#include "export/section/task/tasktext.h"
#include "profile/profile.h"

/* A type's name; null where it is none. */
static void put_name(struct json *j, const char *key, const struct tasks *t, uint32_t type)
{
	json_put_string(j, key, type == TASKS_NONE ? NULL : t->types.v[type].name);
}

static void put_thread(struct json *j, const char *key, const struct profile *p, uint32_t thread)
{
	if (thread < p->threads.n)
		json_put_uint(j, key, p->threads.v[thread].tid);
	else
		json_put_null(j, key);
}

static void put_causes(struct json *j, const uint64_t ns[CAUSE_COUNT])
{
	json_open_object(j, "by_cause_ns");
	for (int i = 0; i < CAUSE_COUNT; i++)
		if (ns[i])
			json_put_uint(j, cause_key(i), ns[i]);
	json_close(j);
}

static bool is_within(const struct export_job *job, size_t i)
{
	return !job->options.limit || i < job->options.limit;
}

/* --- types --- */

static void put_wakers(const struct export_job *job, const struct tasks *t, const struct tasks_type *y, struct json *j)
{
	json_open_array(j, "woken_by");
	for (size_t i = 0; i < y->wakers.n && is_within(job, i); i++) {
		const struct tasks_waker *w = &y->wakers.v[i];

		json_open_object(j, NULL);
		json_put_string(j, "kind", wakekind_key(w->kind));
		json_put_string(j, "function", w->function);
		put_name(j, "task", t, w->type);
		put_thread(j, "tid", job->profile, w->thread);
		json_put_uints(j, { "ns", w->ns }, { "count", w->count }, { "longest_ns", w->longest_ns });
		json_close(j);
	}
	json_close(j);
}

static void put_type(const struct export_job *job, const struct tasks *t, const struct tasks_type *y, struct json *j)
{
	json_open_row(j, 2);
	json_put_string(j, "type", y->name);
	json_put_bool(j, "blocking", y->blocking);
	json_put_uints(j, { "tasks", y->seen }, { "spawned", y->spawned }, { "finished", y->finished }, { "alive", y->alive },
		       { "polls", y->polls }, { "poll_ns", y->poll_ns }, { "longest_poll_ns", y->longest_ns },
		       { "long_polls", y->long_polls }, { "queue_ns", y->queue_ns }, { "longest_queue_ns", y->longest_queue_ns },
		       { "wakes", y->awaits }, { "await_ns", y->await_ns }, { "not_ended_ns", y->not_ended_ns });
	put_causes(j, y->by_cause);
	put_wakers(job, t, y, j);
	json_open_array(j, "queued_behind");
	for (size_t i = 0; i < y->behind.n && is_within(job, i); i++) {
		json_open_object(j, NULL);
		put_name(j, "task", t, y->behind.v[i].type);
		json_put_uints(j, { "ns", y->behind.v[i].ns }, { "count", y->behind.v[i].count });
		json_close(j);
	}
	json_close(j);
	json_open_array(j, "spawned_by");
	for (size_t i = 0; i < y->places.n && is_within(job, i); i++) {
		json_open_object(j, NULL);
		json_put_string(j, "function", y->places.v[i].function);
		json_put_uint(j, "count", y->places.v[i].count);
		json_close(j);
	}
	json_close(j);
	json_close(j);
}

static void put_types(const struct export_job *job, const struct tasks *t, struct json *j)
{
	json_open_array_line(j, "types", 1);
	for (size_t i = 0, put = 0; i < t->types.n && is_within(job, put); i++) {
		if (!t->types.v[i].seen && !tasks_wall_ns(&t->types.v[i]))
			continue;
		put_type(job, t, &t->types.v[i], j);
		put++;
	}
	json_close(j);
}

/* --- long polls and chains --- */

static void put_blocker(const struct tasks *t, const struct blockers *b, const struct blockers_row *r,
			const struct profile *p, struct json *j)
{
	const struct blockers_poll *longest = &b->polls.v[r->longest];

	json_open_row(j, 2);
	put_name(j, "type", t, r->type);
	json_put_string(j, "function", r->function);
	json_put_string(j, "leaf", r->leaf);
	json_put_string(j, "module", r->module);
	json_put_string(j, "cause", cause_key(r->cause));
	json_put_string(j, "operation", r->operation);
	json_put_uints(j, { "ns", r->ns }, { "count", r->count }, { "longest_ns", r->longest_ns },
		       { "longest_start_ns", longest->start_ns });
	put_thread(j, "longest_tid", p, longest->thread);
	put_causes(j, r->by_cause);
	json_put_uints(j, { "queued", r->queued }, { "queued_ns", r->queued_ns });
	json_open_array(j, "queued_meanwhile");
	for (size_t i = 0; i < r->victims.n; i++) {
		json_open_object(j, NULL);
		put_name(j, "type", t, r->victims.v[i].type);
		json_put_uints(j, { "ns", r->victims.v[i].ns }, { "count", r->victims.v[i].count });
		json_close(j);
	}
	json_close(j);
	json_close(j);
}

static void put_blockers(const struct export_job *job, const struct tasks *t, struct json *j)
{
	struct blockers b;

	blockers_make(&b, job->profile, &job->selection->options, t);
	json_open_array_line(j, "long_polls", 1);
	for (size_t i = 0; i < b.rows.n && is_within(job, i); i++)
		put_blocker(t, &b, &b.rows.v[i], job->profile, j);
	json_close(j);
	blockers_done(&b);
}

static void put_chain(const struct tasks *t, const struct taskchain *c, const struct profile *p, struct json *j)
{
	json_open_row(j, 2);
	json_put_uints(j, { "ns", c->ns }, { "count", c->count }, { "longest_ns", c->longest_ns });
	json_open_array(j, "links");
	for (uint32_t i = 0; i < c->link_count; i++) {
		json_open_object(j, NULL);
		put_name(j, "type", t, c->links[i].type);
		json_put_string(j, "awaited", wakekind_key(c->links[i].kind));
		json_put_string(j, "function", c->links[i].function);
		json_close(j);
	}
	json_close(j);
	put_name(j, "end_type", t, c->end_type);
	put_thread(j, "end_tid", p, c->end_thread);
	json_put_string(j, "end_cause", c->end_thread < p->threads.n ? cause_key(c->end_cause) : NULL);
	json_put_string(j, "end_function", c->end_function);
	json_close(j);
}

static void put_chains(const struct export_job *job, const struct tasks *t, struct json *j)
{
	struct taskchains c;

	taskchains_make(&c, job->profile, &job->selection->options, t);
	json_open_array_line(j, "chains", 1);
	for (size_t i = 0; i < c.list.n && is_within(job, i); i++)
		put_chain(t, &c.list.v[i], job->profile, j);
	json_close(j);
	taskchains_done(&c);
}

/* --- health --- */

static void put_figure(struct json *j, const char *key, const struct taskhealth_figure *f)
{
	if (!f->points)
		return;
	json_open_object(j, key);
	json_put_real(j, "mean", f->mean, 6);
	json_put_real(j, "most", f->most, 6);
	json_put_uint(j, "most_at_ns", f->most_at_ns);
	json_close(j);
}

static void put_latency(struct json *j, const char *key, const struct taskhealth_latency *l)
{
	if (!l->count)
		return;
	json_open_object(j, key);
	json_put_uints(j, { "count", l->count }, { "p50_ns", l->p50_ns }, { "p99_ns", l->p99_ns }, { "max_ns", l->max_ns });
	json_close(j);
}

static void put_health(const struct export_job *job, struct json *j)
{
	struct taskhealth h;

	if (!taskhealth_make(&h, job->profile, &job->selection->options))
		return;
	json_break(j, 1);
	json_open_object(j, "health");
	put_figure(j, "queue", &h.queue);
	put_figure(j, "busy", &h.busy);
	put_figure(j, "polls_per_second", &h.polls);
	json_put_uint(j, "longest_poll_ns", h.longest_poll_ns);
	put_latency(j, "poll", &h.poll);
	put_latency(j, "queued", &h.queued);
	put_latency(j, "await", &h.await);
	json_close(j);
}

void taskjson_put(const struct export_job *job, struct json *j)
{
	struct tasks t;

	if (!job->selection || !tasks_make(&t, job->profile, &job->selection->options, 0))
		return;
	json_open_object_line(j, "tasks", 0);
	json_put_uints(j, { "tasks", t.seen }, { "spawned", t.spawned }, { "alive", t.alive }, { "polls", t.polls },
		       { "poll_ns", t.poll_ns }, { "queue_ns", t.queue_ns }, { "await_ns", t.await_ns }, { "threads", t.workers },
		       { "lost", t.lost },
		       { "long_polls_left_out", t.long_polls_left_out }, { "wakes_left_out", t.wakes_left_out }, { "vtables", t.vtables }, { "tokio_version", t.version });
	json_put_bool(j, "counted", t.counted);
	put_types(job, &t, j);
	put_blockers(job, &t, j);
	put_chains(job, &t, j);
	put_health(job, j);
	json_close(j);
	tasks_done(&t);
}
