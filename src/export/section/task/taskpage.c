/*
 * taskpage.c - the types of tasks for the page's view of them (docs/page-format.md): their times, their wakers with a stack
 * of each, and long polls with what the worker did in them.
 */
#include <string.h>

#include "analyze/select.h"
#include "analyze/task/blockers.h"
#include "analyze/task/tasks.h"
#include "analyze/tree/ident.h"
#include "base/json.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/section/task/tasktext.h"
#include "profile/profile.h"

enum {
	TYPES = 2000,
	WAKERS = 12, /* of a type */
	BEHIND = 4,
	FRAMES = 40, /* of a stack, the innermost */
	POLLS = 1000,
};

/* Returns how many types the page has: those that did nothing, which come last, are left out. */
static size_t count_types(const struct tasks *t)
{
	size_t n = 0;

	while (n < t->types.n && n < TYPES && (t->types.v[n].seen || t->types.v[n].polls || tasks_wall_ns(&t->types.v[n])))
		n++;
	return n;
}

/* Numbers of types are places in the list of the page; -1: it is not there. */
static int64_t number_of(uint32_t type, size_t types)
{
	return type < types ? (int64_t)type : -1;
}

/* Puts the functions of a waker's stack, outermost first, without the frame of the type that all of them begin with. */
static void put_stack(struct json *j, struct idents *idents, uint32_t stack)
{
	const struct profile *p = idents->p;
	VEC(uint32_t) names = { 0 };

	for (; stack && p->stacks.v[stack].parent && names.n < FRAMES; stack = p->stacks.v[stack].parent) {
		uint32_t frame = p->stacks.v[stack].frame, n;
		const uint32_t *list = idents_of_frame(idents, frame, &n);

		while (p->frames.v[frame].kind == FRAME_USER && n-- > 0)
			vec_push(&names, list[n]);
	}
	json_open_array(j, "stack");
	while (names.n)
		cleantext_json(j, NULL, idents->list.v[names.v[--names.n]].name);
	json_close(j);
	vec_done(&names);
}

static void put_wakers(struct json *j, struct idents *idents, const struct tasks_type *y, size_t types)
{
	const struct profile *p = idents->p;
	uint64_t all = y->not_ended_ns;

	for (size_t i = 0; i < y->wakers.n; i++)
		all += y->wakers.v[i].ns;
	json_put_uints(j, { "awaitedNs", all }, { "notEndedNs", y->not_ended_ns });
	json_open_array(j, "wakers");
	for (size_t i = 0; i < y->wakers.n && i < WAKERS; i++) {
		const struct tasks_waker *w = &y->wakers.v[i];

		json_open_object(j, NULL);
		json_put_string(j, "kind", w->kind == WAKEKIND_OTHER || w->kind == WAKEKIND_NO_STACK ? "" : wakekind_name(w->kind));
		json_put_int(j, "type", number_of(w->type, types));
		cleantext_json(j, "thread", w->thread < p->threads.n ? profile_str(p, p->threads.v[w->thread].name) : "");
		cleantext_json(j, "function", w->function);
		json_put_uints(j, { "ns", w->ns }, { "count", w->count }, { "longestNs", w->longest_ns });
		put_stack(j, idents, w->stack);
		json_close(j);
	}
	json_close(j);
}

/* Puts what ran while its tasks were in the queue. */
static void put_behind(struct json *j, const struct tasks_type *y, size_t types)
{
	json_open_array(j, "behind");
	for (size_t i = 0; i < y->behind.n && i < BEHIND; i++) {
		json_open_object(j, NULL);
		json_put_int(j, "type", number_of(y->behind.v[i].type, types));
		json_put_uint(j, "ns", y->behind.v[i].ns);
		json_close(j);
	}
	json_close(j);
}

static void put_types(struct json *j, const struct profile *p, const struct tasks *t, size_t types)
{
	struct idents idents;

	idents_init(&idents, p, 0);
	json_open_array(j, "types");
	for (size_t i = 0; i < types; i++) {
		const struct tasks_type *y = &t->types.v[i];

		json_open_row(j, 0);
		cleantext_json(j, "name", y->name);
		json_put_uints(j, { "seen", y->seen }, { "alive", y->alive }, { "polls", y->polls }, { "pollNs", y->poll_ns },
			       { "longestNs", y->longest_ns }, { "longPolls", y->long_polls }, { "queueNs", y->queue_ns },
			       { "awaitNs", y->await_ns });
		if (y->blocking)
			json_put_bool(j, "blocking", true);
		put_wakers(j, &idents, y, types);
		put_behind(j, y, types);
		json_close(j);
	}
	json_close(j);
	idents_done(&idents);
}

static void put_polls(struct json *j, const struct blockers *b, size_t types)
{
	json_open_array(j, "longPolls");
	for (size_t i = 0; i < b->polls.n && i < POLLS; i++) {
		const struct blockers_poll *x = &b->polls.v[i];

		json_open_row(j, 0);
		json_put_int(j, "type", number_of(x->type, types));
		json_put_uints(j, { "thread", x->thread }, { "startNs", x->start_ns }, { "endNs", x->end_ns }, { "queued", x->queued });
		cleantext_json(j, "function", x->function);
		json_open_object(j, "ns");
		for (int k = 0; k < CAUSE_COUNT; k++)
			if (x->ns[k])
				json_put_uint(j, cause_key(k), x->ns[k]);
		json_close(j);
		json_close(j);
	}
	json_close(j);
}

void taskpage_put(const struct export_job *job, struct json *j)
{
	const struct select_options o = { .causes = job->selection->options.causes };
	struct blockers blockers = { 0 };
	struct tasks tasks;

	if (!tasks_make(&tasks, job->profile, &o, 0)) {
		json_put_null(j, "tasks");
	} else {
		size_t types = count_types(&tasks);

		blockers_make(&blockers, job->profile, &o, &tasks);
		json_open_object(j, "tasks");
		json_put_uint(j, "lost", tasks.lost);
		put_types(j, job->profile, &tasks, types);
		put_polls(j, &blockers, types);
		json_close(j);
		blockers_done(&blockers);
	}
	tasks_done(&tasks);
	json_break(j, 0);
}
