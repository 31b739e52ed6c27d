#include "collect/task/taskstate.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/task/taskrows.h"
#include "profile/keys.h"
#include "profile/profile.h"

#define SECOND_NS 1000000000ULL
#define GONE_NS   100000000ULL /* after its end a task is kept so long: its last poll may come late */

enum { MOST_SPAWNS = 1 << 17 /* of a type, without a first poll yet */, GAPS = 8 };

struct wake {
	uint64_t time_ns;
	uint64_t waker_task; /* as its process numbers it, 0: none. Its first event may come later */
	uint32_t waker;      /* thread */
	uint32_t stack;
	double scale;
};

/* The time before a poll since the one before, as it was taken to be: awaiting up to the wake (0: there was none), then in a queue. */
struct gap {
	uint64_t from_ns, wake_ns, to_ns;
	uint64_t end_ns; /* where the poll after it begins; to_ns is less once it is known that the gap was shorter */
};

/* How much is known of a task's past. */
enum past {
	PAST_NONE,  /* no poll of it is known */
	PAST_WOKEN, /* nor a spawn: its first event was a wake, so it had been polled before the recording */
	PAST_POLLED,
};

struct task {
	uint64_t task, header;
	uint32_t process, type, number, vtable;
	enum past past;
	uint64_t birth_ns;  /* from here on its time counts */
	uint64_t since_ns;  /* end of its last poll, or birth */
	struct wake wakes[2]; /* that no poll has followed yet: two where the first poll after one is not over */
	unsigned wake_count;
	uint64_t last_ns;       /* begin of the last poll that was told */
	struct gap gaps[GAPS];  /* before the last polls */
	unsigned gap_count;     /* so far */
	bool used;
	bool gone;          /* since since_ns, or the wake: only its last poll may still come */
	uint64_t gone_ns;
	uint64_t asked_ns;
};

struct spawn {
	uint64_t time_ns;
	uint32_t process;
};

struct total {
	bool counted;       /* each spawn is told */
	uint64_t spawned, finished, alive, polls, wakes, poll_ns, poll_max_ns, queue_ns, await_ns, wall_ns;
	VEC(struct spawn) spawns; /* that no first poll has followed yet, by time */
	uint64_t open_ns, open;     /* awaits that had not ended */
	uint64_t queued_ns, queued; /* times in a queue that no poll ended */
	uint64_t queue_owed;        /* time in samples of taskqueue that turned out to be a poll's */
};

struct process {
	uint64_t begin_ns;
	bool ended;
};

struct taskstate {
	struct profile *p;
	struct taskrows *rows;
	VEC(struct process) processes;
	VEC(struct total) types; /* as rows' */
	VEC(struct task) tasks;
	VEC(uint32_t) unused;
	struct map index;        /* task_key() -> task */
	uint32_t numbers;        /* given so far */
	uint64_t now_ns;         /* up to here all is told */
	uint64_t no_room;
};

struct taskstate *taskstate_new(struct profile *p, uint64_t long_poll_ns)
{
	struct taskstate *t = mem_alloc(sizeof(*t));

	t->p = p;
	t->rows = taskrows_new(p, long_poll_ns);
	profile_count_set(p, KEY_TASK_LONG_POLL_NS, long_poll_ns);
	return t;
}

void taskstate_free(struct taskstate *t)
{
	if (!t)
		return;
	taskrows_free(t->rows);
	vec_done(&t->processes);
	vec_done_each(&t->types, x, vec_done(&x->spawns));
	vec_done(&t->tasks);
	vec_done(&t->unused);
	map_done(&t->index);
	free(t);
}

uint32_t taskstate_process(struct taskstate *t, uint64_t begin_ns)
{
	vec_push(&t->processes, (struct process){ .begin_ns = begin_ns });
	return t->processes.n - 1;
}

uint32_t taskstate_type(struct taskstate *t, const char *name, bool blocking, bool counted)
{
	uint32_t type = taskrows_type(t->rows, name, blocking);

	if (type == t->types.n)
		vec_push(&t->types, (struct total){ .counted = counted });
	/* Where one of two vtables of a type tells of its spawns and the other one does not, they cannot be counted. */
	t->types.v[type].counted &= counted;
	return type;
}

/* --- the table of tasks --- */

/* Numbers are small, and addresses have 47 bits. */
static uint64_t task_key(uint32_t process, uint64_t task)
{
	return task ^ (uint64_t)process << 48;
}

static struct task *find(const struct taskstate *t, uint32_t process, uint64_t task)
{
	uint64_t *at = map_get(&t->index, task_key(process, task));

	return at ? &t->tasks.v[*at] : NULL;
}

/* NULL: there are too many. */
static struct task *add(struct taskstate *t, uint32_t process, uint64_t task, uint64_t header, uint32_t type)
{
	uint32_t at;

	if (!t->unused.n && t->tasks.n == TASKSTATE_TASKS) {
		t->no_room++;
		return NULL;
	}
	if (t->unused.n) {
		at = t->unused.v[--t->unused.n];
	} else {
		at = t->tasks.n;
		vec_push(&t->tasks, (struct task){ 0 });
	}
	*map_put(&t->index, task_key(process, task), at) = at;
	t->tasks.v[at] = (struct task){ .task = task, .header = header, .process = process, .type = type, .number = ++t->numbers,
					.used = true };
	return &t->tasks.v[at];
}

static void forget(struct taskstate *t, struct task *x)
{
	map_remove(&t->index, task_key(x->process, x->task));
	x->used = false;
	vec_push(&t->unused, x - t->tasks.v);
}

/* --- awaits and queues --- */

static uint64_t between(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

/* The await that a wake ended is over; the task was in the queue for queue_ns from then on. */
static void end_await(struct taskstate *t, const struct task *x, const struct wake *w)
{
	uint64_t ns = between(x->since_ns, w->time_ns);

	t->types.v[x->type].await_ns += ns;
	taskrows_await(t->rows, &(struct taskrows_await){ .type = x->type, .waker = w->waker, .woken_ns = w->time_ns, .ns = ns,
							  .stack = w->stack, .scale = w->scale });
}

static void keep_await(struct taskstate *t, const struct task *x, const struct wake *w, uint32_t thread, uint64_t queue_ns)
{
	const struct task *waker = w->waker_task ? find(t, x->process, w->waker_task) : NULL;
	uint64_t ns = between(x->since_ns, w->time_ns);

	if (ns < TASKROWS_LEAST_NS)
		return;
	taskrows_wake(t->rows, &(struct profile_taskwake){
		.time_ns = w->time_ns, .await_ns = ns, .queue_ns = queue_ns, .task = x->number, .thread = thread, .waker = w->waker,
		.type = profile_string(t->p, taskrows_name(t->rows, x->type)), .waker_task = waker ? waker->number : 0,
		.waker_type = waker ? profile_string(t->p, taskrows_name(t->rows, waker->type)) : 0,
		.waker_stack = w->stack });
}

static void end_queue(struct taskstate *t, const struct task *x, uint32_t thread, uint64_t from, uint64_t to)
{
	struct total *total = &t->types.v[x->type];
	uint64_t ns = between(from, to), owed = MIN(total->queue_owed, ns);

	total->queue_ns += ns;
	total->queue_owed -= owed;
	taskrows_queue(t->rows, x->type, thread, from + owed, ns - owed);
}

/* No poll ended its time in a queue. */
static void leave_queued(struct total *total, uint64_t from, uint64_t to)
{
	uint64_t ns = between(from, to);

	total->queue_ns += ns;
	total->queued_ns += ns;
	total->queued++;
}

/* --- spawns --- */

void taskstate_spawn(struct taskstate *t, uint32_t process, uint32_t type, uint32_t thread, uint64_t time_ns, uint32_t stack)
{
	struct total *x = &t->types.v[type];
	size_t at;

	taskrows_spawn(t->rows, type, thread, time_ns, stack);
	if (!x->counted)
		return;
	x->spawned++;
	if (x->spawns.n == MOST_SPAWNS) { /* nobody polls them: the older half is forgotten */
		x->spawns.n /= 2;
		memmove(x->spawns.v, x->spawns.v + x->spawns.n, x->spawns.n * sizeof(*x->spawns.v));
	}
	vec_push(&x->spawns, (struct spawn){ 0 });
	/* Nearly in order. */
	for (at = x->spawns.n - 1; at && x->spawns.v[at - 1].time_ns > time_ns; at--)
		x->spawns.v[at] = x->spawns.v[at - 1];
	x->spawns.v[at] = (struct spawn){ time_ns, process };
}

void taskstate_stop_counting(struct taskstate *t)
{
	for (size_t i = 0; i < t->types.n; i++) {
		t->types.v[i].counted = false;
		vec_clear(&t->types.v[i].spawns);
	}
}

/* The last spawn of a process before a moment, which is used up; false: there is none. */
static bool take_spawn(struct total *x, uint32_t process, uint64_t before_ns, uint64_t *ret)
{
	size_t at = x->spawns.n;

	while (at && (x->spawns.v[at - 1].time_ns > before_ns || x->spawns.v[at - 1].process != process))
		at--;
	if (!at)
		return false;
	*ret = x->spawns.v[at - 1].time_ns;
	x->spawns.n--;
	memmove(x->spawns.v + at - 1, x->spawns.v + at, (x->spawns.n - (at - 1)) * sizeof(*x->spawns.v));
	return true;
}

/* The first poll that is known of a task begins. */
static void begin_life(struct taskstate *t, struct task *x, uint64_t poll_ns)
{
	struct total *total = &t->types.v[x->type];

	x->past = PAST_POLLED;
	if (total->counted && take_spawn(total, x->process, poll_ns, &x->birth_ns)) {
		x->since_ns = x->birth_ns;
		return;
	}
	/* It was there before, and in a queue; or nobody tells of its spawn. */
	x->birth_ns = x->since_ns = poll_ns;
	total->spawned += !total->counted;
}

/* --- events --- */

static void count_poll(struct taskstate *t, const struct task *x, const struct taskstate_event *e, uint64_t own_ns)
{
	struct total *total = &t->types.v[x->type];

	total->polls++;
	total->poll_ns += own_ns;
	total->poll_max_ns = MAX(total->poll_max_ns, e->duration_ns);
	taskrows_poll(t->rows, x->type, e->thread, e->time_ns, e->duration_ns, own_ns);
}

/* The gap before the poll that followed one which was over later; NULL: it is too long ago. */
static struct gap *find_gap(struct task *x, uint64_t begin_ns)
{
	unsigned n = MIN(x->gap_count, (unsigned)GAPS), oldest = x->gap_count > GAPS ? x->gap_count % GAPS : 0;

	for (unsigned i = 0; i < n; i++) {
		struct gap *g = &x->gaps[(oldest + i) % GAPS];

		if (begin_ns < g->end_ns)
			return i || x->gap_count <= GAPS || g->from_ns <= begin_ns ? g : NULL;
	}
	return NULL;
}

/* The time from its begin to that of the next poll was its. */
static void take_late_poll(struct taskstate *t, struct task *x, const struct taskstate_event *e)
{
	struct total *total = &t->types.v[x->type];
	struct gap none = { 0 }, *gap = find_gap(x, e->time_ns) ?: &none;
	uint64_t from = MAX(e->time_ns, gap->from_ns), own_ns = between(from, MIN(e->time_ns + e->duration_ns, gap->to_ns));
	uint64_t awaited = MIN(between(from, gap->wake_ns), own_ns);

	total->await_ns -= awaited;
	total->queue_ns -= own_ns - awaited;
	total->queue_owed += own_ns - awaited;
	taskrows_await_less(t->rows, x->type, awaited);
	/* A wake after its begin was for the next poll: before it there was none, so it was in the queue. */
	if (gap->wake_ns > from) {
		uint64_t queued = between(gap->from_ns, from);

		total->await_ns -= queued;
		taskrows_await_less(t->rows, x->type, queued);
		end_queue(t, x, e->thread, gap->from_ns, from);
		gap->wake_ns = 0;
	}
	count_poll(t, x, e, own_ns);
	gap->to_ns = MIN(gap->to_ns, from);
	x->asked_ns = 0;
}

static void take_poll(struct taskstate *t, struct task *x, const struct taskstate_event *e)
{
	uint64_t begin = e->time_ns, end = begin + e->duration_ns;
	bool woken;

	if (x->past == PAST_POLLED && begin < x->last_ns) {
		take_late_poll(t, x, e);
		return;
	}
	woken = x->wake_count && x->wakes[0].time_ns <= begin;
	/* A wake that came before its first poll was over is no sign of an earlier life. */
	if (x->past == PAST_NONE || (x->past == PAST_WOKEN && !woken))
		begin_life(t, x, begin);
	x->past = PAST_POLLED;
	x->last_ns = begin;
	x->gaps[x->gap_count++ % GAPS] = (struct gap){ x->since_ns, woken ? x->wakes[0].time_ns : 0, begin, begin };
	if (woken) {
		const struct wake *w = &x->wakes[0];
		uint64_t queued = MAX(w->time_ns, x->since_ns);

		end_await(t, x, w);
		end_queue(t, x, e->thread, queued, begin);
		keep_await(t, x, w, e->thread, between(queued, begin));
		x->wakes[0] = x->wakes[1];
		x->wake_count--;
		/* Two before one poll: the poll between them comes later, or was lost. */
		if (x->wake_count && x->wakes[0].time_ns <= begin)
			x->wake_count = 0;
	} else {
		end_queue(t, x, e->thread, x->since_ns, begin);
	}
	count_poll(t, x, e, between(MAX(begin, x->since_ns), end));
	x->since_ns = MAX(x->since_ns, end);
	x->asked_ns = 0;
}

static void take_wake(struct taskstate *t, const struct taskstate_event *e)
{
	struct task *x = find(t, e->process, e->task) ?: add(t, e->process, e->task, e->header, e->type);

	t->types.v[e->type].wakes++;
	if (!x)
		return;
	if (x->past == PAST_NONE) {
		x->past = PAST_WOKEN;
		x->birth_ns = x->since_ns = t->processes.v[e->process].begin_ns;
	}
	x->wakes[MIN(x->wake_count, 1u)] = (struct wake){ .time_ns = e->time_ns, .waker = e->thread, .waker_task = e->waker,
							  .stack = e->stack, .scale = e->scale };
	x->wake_count = MIN(x->wake_count + 1, 2u);
}

/* Its time ends with its last poll, or with the moment at which it was dropped from a queue. */
static void end_life(struct taskstate *t, struct task *x)
{
	struct total *total = &t->types.v[x->type];
	uint64_t end = x->since_ns;

	if (x->wake_count) {
		const struct wake *w = &x->wakes[0];

		end = MAX(x->gone_ns, MAX(w->time_ns, x->since_ns));
		end_await(t, x, w);
		leave_queued(total, MAX(w->time_ns, x->since_ns), end);
	}
	total->finished++;
	total->wall_ns += between(x->birth_ns, end);
	forget(t, x);
}

void taskstate_event(struct taskstate *t, const struct taskstate_event *e)
{
	struct task *x;

	switch (e->what) {
	case TASKSTATE_POLL:
		x = find(t, e->process, e->task) ?: add(t, e->process, e->task, e->header, e->type);
		if (x) {
			x->header = e->header;
			x->vtable = e->vtable;
			take_poll(t, x, e);
		}
		break;
	case TASKSTATE_WAKE:
		take_wake(t, e);
		break;
	case TASKSTATE_GONE:
		x = find(t, e->process, e->task);
		if (x && !x->gone) {
			x->gone = true;
			x->gone_ns = e->time_ns;
		}
		break;
	}
}

void taskstate_meet(struct taskstate *t, uint32_t process, uint64_t task, uint32_t type)
{
	if (!find(t, process, task))
		add(t, process, task, 0, type);
}

void taskstate_under_way(struct taskstate *t, const struct taskstate_event *poll, uint64_t now_ns)
{
	taskrows_under_way(t->rows, poll->type, poll->thread, poll->time_ns, now_ns);
}

/* --- time goes on --- */

void taskstate_until(struct taskstate *t, uint64_t time_ns)
{
	bool second = time_ns / SECOND_NS > t->now_ns / SECOND_NS;

	taskrows_until(t->rows, time_ns);
	t->now_ns = MAX(t->now_ns, time_ns);
	for (size_t i = 0; second && i < t->tasks.n; i++)
		if (t->tasks.v[i].used && t->tasks.v[i].gone && t->tasks.v[i].gone_ns + GONE_NS < time_ns)
			end_life(t, &t->tasks.v[i]);
}

size_t taskstate_ask(struct taskstate *t, uint32_t process, uint64_t now_ns, bool all, struct taskstate_silent **ret)
{
	VEC(struct taskstate_silent) list = { 0 };

	for (size_t i = 0; i < t->tasks.n; i++) {
		struct task *x = &t->tasks.v[i];
		uint64_t silent = between(x->since_ns, now_ns);

		if (!x->used || x->process != process || x->past != PAST_POLLED || x->wake_count || x->gone || !x->header)
			continue;
		if (!all && (silent < SECOND_NS || now_ns < x->asked_ns + (x->asked_ns ? silent / 2 : 0)))
			continue;
		x->asked_ns = now_ns;
		vec_push(&list, (struct taskstate_silent){ .task = x->task, .header = x->header, .vtable = x->vtable, .index = i });
	}
	*ret = list.v;
	return list.n;
}

void taskstate_answer(struct taskstate *t, const struct taskstate_silent *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct task *x = &t->tasks.v[list[i].index];

		if (list[i].finished && x->used && x->task == list[i].task && !x->wake_count)
			end_life(t, x);
	}
}

/* It awaits, or is in a queue, when the recording ends. */
static void stay(struct taskstate *t, struct task *x, uint64_t end_ns)
{
	struct total *total = &t->types.v[x->type];

	total->alive++;
	if (x->wake_count) {
		const struct wake *w = &x->wakes[0];

		end_await(t, x, w);
		leave_queued(total, MAX(w->time_ns, x->since_ns), end_ns);
	} else if (end_ns > x->since_ns) {
		total->await_ns += end_ns - x->since_ns;
		total->open_ns += end_ns - x->since_ns;
		total->open++;
	}
	total->wall_ns += between(x->birth_ns, MAX(end_ns, x->since_ns));
	forget(t, x);
}

static void end_all(struct taskstate *t, uint32_t process, bool any, uint64_t end_ns, bool alive)
{
	for (size_t i = 0; i < t->tasks.n; i++) {
		struct task *x = &t->tasks.v[i];

		if (!x->used || (!any && x->process != process))
			continue;
		if (x->past == PAST_NONE) { /* known as a waker only: its poll was lost */
			forget(t, x);
		} else if (x->gone || !alive) {
			x->gone_ns = x->gone ? x->gone_ns : end_ns;
			end_life(t, x);
		} else {
			stay(t, x, end_ns);
		}
	}
}

/* Tasks that were spawned and never polled were in a queue to the end. How many there are. */
static size_t end_spawns(struct total *x, uint32_t process, bool any, uint64_t end_ns)
{
	size_t left = 0, ended;

	for (size_t i = 0; i < x->spawns.n; i++) {
		if (!any && x->spawns.v[i].process != process) {
			x->spawns.v[left++] = x->spawns.v[i];
			continue;
		}
		leave_queued(x, x->spawns.v[i].time_ns, end_ns);
		x->wall_ns += between(x->spawns.v[i].time_ns, end_ns);
	}
	ended = x->spawns.n - left;
	x->spawns.n = left;
	return ended;
}

void taskstate_end_process(struct taskstate *t, uint32_t process, uint64_t time_ns)
{
	if (t->processes.v[process].ended)
		return;
	t->processes.v[process].ended = true;
	end_all(t, process, false, time_ns, false);
	for (size_t i = 0; i < t->types.n; i++)
		t->types.v[i].finished += end_spawns(&t->types.v[i], process, false, time_ns);
}

void taskstate_finish(struct taskstate *t, uint64_t end_ns)
{
	end_all(t, 0, true, end_ns, true);
	for (size_t i = 0; i < t->types.n; i++) {
		struct total *x = &t->types.v[i];

		x->alive += end_spawns(x, 0, true, end_ns);
		taskrows_not_ended(t->rows, i, false, end_ns, x->open_ns, x->open);
		taskrows_not_ended(t->rows, i, true, end_ns, x->queued_ns, x->queued);
	}
	taskrows_finish(t->rows, end_ns);
	taskstate_count(t);
}

/* --- counters --- */

static void set(struct taskstate *t, const char *family, uint32_t type, uint64_t value)
{
	_cleanup_free_ char *key = key_of(family, taskrows_name(t->rows, type));

	if (value)
		profile_count_set(t->p, key, value);
}

void taskstate_count(struct taskstate *t)
{
	for (size_t i = 0; i < t->types.n; i++) {
		const struct total *x = &t->types.v[i];

		if (!x->polls && !x->wakes && !x->spawned)
			continue;
		set(t, KEY_TASK_SPAWNED_OF, i, x->spawned);
		set(t, KEY_TASK_FINISHED_OF, i, x->finished);
		set(t, KEY_TASK_ALIVE_OF, i, x->alive);
		set(t, KEY_TASK_POLLS_OF, i, x->polls);
		set(t, KEY_TASK_WAKES_OF, i, x->wakes);
		set(t, KEY_TASK_POLL_NS_OF, i, x->poll_ns);
		set(t, KEY_TASK_POLL_MAX_NS_OF, i, x->poll_max_ns);
		set(t, KEY_TASK_QUEUE_NS_OF, i, x->queue_ns);
		set(t, KEY_TASK_AWAIT_NS_OF, i, x->await_ns);
		set(t, KEY_TASK_WALL_NS_OF, i, x->wall_ns);
		set(t, KEY_TASK_BLOCKING_OF, i, taskrows_blocking(t->rows, i));
	}
	if (t->no_room)
		profile_count_set(t->p, KEY_TASK_NO_ROOM, t->no_room);
}

struct taskstate_totals taskstate_totals(const struct taskstate *t)
{
	struct taskstate_totals r = { .tasks = t->numbers };

	for (size_t i = 0; i < t->types.n; i++) {
		r.polls += t->types.v[i].polls;
		r.wakes += t->types.v[i].wakes;
		r.types += t->types.v[i].polls || t->types.v[i].wakes;
	}
	return r;
}
