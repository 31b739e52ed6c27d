#include "profile/schedwaits.h"

#include <string.h>

#include "base/mem.h"
#include "profile/kernelname.h"
#include "profile/profile.h"

enum {
	LONG_NS = 1000000, /* waits from here on have wakes, as in a capture */
	HELD_MAX = 16384,  /* waits that are held back; those beyond keep the stack that they have */
};
#define HOLD_NS 10000000000ULL

enum place { PLACE_NONE, PLACE_BLOCKED, PLACE_WOKEN, PLACE_READY }; /* none: it runs, it ended, or nobody knows */

struct schedwaits_thread {
	uint32_t thread; /* PROFILE_NONE: not seen yet */
	uint32_t stack;
	enum place place;
	bool ran;        /* it came to the CPU at came_ns */
	uint64_t came_ns, left_ns, woken_ns;
	struct schedwaits_waker waker;
	uint64_t hold; /* the key under which its wait is held back; 0 = it is not */
};

struct schedwaits_held {
	struct schedwaits_thread t; /* as it was then */
	uint64_t blocked, queue;
};

struct schedwaits_peeked {
	uint32_t thread;
	uint64_t run_ns, queue_ns, blocked_ns;
};

static const struct schedwaits_waker nobody = { .thread = PROFILE_NONE };

enum schedwaits_kind schedwaits_kind(const char *name, size_t n)
{
	static const struct {
		const char *name;
		enum schedwaits_kind kind;
	} kinds[] = { { "sched_switch", SCHED_SWITCH },
		      { "sched_waking", SCHED_WAKE },
		      { "sched_wakeup", SCHED_WAKE },
		      { "sched_wakeup_new", SCHED_WAKE },
		      { "sched_stat_sleep", SCHED_STAT_BLOCKED },
		      { "sched_stat_blocked", SCHED_STAT_BLOCKED },
		      { "sched_stat_iowait", SCHED_STAT_BLOCKED },
		      { "sched_stat_wait", SCHED_STAT_QUEUE } };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strlen(kinds[i].name) == n && !memcmp(kinds[i].name, name, n))
			return kinds[i].kind;
	return SCHED_NONE;
}

void schedwaits_init(struct schedwaits *w, struct profile *p)
{
	*w = (struct schedwaits){ .p = p, .wait_event = PROFILE_NONE, .queue_event = PROFILE_NONE };
}

void schedwaits_done(struct schedwaits *w)
{
	vec_done(&w->threads);
	vec_done(&w->peeked);
	vec_done(&w->held);
	map_done(&w->held_keys);
	map_done(&w->tids);
}

/* The state of a thread; NULL: it was not heard of. */
static struct schedwaits_thread *find(const struct schedwaits *w, uint32_t tid)
{
	const uint64_t *at = map_get(&w->tids, tid);

	return at ? &w->threads.v[*at] : NULL;
}

static struct schedwaits_thread *find_or_add(struct schedwaits *w, uint32_t tid)
{
	uint64_t *at = map_put(&w->tids, tid, w->threads.n);

	if (*at == w->threads.n)
		vec_push(&w->threads, (struct schedwaits_thread){ .thread = PROFILE_NONE, .waker = nobody });
	return &w->threads.v[*at];
}

/* --- what a wait becomes --- */

static uint32_t wait_event(struct schedwaits *w, bool off_cpu)
{
	if (w->wait_event == PROFILE_NONE)
		w->wait_event = profile_add_event(w->p, "wait", "ns", off_cpu ? "time off the CPU, by perf's offcpu-time" :
						  "time blocked, from leaving the CPU to being woken", 0);
	return w->wait_event;
}

static uint32_t queue_event(struct schedwaits *w)
{
	if (w->queue_event == PROFILE_NONE)
		w->queue_event = profile_add_event(w->p, "queue", "ns", "time ready to run, but without a CPU", 0);
	return w->queue_event;
}

void schedwaits_add_events(struct schedwaits *w, enum schedwaits_kind kind)
{
	wait_event(w, kind == SCHED_OFFCPU);
	if (kind == SCHED_SWITCH)
		queue_event(w);
}

/* Counts a wait. False: it is to be left out. What else adds times up is within this sum. */
static bool count(struct schedwaits *w, uint64_t ns)
{
	uint64_t sum;

	if (!__builtin_add_overflow(w->total_ns, ns, &sum) && sum <= INT64_MAX) {
		w->total_ns = sum;
		return true;
	}
	w->unended++;
	w->overflow = true;
	return false;
}

static enum kernel_interrupt interrupt_on(const struct profile *p, uint32_t stack)
{
	struct interrupt_reader r = { 0 };

	for (; stack; stack = p->stacks.v[stack].parent) {
		const struct profile_frame *f = &p->frames.v[p->stacks.v[stack].frame];

		if (f->kind == FRAME_KERNEL && f->line_count)
			interrupt_read(&r, kernelname_of(profile_str(p, p->functions.v[p->lines.v[f->first_line].function].name)));
	}
	return interrupt_of(&r);
}

/* Who ended it, by name: the thread itself, or the kind of interrupt that it was. */
static void name_waker(struct schedwaits *w, const struct schedwaits_waker *by, struct profile_wake *ret)
{
	const struct profile *p = w->p;
	enum kernel_interrupt interrupt;

	ret->waker_stack = by->stack;
	ret->waker = by->thread;
	ret->waker_name = by->name;
	if (by->name)
		return;
	interrupt = interrupt_on(p, by->stack);
	/* thread 0 is the idle one: what wakes there is an interrupt */
	if (!interrupt && p->threads.v[by->thread].tid) {
		ret->waker_name = p->threads.v[by->thread].name;
		return;
	}
	ret->waker = PROFILE_NONE;
	ret->waker_name = profile_string(w->p, kernel_interrupt_waker(interrupt ? interrupt : INTERRUPT_OTHER));
}

/* The parts of a thread's wait until now. */
static void split(const struct schedwaits_thread *t, uint64_t now_ns, uint64_t *ret_blocked, uint64_t *ret_queue)
{
	now_ns = MAX(now_ns, t->place == PLACE_WOKEN ? t->woken_ns : t->left_ns);
	*ret_blocked = t->place == PLACE_READY ? 0 : (t->place == PLACE_WOKEN ? t->woken_ns : now_ns) - t->left_ns;
	*ret_queue = now_ns - t->left_ns - *ret_blocked;
}

static void add_account(struct schedwaits *w, const struct schedwaits_thread *t, uint64_t blocked, uint64_t queue)
{
	w->p->threads.v[t->thread].blocked_ns += blocked;
	w->p->threads.v[t->thread].queue_ns += queue;
}

static void add_samples(struct schedwaits *w, const struct schedwaits_thread *t, uint64_t blocked, uint64_t queue)
{
	struct profile_sample s = { .time_ns = t->left_ns, .thread = t->thread, .stack = t->stack };
	bool known = t->waker.thread != PROFILE_NONE || t->waker.name;

	if (blocked) {
		s.event = wait_event(w, false);
		s.value = blocked;
		profile_add_sample(w->p, &s);
	}
	if (queue) {
		s.event = queue_event(w);
		s.value = queue;
		profile_add_sample(w->p, &s);
	}
	if (t->place == PLACE_WOKEN && known && blocked + queue >= LONG_NS) {
		struct profile_wake wake = { .time_ns = t->left_ns, .blocked_ns = blocked, .queue_ns = queue, .thread = t->thread,
					     .stack = t->stack };

		name_waker(w, &t->waker, &wake);
		profile_add_wake(w->p, &wake);
	}
}

/* --- waits that are held back --- */

/* The frames of a stack on top of another one, in place of its root. */
static uint32_t rebase(struct profile *p, uint32_t stack, uint32_t base)
{
	struct profile_node node = p->stacks.v[stack];

	return node.parent ? profile_stack(p, rebase(p, node.parent, base), node.frame) : base;
}

/* Adds the samples of those that are held back: of one key, or (0) those that began before a time. */
static void release(struct schedwaits *w, uint64_t key, uint64_t before_ns, uint32_t base)
{
	size_t left = 0;

	for (size_t i = 0; i < w->held.n; i++) {
		struct schedwaits_held *h = &w->held.v[i];

		if (key ? h->t.hold != key : h->t.left_ns >= before_ns) {
			w->held.v[left++] = *h;
			continue;
		}
		if (key && h->t.stack)
			h->t.stack = rebase(w->p, h->t.stack, base);
		--*map_put(&w->held_keys, h->t.hold, 1);
		add_samples(w, &h->t, h->blocked, h->queue);
	}
	w->held.n = left;
	if (!left)
		map_clear(&w->held_keys);
}

void schedwaits_found(struct schedwaits *w, uint64_t key, uint32_t base)
{
	const uint64_t *held = map_get(&w->held_keys, key);

	if (held && *held)
		release(w, key, 0, base);
}

void schedwaits_hold(struct schedwaits *w, uint32_t tid, uint64_t key)
{
	struct schedwaits_thread *t = find(w, tid);

	if (t && t->place != PLACE_NONE)
		t->hold = key;
}

static void hold_back(struct schedwaits *w, const struct schedwaits_thread *t, uint64_t blocked, uint64_t queue)
{
	vec_push(&w->held, (struct schedwaits_held){ *t, blocked, queue });
	++*map_put(&w->held_keys, t->hold, 0);
}

/* The wait of a thread is over, if it waits. */
static void finish(struct schedwaits *w, struct schedwaits_thread *t, uint64_t now_ns)
{
	uint64_t blocked, queue;

	if (t->place == PLACE_NONE)
		return;
	split(t, now_ns, &blocked, &queue);
	if (count(w, blocked + queue)) {
		add_account(w, t, blocked, queue);
		if (t->hold && w->held.n < HELD_MAX)
			hold_back(w, t, blocked, queue);
		else
			add_samples(w, t, blocked, queue);
	}
	t->place = PLACE_NONE;
	if (w->held.n && w->held.v[0].t.left_ns + HOLD_NS < now_ns)
		release(w, 0, now_ns - HOLD_NS, 0);
}

/* From when it came to now. */
static void add_run(struct schedwaits *w, const struct schedwaits_thread *t, uint32_t thread, uint64_t now_ns)
{
	uint64_t *run = thread == PROFILE_NONE ? NULL : &w->p->threads.v[thread].run_ns, sum;

	if (run && t->ran && now_ns > t->came_ns && !__builtin_add_overflow(*run, now_ns - t->came_ns, &sum))
		*run = sum;
}

/* --- what happens --- */

void schedwaits_left(struct schedwaits *w, uint32_t tid, uint32_t thread, uint32_t stack, enum schedwaits_state state, uint64_t time_ns)
{
	struct schedwaits_thread *t = tid ? find_or_add(w, tid) : NULL;

	if (!t)
		return;
	/* It has come to a CPU since it left one, and nobody said when. */
	if (t->place == PLACE_WOKEN)
		finish(w, t, t->woken_ns);
	else if (t->place != PLACE_NONE)
		w->unended++;
	add_run(w, t, thread, time_ns);
	*t = (struct schedwaits_thread){ .thread = thread, .stack = stack, .left_ns = time_ns, .waker = nobody,
					 .place = state == SCHEDWAITS_READY   ? PLACE_READY :
						  state == SCHEDWAITS_BLOCKED ? PLACE_BLOCKED :
										PLACE_NONE };
}

void schedwaits_woken(struct schedwaits *w, uint32_t tid, const struct schedwaits_waker *by, uint64_t time_ns)
{
	struct schedwaits_thread *t = find(w, tid);

	if (!t || t->place != PLACE_BLOCKED || time_ns < t->left_ns)
		return;
	t->place = PLACE_WOKEN;
	t->woken_ns = time_ns;
	t->waker = by ? *by : nobody;
}

void schedwaits_set_stack(struct schedwaits *w, uint32_t tid, uint32_t stack)
{
	struct schedwaits_thread *t = find(w, tid);

	if (!t || t->place == PLACE_NONE)
		return;
	t->stack = stack;
	t->hold = 0;
}

void schedwaits_came(struct schedwaits *w, uint32_t tid, uint32_t thread, uint64_t time_ns)
{
	struct schedwaits_thread *t = tid ? find_or_add(w, tid) : NULL;

	if (!t)
		return;
	if (t->thread == PROFILE_NONE)
		t->thread = thread;
	finish(w, t, time_ns);
	t->came_ns = time_ns;
	t->ran = true;
}

void schedwaits_waited(struct schedwaits *w, uint32_t thread, uint32_t stack, uint64_t time_ns, uint64_t ns)
{
	if (ns && count(w, ns))
		profile_add_sample(w->p, &(struct profile_sample){ .time_ns = time_ns, .value = ns, .thread = thread, .stack = stack,
								   .event = wait_event(w, true) });
}

/* Takes back what the last peek added to the accounts. */
static void unpeek(struct schedwaits *w)
{
	for (size_t i = 0; i < w->peeked.n; i++) {
		const struct schedwaits_peeked *d = &w->peeked.v[i];
		struct profile_thread *t = &w->p->threads.v[d->thread];

		t->run_ns -= d->run_ns;
		t->queue_ns -= d->queue_ns;
		t->blocked_ns -= d->blocked_ns;
	}
	vec_clear(&w->peeked);
}

void schedwaits_peek(struct schedwaits *w, uint64_t time_ns)
{
	unpeek(w);
	for (size_t i = 0; i < w->held.n; i++)
		add_samples(w, &w->held.v[i].t, w->held.v[i].blocked, w->held.v[i].queue);
	for (size_t i = 0; i < w->threads.n; i++) {
		const struct schedwaits_thread *t = &w->threads.v[i];
		struct schedwaits_peeked d = { .thread = t->thread };

		if (t->thread == PROFILE_NONE)
			continue;
		if (t->place != PLACE_NONE) {
			split(t, time_ns, &d.blocked_ns, &d.queue_ns);
			add_account(w, t, d.blocked_ns, d.queue_ns);
			add_samples(w, t, d.blocked_ns, d.queue_ns);
		} else if (t->ran && time_ns > t->came_ns) {
			d.run_ns = time_ns - t->came_ns;
			w->p->threads.v[t->thread].run_ns += d.run_ns;
		}
		vec_push(&w->peeked, d);
	}
}

void schedwaits_end(struct schedwaits *w, uint64_t time_ns)
{
	unpeek(w);
	for (size_t i = 0; i < w->threads.n; i++) {
		struct schedwaits_thread *t = &w->threads.v[i];

		if (t->place == PLACE_NONE)
			add_run(w, t, t->thread, time_ns);
		finish(w, t, time_ns);
	}
	release(w, 0, UINT64_MAX, 0);
}
