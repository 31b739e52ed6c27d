#include "tui/window.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/wait/cause.h"
#include "analyze/select.h"

enum {
	MAX_WAKES = 20000,
	MAX_POLLS = 20000, /* long polls of tasks */
	LONG_NS = 50000000, /* waits from here on are kept one by one: they may reach out of the window */
};

void window_init(struct window *w, struct profile *p, uint64_t keep_ns)
{
	*w = (struct window){ .p = p, .keep_ns = keep_ns };
}

void window_done(struct window *w)
{
	vec_done_each(&w->moments, e, free(e->threads));
	vec_done(&w->recent);
	vec_done(&w->open);
	vec_done(&w->all);
	map_done(&w->all_index);
	vec_done(&w->wakes);
	vec_done(&w->taskwakes);
}

static uint64_t key_of(const struct profile_sample *s)
{
	return map_hash(map_pair(s->thread, s->stack)) + s->event;
}

static bool same(const struct profile_sample *a, const struct profile_sample *b)
{
	return a->thread == b->thread && a->stack == b->stack && a->event == b->event;
}

static void add_to(struct profile_sample *to, const struct profile_sample *s)
{
	uint64_t count = (uint64_t)MAX(to->count, 1) + MAX(s->count, 1);

	to->value += s->value;
	to->count = MIN(count, UINT32_MAX);
}

/* Since the start. Keys are hashes: the next one is tried where another sample has it. */
static void add_to_all(struct window *w, const struct profile_sample *s)
{
	for (uint64_t key = key_of(s);; key++) {
		uint64_t *id = map_put(&w->all_index, key, PROFILE_NONE);

		if (*id == PROFILE_NONE) {
			*id = w->all.n;
			vec_push(&w->all, *s);
			w->all.v[*id].count = MAX(s->count, 1);
			return;
		}
		if (same(&w->all.v[*id], s)) {
			add_to(&w->all.v[*id], s);
			return;
		}
	}
}

/* The samples of this round are in recent from first on; index has their places. */
static void add_to_recent(struct window *w, struct map *index, const struct window_sample *s)
{
	for (uint64_t key = key_of(&s->sample);; key++) {
		uint64_t *id = map_put(index, key, PROFILE_NONE);

		if (*id == PROFILE_NONE) {
			*id = w->recent.n;
			vec_push(&w->recent, *s);
			return;
		}
		if (same(&w->recent.v[*id].sample, &s->sample)) {
			add_to(&w->recent.v[*id].sample, &s->sample);
			return;
		}
	}
}

#define KEEP_LAST(list, most)                                                                           \
	do {                                                                                            \
		size_t extra_ = (list)->n > (most) ? (list)->n - (most) : 0;                            \
		if (extra_)                                                                             \
			memmove((list)->v, (list)->v + extra_, ((list)->n - extra_) * sizeof(*(list)->v)); \
		(list)->n -= extra_;                                                                    \
	} while (0)

/* Drops samples that no window reaches any more. A view begins at a moment: all since the oldest kept one
 * is needed. */
static void drop_old(struct window *w, uint64_t now)
{
	uint64_t from = now > w->keep_ns ? now - w->keep_ns : 0;
	size_t old = 0, n = 0;

	while (old + 1 < w->moments.n && w->moments.v[old + 1].time_ns <= from)
		free(w->moments.v[old++].threads);
	if (old)
		memmove(w->moments.v, w->moments.v + old, (w->moments.n - old) * sizeof(*w->moments.v));
	w->moments.n -= old;
	from = w->moments.n ? w->moments.v[0].time_ns : 0;
	for (size_t i = 0; i < w->recent.n; i++)
		if (w->recent.v[i].end_ns >= from)
			w->recent.v[n++] = w->recent.v[i];
	w->recent.n = n;
	KEEP_LAST(&w->wakes, MAX_WAKES);
	KEEP_LAST(&w->taskwakes, MAX_WAKES);
}

static bool is_long_poll(const struct profile *p, const struct profile_mark *m)
{
	return !strcmp(profile_str(p, m->kind), "long poll");
}

/* Keeps the last long polls: there may be many a second, for hours. Blocks and other marks are few, and all stay. */
static void drop_old_polls(struct profile *p)
{
	size_t polls = 0, n = 0;

	if (p->marks.n <= MAX_POLLS)
		return;
	for (size_t i = 0; i < p->marks.n; i++)
		polls += is_long_poll(p, &p->marks.v[i]);
	for (size_t i = 0; i < p->marks.n; i++) {
		if (polls > MAX_POLLS && is_long_poll(p, &p->marks.v[i]))
			polls--;
		else
			p->marks.v[n++] = p->marks.v[i];
	}
	p->marks.n = n;
}

static struct window_sample spanned(const struct profile *p, size_t i, enum role role)
{
	struct window_sample s = { .sample = p->samples.v[i] };

	select_span(p, i, role, &s.begin_ns, &s.end_ns);
	return s;
}

void window_take(struct window *w)
{
	struct profile *p = w->p;
	struct map index = { 0 };
	uint64_t begin = w->taken_ns;

	for (size_t i = 0; i < p->samples.n; i++) {
		struct window_sample s = spanned(p, i, cause_role(p, p->samples.v[i].event));

		w->taken_ns = MAX(w->taken_ns, s.end_ns);
		add_to_all(w, &s.sample);
		if (s.end_ns - s.begin_ns >= LONG_NS || (w->exact && s.end_ns >= begin)) {
			vec_push(&w->recent, s);
			continue;
		}
		/* Sums of a thread may come late: they count as of this round. */
		s.begin_ns = s.end_ns = MAX(s.end_ns, begin);
		add_to_recent(w, &index, &s);
	}
	map_done(&index);
	for (size_t i = 0; i < p->wakes.n; i++)
		vec_push(&w->wakes, p->wakes.v[i]);
	for (size_t i = 0; i < p->taskwakes.n; i++)
		vec_push(&w->taskwakes, p->taskwakes.v[i]);
	vec_clear(&p->samples);
	vec_clear(&p->wakes);
	vec_clear(&p->taskwakes);
	vec_clear(&p->points);
	drop_old(w, w->taken_ns);
	drop_old_polls(p);
}

void window_look(struct window *w)
{
	struct profile *p = w->p;
	struct window_moment m = { .time_ns = p->duration_ns, .thread_count = p->threads.n };

	vec_clear(&w->open);
	for (size_t i = 0; i < p->samples.n; i++)
		vec_push(&w->open, spanned(p, i, cause_role(p, p->samples.v[i].event)));
	vec_clear(&p->samples);
	vec_clear(&p->wakes);
	vec_clear(&p->taskwakes);
	m.threads = mem_alloc((m.thread_count + 1) * sizeof(*m.threads));
	for (size_t i = 0; i < m.thread_count; i++) {
		const struct profile_thread *t = &p->threads.v[i];

		m.threads[i] = (struct window_times){ t->run_ns, t->queue_ns, t->blocked_ns };
	}
	vec_push(&w->moments, m);
	w->taken_ns = MAX(w->taken_ns, p->duration_ns);
	drop_old(w, w->taken_ns);
}

uint64_t window_bytes(const struct window *w)
{
	const struct profile *p = w->p;

	return w->recent.capacity * sizeof(*w->recent.v) + w->all.capacity * sizeof(*w->all.v) +
	       w->all_index.capacity * sizeof(*w->all_index.slots) +
	       p->stacks.capacity * sizeof(*p->stacks.v) + p->frames.capacity * sizeof(*p->frames.v) +
	       p->threads.capacity * sizeof(*p->threads.v) + p->lines.capacity * sizeof(*p->lines.v) +
	       p->stacks.slot_count * 8 + p->frame_index.capacity * sizeof(struct map_slot) +
	       p->strings.n * 100;
}

/* --- views --- */

static uint64_t since(uint64_t time, uint64_t from)
{
	return time > from ? time - from : 0;
}

/* Adds the part of a sample within the view, with times from the view's beginning on. */
static void add_cut(struct profile *p, const struct window_sample *s, uint64_t from)
{
	struct profile_sample sample = s->sample;

	if (s->end_ns < from)
		return;
	if (s->end_ns > s->begin_ns) {
		sample.value = s->end_ns - MAX(s->begin_ns, from);
		if (!sample.value)
			return;
	}
	sample.time_ns = since(s->begin_ns, from);
	profile_add_sample(p, &sample);
}

/* Refreshes are never quite on time: the nearest will do. NULL: the start is. */
static const struct window_moment *moment_near(const struct window *w, uint64_t time_ns)
{
	const struct window_moment *m = NULL;
	uint64_t best = time_ns;

	for (size_t i = 0; i < w->moments.n; i++) {
		uint64_t at = w->moments.v[i].time_ns, away = at > time_ns ? at - time_ns : time_ns - at;

		if (away > best)
			continue;
		best = away;
		m = &w->moments.v[i];
	}
	return m;
}

/* Computes a thread's times within the view: the current ones minus those at its start. */
static void cut_threads(struct profile *p, const struct profile *of, const struct window_moment *m)
{
	uint64_t from = m ? m->time_ns : 0;

	for (size_t i = 0; i < of->threads.n; i++) {
		struct profile_thread t = of->threads.v[i];
		struct window_times was = { 0 };

		if (m && i < m->thread_count)
			was = m->threads[i];
		t.run_ns = since(t.run_ns, was.run_ns);
		t.queue_ns = since(t.queue_ns, was.queue_ns);
		t.blocked_ns = since(t.blocked_ns, was.blocked_ns);
		t.start_ns = since(t.start_ns, from);
		if (t.end_ns && t.end_ns <= from) {
			t.start_ns = t.end_ns = 1; /* before it */
			t.run_ns = t.queue_ns = t.blocked_ns = 0;
		} else if (t.end_ns) {
			t.end_ns = MAX(t.end_ns - from, 1);
		}
		vec_push(&p->threads, t);
	}
}

void view_sync(struct view *v)
{
	struct profile *p = &v->profile;
	struct profile now = *v->of;

	/* The view keeps its own. */
	memcpy(&now.threads, &p->threads, sizeof(now.threads));
	memcpy(&now.samples, &p->samples, sizeof(now.samples));
	memcpy(&now.wakes, &p->wakes, sizeof(now.wakes));
	memcpy(&now.taskwakes, &p->taskwakes, sizeof(now.taskwakes));
	memcpy(&now.marks, &p->marks, sizeof(now.marks));
	memset(&now.points, 0, sizeof(now.points));
	now.start_wall_ns = p->start_wall_ns;
	now.duration_ns = p->duration_ns;
	*p = now;
}

/* Adds the marks that lie wholly within the view. */
static void add_marks(struct profile *p, const struct profile *of, uint64_t from)
{
	for (size_t i = 0; i < of->marks.n; i++) {
		struct profile_mark mark = of->marks.v[i];

		if (mark.start_ns < from)
			continue;
		mark.start_ns -= from;
		mark.end_ns = since(mark.end_ns, from);
		vec_push(&p->marks, mark);
	}
}

void window_view(const struct window *w, uint64_t last_ns, struct view *ret)
{
	uint64_t now = w->p->duration_ns;
	const struct window_moment *m = last_ns && now > last_ns ? moment_near(w, now - last_ns) : NULL;
	uint64_t from = m ? m->time_ns : 0;
	struct profile *p = &ret->profile;

	*ret = (struct view){ .of = w->p };
	p->start_wall_ns = w->p->start_wall_ns + from;
	p->duration_ns = now - from;
	view_sync(ret);
	cut_threads(p, w->p, m);
	add_marks(p, w->p, from);
	if (last_ns)
		for (size_t i = 0; i < w->recent.n; i++)
			add_cut(p, &w->recent.v[i], from);
	else
		for (size_t i = 0; i < w->all.n; i++)
			profile_add_sample(p, &w->all.v[i]);
	for (size_t i = 0; i < w->open.n; i++)
		add_cut(p, &w->open.v[i], from);
	for (size_t i = 0; i < w->wakes.n; i++) {
		struct profile_wake wake = w->wakes.v[i];

		if (wake.time_ns < from)
			continue;
		wake.time_ns -= from;
		profile_add_wake(p, &wake);
	}
	for (size_t i = 0; i < w->taskwakes.n; i++) {
		struct profile_taskwake wake = w->taskwakes.v[i];

		if (wake.time_ns < from)
			continue;
		wake.time_ns -= from;
		profile_add_taskwake(p, &wake);
	}
}

void view_done(struct view *v)
{
	vec_done(&v->profile.marks);
	vec_done(&v->profile.threads);
	vec_done(&v->profile.samples);
	vec_done(&v->profile.wakes);
	vec_done(&v->profile.taskwakes);
	v->of = NULL;
}
