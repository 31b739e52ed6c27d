#include "collect/task/taskseries.h"

#include <stddef.h>
#include <string.h>

#include "profile/keys.h"
#include "profile/profile.h"

enum { FINE = 4096 /* slots that have points of their own */, LAG = TASKSERIES_OPEN - 16 };

void taskseries_init(struct taskseries *s, struct profile *p)
{
	*s = (struct taskseries){ .p = p, .queue = profile_series(p, KEY_TASK_QUEUE), .polls = profile_series(p, KEY_TASK_POLLS),
				  .longest = profile_series(p, KEY_TASK_LONGEST_POLL), .busy = profile_series(p, KEY_TASK_BUSY),
				  .quiet = true };
}

void taskseries_done(struct taskseries *s)
{
	vec_done(&s->threads);
}

static void put_points(struct taskseries *s, uint64_t at, const struct taskseries_slot *x)
{
	profile_add_point(s->p, s->queue, at, x->queue_ns);
	profile_add_point(s->p, s->polls, at, x->polls);
	profile_add_point(s->p, s->longest, at, x->longest_ns);
	profile_add_point(s->p, s->busy, at, x->busy_ns);
}

/* How many slots one point stands for, at this time of the recording: a power of two. */
static uint64_t step_at(uint64_t slot)
{
	uint64_t step = 1;

	while (slot / step >= FINE)
		step *= 2;
	return step;
}

static bool is_quiet(const struct taskseries_slot *x)
{
	return !x->queue_ns && !x->busy_ns && !x->polls && !x->longest_ns;
}

/* The points of what was summed, which ends at that time. */
static void write_sum(struct taskseries *s, uint64_t end_ns)
{
	static const struct taskseries_slot zero;
	uint64_t begin_ns = s->begin * TASKSERIES_SLOT_NS;
	bool quiet = is_quiet(&s->sum);

	if (!quiet && s->quiet && s->written_ns < begin_ns)
		put_points(s, begin_ns, &zero);
	if (!quiet || !s->quiet) {
		put_points(s, end_ns, &s->sum);
		s->written_ns = end_ns;
	}
	s->quiet = quiet;
	s->sum = zero;
	s->begin = s->first;
}

static void close_first(struct taskseries *s)
{
	struct taskseries_slot *x = &s->open[s->first % TASKSERIES_OPEN];

	s->sum.queue_ns += x->queue_ns;
	s->sum.busy_ns += x->busy_ns;
	s->sum.polls += x->polls;
	s->sum.longest_ns = MAX(s->sum.longest_ns, x->longest_ns);
	memset(x, 0, sizeof(*x));
	s->first++;
	if (s->first % step_at(s->first - 1) == 0)
		write_sum(s, s->first * TASKSERIES_SLOT_NS);
}

/* The slot of a moment, which is opened; of a moment that is too long ago the oldest. */
static struct taskseries_slot *slot_at(struct taskseries *s, uint64_t time_ns)
{
	uint64_t slot = time_ns / TASKSERIES_SLOT_NS;

	while (slot >= s->first + TASKSERIES_OPEN)
		close_first(s);
	return &s->open[MAX(slot, s->first) % TASKSERIES_OPEN];
}

/* Adds the time to a field of each slot that it touches. */
static void add_span(struct taskseries *s, size_t field, uint64_t begin_ns, uint64_t end_ns)
{
	slot_at(s, end_ns);
	begin_ns = MAX(begin_ns, s->first * TASKSERIES_SLOT_NS);
	while (begin_ns < end_ns) {
		uint64_t to = MIN(end_ns, (begin_ns / TASKSERIES_SLOT_NS + 1) * TASKSERIES_SLOT_NS);

		*(uint64_t *)((char *)slot_at(s, begin_ns) + field) += to - begin_ns;
		begin_ns = to;
	}
}

void taskseries_queue(struct taskseries *s, uint64_t begin_ns, uint64_t end_ns)
{
	add_span(s, offsetof(struct taskseries_slot, queue_ns), begin_ns, end_ns);
}

static struct taskseries_thread *thread_of(struct taskseries *s, uint32_t thread)
{
	while (s->threads.n <= thread)
		vec_push(&s->threads, (struct taskseries_thread){ 0 });
	return &s->threads.v[thread];
}

/* Remembers a poll that is over, in place of those within it. Returns the time of these. */
static uint64_t put_span(struct taskseries_thread *t, uint64_t begin_ns, uint64_t busy_ns)
{
	uint64_t inside = 0;

	while (t->n && t->spans[t->n - 1].begin_ns >= begin_ns)
		inside += t->spans[--t->n].busy_ns;
	if (t->n == TASKSERIES_SPANS) { /* the two oldest become one */
		t->spans[1] = (struct taskseries_span){ t->spans[0].begin_ns, t->spans[0].busy_ns + t->spans[1].busy_ns };
		memmove(t->spans, t->spans + 1, (t->n - 1) * sizeof(*t->spans));
		t->n--;
	}
	t->spans[t->n++] = (struct taskseries_span){ begin_ns, busy_ns };
	return MIN(inside, busy_ns);
}

void taskseries_poll(struct taskseries *s, uint32_t thread, uint64_t begin_ns, uint64_t end_ns, bool aside)
{
	struct taskseries_thread *t = thread_of(s, thread);
	struct taskseries_slot *slot = slot_at(s, end_ns);
	uint64_t inside = put_span(t, begin_ns, end_ns - begin_ns), from = MAX(begin_ns, MIN(t->seen_ns, end_ns));

	slot->polls++;
	if (aside)
		return;
	slot->longest_ns = MAX(slot->longest_ns, end_ns - begin_ns);
	/* The polls within it are counted already: where they were does not matter within a second. */
	add_span(s, offsetof(struct taskseries_slot, busy_ns), from + MIN(inside, end_ns - from), end_ns);
}

void taskseries_under_way(struct taskseries *s, uint32_t thread, uint64_t begin_ns, uint64_t now_ns, bool aside)
{
	struct taskseries_thread *t = thread_of(s, thread);
	struct taskseries_slot *slot;

	if (aside || now_ns <= begin_ns)
		return;
	slot = slot_at(s, now_ns);
	slot->longest_ns = MAX(slot->longest_ns, now_ns - begin_ns);
	add_span(s, offsetof(struct taskseries_slot, busy_ns), MAX(begin_ns, t->seen_ns), now_ns);
	t->seen_ns = MAX(t->seen_ns, now_ns);
}

void taskseries_until(struct taskseries *s, uint64_t time_ns)
{
	while (time_ns / TASKSERIES_SLOT_NS >= s->first + LAG)
		close_first(s);
}

void taskseries_finish(struct taskseries *s, uint64_t end_ns)
{
	while (s->first <= end_ns / TASKSERIES_SLOT_NS)
		close_first(s);
	if (!is_quiet(&s->sum))
		write_sum(s, end_ns);
}
