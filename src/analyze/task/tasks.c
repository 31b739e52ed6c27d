#include "analyze/task/tasks.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/task/taskwakers.h"
#include "analyze/wait/cause.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "profile/keys.h"
#include "profile/profile.h"

bool tasks_recorded(const struct profile *p)
{
	return profile_find_event(p, "poll", "ns") != PROFILE_NONE && profile_find_event(p, "await", "ns") != PROFILE_NONE;
}

const char *tasks_frame_type(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames.v[frame];
	const char *name = cause_frame_name(p, frame);

	return f->kind == FRAME_USER && f->module == PROFILE_NONE && str_starts(name, TASKS_PREFIX) ?
		       name + strlen(TASKS_PREFIX) : NULL;
}

/* --- types --- */

uint32_t tasks_find(const struct tasks *t, const char *name)
{
	uint64_t *at = map_get(&t->by_name, map_hash_bytes(name, strlen(name)));

	return at && !strcmp(t->types.v[*at].name, name) ? *at : TASKS_NONE;
}

/* The type of that name, which is made if there is none. */
static uint32_t type_of_name(struct tasks *t, const char *name)
{
	uint32_t found = tasks_find(t, name);

	if (found != TASKS_NONE)
		return found;
	*map_put(&t->by_name, map_hash_bytes(name, strlen(name)), 0) = t->types.n;
	vec_push(&t->types, (struct tasks_type){ .name = strtab_get(&t->names, strtab_add(&t->names, name)) });
	return t->types.n - 1;
}

uint32_t taskwakers_type(struct taskwakers *m, uint32_t frame)
{
	uint32_t *known = &m->of_frame[frame];
	const char *name;

	if (!*known) {
		name = tasks_frame_type(m->p, frame);
		*known = name ? 2 + type_of_name(m->t, name) : 1;
	}
	return *known == 1 ? TASKS_NONE : *known - 2;
}

/* --- sums --- */

/* Counters of a type, and where they belong. */
static const struct {
	const char *key;
	size_t member;
	bool always; /* also where only a part of the recording is selected */
} counted[] = {
	{ KEY_TASK_SPAWNED_OF, offsetof(struct tasks_type, spawned), false },
	{ KEY_TASK_FINISHED_OF, offsetof(struct tasks_type, finished), true },
	{ KEY_TASK_ALIVE_OF, offsetof(struct tasks_type, alive), true },
	{ KEY_TASK_BLOCKING_OF, offsetof(struct tasks_type, blocking), true },
	{ KEY_TASK_POLLS_OF, offsetof(struct tasks_type, polls), false },
	{ KEY_TASK_WAKES_OF, offsetof(struct tasks_type, awaits), false },
	{ KEY_TASK_POLL_NS_OF, offsetof(struct tasks_type, poll_ns), false },
	{ KEY_TASK_POLL_MAX_NS_OF, offsetof(struct tasks_type, longest_ns), false },
	{ KEY_TASK_QUEUE_NS_OF, offsetof(struct tasks_type, queue_ns), false },
	{ KEY_TASK_AWAIT_NS_OF, offsetof(struct tasks_type, await_ns), false },
};

/* The collector's sums in place of those of the samples. */
static void take_counters(struct tasks *t, const struct profile *p, bool whole)
{
	for (size_t i = 0; i < p->counters.n; i++) {
		const char *name = profile_str(p, p->counters.v[i].name);

		if (strncmp(name, "task.", 5))
			continue;
		for (size_t k = 0; k < ARRAY_LEN(counted); k++) {
			_cleanup_free_ char *which = key_which(counted[k].key, name);
			struct tasks_type *y;

			if (!which || (!whole && !counted[k].always))
				continue;
			t->counted |= whole;
			y = &t->types.v[type_of_name(t, which)];
			*(uint64_t *)((char *)y + counted[k].member) = p->counters.v[i].value;
			break;
		}
	}
}

static void add_poll(struct taskwakers *m, const struct profile_sample *s, uint64_t ns, uint64_t count)
{
	struct tasks_type *y = &m->t->types.v[m->type];

	y->polls += count;
	y->poll_ns += ns;
	if (count == 1)
		y->longest_ns = MAX(y->longest_ns, ns);
	m->t->workers += !m->polled[s->thread];
	m->polled[s->thread] = 1;
}

/* What a thread did while it polled, by the type of task on its stack. */
static void add_work(struct taskwakers *m, size_t i, enum role role, const struct select_options *o)
{
	const struct profile_sample *s = &m->p->samples.v[i];
	enum cause cause = role == ROLE_CPU ? CAUSE_CPU : o->causes ? causes_of(o->causes, s) : CAUSE_UNKNOWN;
	uint32_t type = taskwakers_type_of_stack(m, s->stack);

	if (type != TASKS_NONE)
		m->t->types.v[type].by_cause[cause] += select_value(m->p, i, role, o->from_ns, o->to_ns);
}

static void read_samples(struct taskwakers *m, const struct select_options *o, const uint8_t *picked)
{
	const struct profile *p = m->p;
	uint32_t poll = profile_find_event(p, "poll", "ns"), await = profile_find_event(p, "await", "ns"),
		 queue = profile_find_event(p, "taskqueue", "ns"), spawn = profile_find_event(p, "spawn", "tasks");

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		enum role role = m->roles[s->event];
		uint64_t value, count = s->count ? s->count : 1;

		if (role != ROLE_OTHER && picked[s->thread])
			add_work(m, i, role, o);
		if ((s->event != poll && s->event != await && s->event != queue && s->event != spawn) || !s->stack ||
		    !picked[s->thread])
			continue;
		value = select_value(p, i, ROLE_OTHER, o->from_ns, o->to_ns);
		if (!value)
			continue;
		if (value < s->value) /* a part of an old slot's sum */
			count = MAX((unsigned __int128)count * value / s->value, 1);
		m->type = taskwakers_type(m, s->event == spawn ? p->stacks.v[s->stack].frame : taskwakers_root(p, s->stack));
		if (m->type == TASKS_NONE)
			continue;
		if (s->event == poll)
			add_poll(m, s, value, count);
		else if (s->event == await)
			taskwakers_add_await(m, s, value, count);
		else if (s->event == queue)
			taskwakers_add_queue(m, s, value, count);
		else
			taskwakers_add_spawn(m, s, value);
	}
}

/* Long polls and long awaits, which were kept one by one. */
static void read_rows(struct taskwakers *m, const struct select_options *o, const uint8_t *picked)
{
	const struct profile *p = m->p;
	uint64_t to = o->to_ns ? o->to_ns : UINT64_MAX;

	for (size_t i = 0; i < p->marks.n; i++) {
		const struct profile_mark *mark = &p->marks.v[i];
		struct tasks_type *y;

		if (strcmp(profile_str(p, mark->kind), "long poll") || mark->end_ns <= o->from_ns || mark->start_ns >= to ||
		    (mark->thread < p->threads.n && !picked[mark->thread]))
			continue;
		y = &m->t->types.v[type_of_name(m->t, profile_str(p, mark->name))];
		y->long_polls++;
		y->longest_ns = MAX(y->longest_ns, mark->end_ns - mark->start_ns);
	}
	for (size_t i = 0; i < p->taskwakes.n; i++) {
		const struct profile_taskwake *w = &p->taskwakes.v[i];

		if (picked[w->thread] && w->time_ns >= o->from_ns && w->time_ns < to)
			taskwakers_add_row(m, w, type_of_name(m->t, profile_str(p, w->type)));
	}
}

static int compare_types(const void *a, const void *b)
{
	const struct tasks_type *x = a, *y = b;

	return ORDER(y->poll_ns + y->queue_ns, x->poll_ns + x->queue_ns) ?: ORDER(y->await_ns, x->await_ns) ?:
	       strcmp(x->name, y->name);
}

/* The order changes the numbers by which types name each other. */
static void sort_types(struct tasks *t)
{
	_cleanup_free_ uint32_t *now = mem_alloc((t->types.n + 1) * sizeof(*now));
	_cleanup_free_ const char **was = mem_alloc((t->types.n + 1) * sizeof(*was));

	for (size_t i = 0; i < t->types.n; i++)
		was[i] = t->types.v[i].name;
	vec_sort(&t->types, compare_types);
	map_clear(&t->by_name);
	for (size_t i = 0; i < t->types.n; i++)
		*map_put(&t->by_name, map_hash_bytes(t->types.v[i].name, strlen(t->types.v[i].name)), 0) = i;
	for (size_t i = 0; i < t->types.n; i++)
		now[i] = tasks_find(t, was[i]);
	for (size_t i = 0; i < t->types.n; i++)
		taskwakers_renumber(&t->types.v[i], now);
}

static void sum_up(struct tasks *t)
{
	for (size_t i = 0; i < t->types.n; i++) {
		struct tasks_type *y = &t->types.v[i];

		y->seen = MAX(y->finished + y->alive, y->spawned);
		t->seen += y->seen;
		t->spawned += y->spawned;
		t->alive += y->alive;
		t->polls += y->polls;
		t->poll_ns += y->poll_ns;
		t->queue_ns += y->queue_ns;
		t->await_ns += y->await_ns;
	}
}

bool tasks_make(struct tasks *t, const struct profile *p, const struct select_options *o, unsigned flags)
{
	_cleanup_free_ uint32_t *of_frame = mem_alloc((p->frames.n + 1) * sizeof(*of_frame));
	_cleanup_free_ uint8_t *polled = mem_alloc(p->threads.n + 1), *picked = NULL;
	_cleanup_free_ enum role *roles = mem_alloc((p->events.n + 1) * sizeof(*roles));
	struct taskwakers m = { .t = t, .p = p, .of_frame = of_frame, .polled = polled, .roles = roles };
	bool whole = !o->from_ns && !o->to_ns && !o->threads && !o->processes && !(flags & TASKS_WINDOW);
	uint64_t end = o->to_ns ? MIN(o->to_ns, select_duration_ns(p)) : select_duration_ns(p);

	*t = (struct tasks){ .lost = profile_counter(p, KEY_TASK_LOST), .vtables = profile_counter(p, KEY_TASK_VTABLES),
			     .version = profile_counter(p, KEY_TASK_VERSION),
			     .long_polls_left_out = profile_counter(p, KEY_TASK_LONG_POLLS_LEFT_OUT),
			     .wakes_left_out = profile_counter(p, KEY_TASK_WAKES_LEFT_OUT),
			     .duration_ns = end > o->from_ns ? end - o->from_ns : 0 };
	if (!tasks_recorded(p) || select_threads(p, o, &picked, NULL))
		return false;
	strtab_init(&t->names);
	idents_init(&t->idents, p, 0);
	for (size_t i = 0; i < p->events.n; i++)
		roles[i] = cause_role(p, i);
	taskwakers_begin(&m);
	read_samples(&m, o, picked);
	take_counters(t, p, whole);
	read_rows(&m, o, picked);
	taskwakers_end(&m);
	sort_types(t);
	sum_up(t);
	return true;
}

void tasks_done(struct tasks *t)
{
	vec_done_each(&t->types, e, vec_done(&e->wakers); vec_done(&e->behind); vec_done(&e->places));
	map_done(&t->by_name);
	if (t->names.n) {
		strtab_done(&t->names);
		idents_done(&t->idents);
	}
}
