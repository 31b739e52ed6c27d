#include "collect/task/taskrows.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/task/taskseries.h"
#include "profile/keys.h"
#include "profile/profile.h"

#define SLOT_NS   10000000ULL
#define SECOND_NS 1000000000ULL
#define LONG_NS   1000000ULL /* from here on a row of its own */
#define MOST_SCALE 1e12

enum { PAST = 16 };

enum { EVENT_POLL, EVENT_QUEUE, EVENT_AWAIT, EVENT_SPAWN, EVENTS };
enum { HISTOGRAM_POLL, HISTOGRAM_QUEUE, HISTOGRAM_AWAIT, HISTOGRAMS };

/* A wake with a stack. */
struct stacked {
	uint64_t time_ns;
	uint32_t thread, stack; /* stack: below the type's frame */
	double ns, count;       /* that it stands for */
};

struct type {
	uint32_t name;  /* string */
	uint32_t frame, stack; /* 0: not made yet, see type_of() */
	bool blocking;
	/* Awaits that ended and are in no sample yet, exactly; and the wakes with a stack that share them. */
	uint64_t await_ns, awaits;
	uint64_t await_owed; /* time in samples that was not awaited after all */
	double stacked_ns, stacked_count;
	VEC(struct stacked) stacked;
	uint32_t thread; /* of the last wake or poll */
};

struct past {
	uint64_t begin_ns, end_ns;
	uint32_t type;
};

/* What a thread polled last. */
struct thread {
	struct past past[PAST];
	unsigned n; /* so far; the last ones are there */
};

struct taskrows {
	struct profile *p;
	uint64_t long_poll_ns;
	uint32_t events[EVENTS];
	uint32_t idle, not_ended; /* frames */
	uint32_t long_poll;       /* string */
	VEC(struct type) types;
	struct map by_name;       /* string -> type */
	VEC(struct thread) threads; /* by the profile's number */
	struct map below;         /* type and stack -> the stack below the type's frame */
	uint64_t slot;            /* that is summed now */
	VEC(struct profile_sample) sums;
	struct map sums_index;
	VEC(struct profile_taskwake) wakes; /* of this slot */
	uint64_t second;
	VEC(struct profile_mark) marks;     /* of this second */
	uint64_t histograms[HISTOGRAMS][64];
	struct taskseries series;
};

struct taskrows *taskrows_new(struct profile *p, uint64_t long_poll_ns)
{
	struct taskrows *r = mem_alloc(sizeof(*r));

	r->p = p;
	r->long_poll_ns = long_poll_ns;
	r->events[EVENT_POLL] = profile_add_event(p, "poll", "ns", "time in polls of tasks, by type", 0);
	r->events[EVENT_AWAIT] = profile_add_event(p, "await", "ns", "time that tasks awaited something, by type and by who ended it", 0);
	r->events[EVENT_QUEUE] = profile_add_event(p, "taskqueue", "ns", "time that tasks were in the runtime's queue, by type and by "
									"what their thread did meanwhile", 0);
	r->events[EVENT_SPAWN] = profile_add_event(p, "spawn", "tasks", "tasks that were spawned, by where and by type", 1);
	r->idle = profile_named_frame(p, PROFILE_NONE, FRAME_USER, "[idle worker]");
	r->not_ended = profile_named_frame(p, PROFILE_NONE, FRAME_USER, "[not ended]");
	r->long_poll = profile_string(p, "long poll");
	taskseries_init(&r->series, p);
	return r;
}

void taskrows_free(struct taskrows *r)
{
	if (!r)
		return;
	vec_done_each(&r->types, t, vec_done(&t->stacked));
	map_done(&r->by_name);
	vec_done(&r->threads);
	map_done(&r->below);
	vec_done(&r->sums);
	map_done(&r->sums_index);
	vec_done(&r->wakes);
	vec_done(&r->marks);
	taskseries_done(&r->series);
	free(r);
}

uint32_t taskrows_type(struct taskrows *r, const char *name, bool blocking)
{
	struct type t = { .name = profile_string(r->p, name), .blocking = blocking };
	uint64_t *at = map_put(&r->by_name, t.name, r->types.n);

	if (*at < r->types.n)
		return *at;
	vec_push(&r->types, t);
	return r->types.n - 1;
}

/* The type, with its frame: most types of a program are never seen, and need none. */
static struct type *type_of(struct taskrows *r, uint32_t type)
{
	struct type *t = &r->types.v[type];
	_cleanup_free_ char *label = t->stack ? NULL : mem_printf("task %s", profile_str(r->p, t->name));

	if (!t->stack) {
		t->frame = profile_named_frame(r->p, PROFILE_NONE, FRAME_USER, label);
		t->stack = profile_stack(r->p, 0, t->frame);
	}
	return t;
}

const char *taskrows_name(const struct taskrows *r, uint32_t type)
{
	return profile_str(r->p, r->types.v[type].name);
}

bool taskrows_blocking(const struct taskrows *r, uint32_t type)
{
	return r->types.v[type].blocking;
}

/* --- samples --- */

static void add_sample(struct taskrows *r, unsigned event, uint32_t thread, uint32_t stack, uint64_t time_ns, uint64_t value,
		       uint64_t count)
{
	profile_add_sample(r->p, &(struct profile_sample){ .event = r->events[event], .thread = thread, .stack = stack,
							   .time_ns = time_ns, .value = value, .count = MIN(count, UINT32_MAX) });
}

/* Adds it to the sum of this slot. */
static void sum(struct taskrows *r, unsigned event, uint32_t thread, uint32_t stack, uint64_t value)
{
	uint64_t *at = map_put(&r->sums_index, map_pair(thread, stack) ^ (uint64_t)event << 61, r->sums.n);

	if (*at == r->sums.n)
		vec_push(&r->sums, (struct profile_sample){ .event = r->events[event], .thread = thread, .stack = stack });
	r->sums.v[*at].value += value;
	r->sums.v[*at].count++;
}

static int compare_wakes(const void *a, const void *b)
{
	const struct profile_taskwake *x = a, *y = b;

	return ORDER(y->await_ns, x->await_ns) ?: ORDER(x->time_ns, y->time_ns);
}

static void end_slot(struct taskrows *r)
{
	for (size_t i = 0; i < r->sums.n; i++) {
		r->sums.v[i].time_ns = r->slot * SLOT_NS;
		profile_add_sample(r->p, &r->sums.v[i]);
	}
	vec_clear(&r->sums);
	map_clear(&r->sums_index);
	if (r->wakes.n > TASKROWS_WAKES)
		vec_sort(&r->wakes, compare_wakes);
	for (size_t i = 0; i < MIN(r->wakes.n, (size_t)TASKROWS_WAKES); i++)
		profile_add_taskwake(r->p, &r->wakes.v[i]);
	if (r->wakes.n > TASKROWS_WAKES)
		profile_count(r->p, KEY_TASK_WAKES_LEFT_OUT, r->wakes.n - TASKROWS_WAKES);
	vec_clear(&r->wakes);
}

/* Events are told in order, but for those that began before others which were over first. */
static void enter_slot(struct taskrows *r, uint64_t time_ns)
{
	if (time_ns / SLOT_NS <= r->slot)
		return;
	end_slot(r);
	r->slot = time_ns / SLOT_NS;
}

static void count_in(struct taskrows *r, unsigned histogram, uint64_t ns)
{
	r->histograms[histogram][ns ? 63 - __builtin_clzll(ns) : 0]++;
}

/* --- polls, and the queue before them --- */

static struct thread *thread_of(struct taskrows *r, uint32_t thread)
{
	while (r->threads.n <= thread)
		vec_push(&r->threads, (struct thread){ 0 });
	return &r->threads.v[thread];
}

static uint64_t overlap(const struct past *p, uint64_t from, uint64_t to)
{
	uint64_t begin = MAX(p->begin_ns, from), end = MIN(p->end_ns, to);

	return end > begin ? end - begin : 0;
}

/* The type that a thread polled for most of a time; PROFILE_NONE: it polled nothing for longer. Of a time in which it polled
 * more often than is remembered the last part speaks for all of it. */
static uint32_t polled_meanwhile(const struct thread *t, uint64_t from, uint64_t to)
{
	struct past of[PAST]; /* types, each with the time of its polls as end_ns */
	unsigned types = 0, back, best = 0;
	uint64_t idle;

	if (t->n > PAST)
		from = MAX(from, t->past[t->n % PAST].begin_ns);
	idle = to > from ? to - from : 0;
	/* The newest first: the ends of older ones are earlier. */
	for (back = 1; back <= MIN(t->n, (unsigned)PAST) && t->past[(t->n - back) % PAST].end_ns > from; back++) {
		const struct past *p = &t->past[(t->n - back) % PAST];
		uint64_t ns = overlap(p, from, to);
		unsigned k = 0;

		while (k < types && of[k].type != p->type)
			k++;
		if (k == types)
			of[types++] = (struct past){ .type = p->type };
		of[k].end_ns += ns;
		idle -= MIN(idle, ns);
		if (of[k].end_ns > of[best].end_ns)
			best = k;
	}
	return types && of[best].end_ns > idle ? of[best].type : PROFILE_NONE;
}

void taskrows_queue(struct taskrows *r, uint32_t type, uint32_t thread, uint64_t begin_ns, uint64_t ns)
{
	uint64_t end_ns = begin_ns + ns;
	uint32_t other, stack;

	count_in(r, HISTOGRAM_QUEUE, ns);
	if (!ns)
		return;
	other = polled_meanwhile(thread_of(r, thread), begin_ns, end_ns);
	stack = profile_stack(r->p, type_of(r, type)->stack, other == PROFILE_NONE ? r->idle : type_of(r, other)->frame);
	taskseries_queue(&r->series, begin_ns, end_ns);
	enter_slot(r, end_ns);
	if (ns >= LONG_NS)
		add_sample(r, EVENT_QUEUE, thread, stack, end_ns, ns, 1);
	else
		sum(r, EVENT_QUEUE, thread, stack, ns);
}

void taskrows_poll(struct taskrows *r, uint32_t type, uint32_t thread, uint64_t begin_ns, uint64_t ns, uint64_t own_ns)
{
	struct thread *t = thread_of(r, thread);
	struct type *x = type_of(r, type);

	t->past[t->n++ % PAST] = (struct past){ begin_ns, begin_ns + ns, type };
	x->thread = thread;
	count_in(r, HISTOGRAM_POLL, ns);
	taskseries_poll(&r->series, thread, begin_ns, begin_ns + ns, x->blocking);
	enter_slot(r, begin_ns + ns);
	if (ns >= LONG_NS)
		add_sample(r, EVENT_POLL, thread, x->stack, begin_ns, own_ns, 1);
	else
		sum(r, EVENT_POLL, thread, x->stack, own_ns);
	if (ns >= r->long_poll_ns && !x->blocking)
		vec_push(&r->marks, (struct profile_mark){ .start_ns = begin_ns, .end_ns = begin_ns + ns, .name = x->name,
							   .kind = r->long_poll, .thread = thread });
}

void taskrows_under_way(struct taskrows *r, uint32_t type, uint32_t thread, uint64_t begin_ns, uint64_t now_ns)
{
	taskseries_under_way(&r->series, thread, begin_ns, now_ns, r->types.v[type].blocking);
}

/* --- awaits --- */

/* The frames of a stack below that of its type. */
static uint32_t put_below(struct taskrows *r, uint32_t parent, uint32_t stack)
{
	VEC(uint32_t) frames = { 0 };

	for (; stack; stack = r->p->stacks.v[stack].parent)
		vec_push(&frames, r->p->stacks.v[stack].frame);
	for (size_t i = frames.n; i-- > 0;)
		parent = profile_stack(r->p, parent, frames.v[i]);
	vec_done(&frames);
	return parent;
}

static uint32_t stack_below(struct taskrows *r, uint32_t type, uint32_t stack)
{
	uint64_t *at = map_put(&r->below, map_pair(type, stack), 0);

	if (!*at)
		*at = put_below(r, type_of(r, type)->stack, stack);
	return *at;
}

void taskrows_await(struct taskrows *r, const struct taskrows_await *a)
{
	struct type *t = type_of(r, a->type);
	/* It comes of figures that the target writes. */
	double scale = a->scale >= 1 && a->scale <= MOST_SCALE ? a->scale : 1;

	count_in(r, HISTOGRAM_AWAIT, a->ns);
	t->await_ns += a->ns - MIN(t->await_owed, a->ns);
	t->await_owed -= MIN(t->await_owed, a->ns);
	t->awaits++;
	t->thread = a->waker;
	if (!a->stack || !a->ns)
		return;
	t->stacked_ns += a->ns * scale;
	t->stacked_count += scale;
	vec_push(&t->stacked, (struct stacked){ a->woken_ns, a->waker, stack_below(r, a->type, a->stack), a->ns * scale, scale });
}

void taskrows_await_less(struct taskrows *r, uint32_t type, uint64_t ns)
{
	struct type *t = &r->types.v[type];
	uint64_t now = MIN(t->await_ns, ns);

	t->await_ns -= now;
	t->await_owed += ns - now;
}

void taskrows_wake(struct taskrows *r, const struct profile_taskwake *wake)
{
	vec_push(&r->wakes, *wake);
}

/* The wakes with a stack share what was awaited, so that nothing is lost in rounding. */
static void share_out(struct taskrows *r, struct type *t)
{
	double ns = 0, count = 0;
	uint64_t given_ns = 0, given = 0;

	for (size_t i = 0; i < t->stacked.n; i++) {
		const struct stacked *x = &t->stacked.v[i];
		bool last = i + 1 == t->stacked.n;
		uint64_t to_ns, to;

		ns += x->ns;
		count += x->count;
		to_ns = last ? t->await_ns : (uint64_t)MIN(t->await_ns * (ns / t->stacked_ns), (double)t->await_ns);
		to = last ? t->awaits : (uint64_t)MIN(t->awaits * (count / t->stacked_count), (double)t->awaits);
		to_ns = MAX(to_ns, given_ns);
		to = MAX(to, given);
		if (to_ns > given_ns)
			add_sample(r, EVENT_AWAIT, x->thread, x->stack, x->time_ns, to_ns - given_ns, MAX(to - given, 1ULL));
		given_ns = to_ns;
		given = to;
	}
	vec_clear(&t->stacked);
	t->await_ns = t->awaits = 0;
	t->stacked_ns = t->stacked_count = 0;
}

void taskrows_not_ended(struct taskrows *r, uint32_t type, bool queued, uint64_t end_ns, uint64_t ns, uint64_t count)
{
	struct type *t = ns ? type_of(r, type) : NULL;

	if (ns)
		add_sample(r, queued ? EVENT_QUEUE : EVENT_AWAIT, t->thread, profile_stack(r->p, t->stack, r->not_ended), end_ns, ns,
			   count);
}

/* --- spawns --- */

void taskrows_spawn(struct taskrows *r, uint32_t type, uint32_t thread, uint64_t time_ns, uint32_t stack)
{
	enter_slot(r, time_ns);
	sum(r, EVENT_SPAWN, thread, profile_stack(r->p, stack, type_of(r, type)->frame), 1);
}

/* --- time goes on --- */

static int compare_marks(const void *a, const void *b)
{
	const struct profile_mark *x = a, *y = b;

	return ORDER(y->end_ns - y->start_ns, x->end_ns - x->start_ns) ?: ORDER(x->start_ns, y->start_ns);
}

static void end_second(struct taskrows *r)
{
	if (r->marks.n > TASKROWS_MARKS)
		vec_sort(&r->marks, compare_marks);
	for (size_t i = 0; i < MIN(r->marks.n, (size_t)TASKROWS_MARKS); i++)
		profile_add_mark(r->p, &r->marks.v[i]);
	if (r->marks.n > TASKROWS_MARKS)
		profile_count(r->p, KEY_TASK_LONG_POLLS_LEFT_OUT, r->marks.n - TASKROWS_MARKS);
	vec_clear(&r->marks);
	for (size_t i = 0; i < r->types.n; i++)
		if (r->types.v[i].stacked.n)
			share_out(r, &r->types.v[i]);
}

static void note_histogram(struct taskrows *r, unsigned which, const char *key)
{
	struct profile_histogram *h = profile_histogram(r->p, key);

	for (size_t i = 0; i < ARRAY_LEN(h->counts); i++)
		h->counts[i] += r->histograms[which][i];
	memset(r->histograms[which], 0, sizeof(r->histograms[which]));
}

static void note_histograms(struct taskrows *r)
{
	note_histogram(r, HISTOGRAM_POLL, KEY_TASK_POLL_LATENCY);
	note_histogram(r, HISTOGRAM_QUEUE, KEY_TASK_QUEUE_LATENCY);
	note_histogram(r, HISTOGRAM_AWAIT, KEY_TASK_AWAIT_LATENCY);
}

void taskrows_until(struct taskrows *r, uint64_t time_ns)
{
	enter_slot(r, time_ns);
	taskseries_until(&r->series, time_ns);
	if (time_ns / SECOND_NS <= r->second)
		return;
	end_second(r);
	note_histograms(r);
	r->second = time_ns / SECOND_NS;
}

void taskrows_finish(struct taskrows *r, uint64_t end_ns)
{
	end_slot(r);
	end_second(r);
	/* Awaits of which no wake had a stack. */
	for (size_t i = 0; i < r->types.n; i++) {
		struct type *t = &r->types.v[i];

		if (t->await_ns)
			add_sample(r, EVENT_AWAIT, t->thread, t->stack, end_ns, t->await_ns, t->awaits);
		t->await_ns = t->awaits = 0;
	}
	note_histograms(r);
	taskseries_finish(&r->series, end_ns);
}
