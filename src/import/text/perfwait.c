#include "import/text/perfwait.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "profile/kernelname.h"
#include "profile/profile.h"

enum { LONG_NS = 1000000 };

struct perfwait_thread {
	uint32_t thread; /* of the profile; PROFILE_NONE: not seen yet */
	uint32_t stack;
	uint64_t left_ns, woken_ns; /* left 0: it runs, or nothing is known; woken 0: it is asleep */
	uint64_t came_ns;           /* since when it runs; 0: not known */
	uint32_t waker, waker_stack;
	bool preempted, asleep;
};

void perfwait_init(struct perfwait *w, struct profile *p)
{
	*w = (struct perfwait){ .p = p, .wait_event = PROFILE_NONE, .queue_event = PROFILE_NONE };
}

void perfwait_done(struct perfwait *w)
{
	map_done(&w->tids);
	vec_done(&w->threads);
}

/* --- what the lines say --- */

static bool is(struct perfline_text t, const char *word)
{
	return t.s && t.n == strlen(word) && !memcmp(t.s, word, t.n);
}

/* A number, or a word, after a key: "prev_pid=12". */
static bool take_key(struct perfline_text t, const char *key, struct perfline_text *ret)
{
	const char *at = t.n ? memmem(t.s, t.n, key, strlen(key)) : NULL, *end = t.s + t.n;

	if (!at)
		return false;
	ret->s = at + strlen(key);
	for (at = ret->s; at < end && !perfline_space(*at);)
		at++;
	ret->n = at - ret->s;
	return ret->n;
}

static bool take_tid(struct perfline_text t, uint32_t *ret)
{
	uint64_t tid = 0;

	for (size_t i = 0; i < t.n; i++) {
		if (t.s[i] < '0' || t.s[i] > '9' || tid > UINT32_MAX / 10)
			return false;
		tid = tid * 10 + (t.s[i] - '0');
	}
	*ret = tid;
	return t.n && tid <= INT32_MAX;
}

/* "name:12 [120] ...": the tid before the priority, as perf's own formatter writes it. *ret_after: what follows the priority. */
static bool take_short(struct perfline_text t, uint32_t *ret, struct perfline_text *ret_after)
{
	const char *open = t.n ? memmem(t.s, t.n, " [", 2) : NULL, *colon = open ? memrchr(t.s, ':', open - t.s) : NULL, *close;

	if (!colon || !take_tid((struct perfline_text){ colon + 1, open - colon - 1 }, ret))
		return false;
	close = memchr(open, ']', t.s + t.n - open);
	if (!close)
		return false;
	close++;
	while (close < t.s + t.n && perfline_space(*close))
		close++;
	*ret_after = (struct perfline_text){ close, t.s + t.n - close };
	return true;
}

/* *ret_state: the letter of the state in which the thread leaves. */
static bool take_switch(struct perfline_text t, uint32_t *ret_next, char *ret_state)
{
	const char *arrow = t.n ? memmem(t.s, t.n, "==>", 3) : NULL;
	struct perfline_text state, next, after, left;
	uint32_t tid;

	if (!arrow)
		return false;
	left = (struct perfline_text){ t.s, arrow - t.s };
	next = (struct perfline_text){ arrow + 3, t.s + t.n - arrow - 3 };
	if (take_key(left, "prev_state=", &state)) {
		struct perfline_text number;

		*ret_state = *state.s;
		return take_key(next, "next_pid=", &number) && take_tid(number, ret_next);
	}
	if (!take_short(left, &tid, &state) || !state.n || !take_short(next, ret_next, &after))
		return false;
	*ret_state = *state.s;
	return true;
}

static bool take_wakeup(struct perfline_text t, uint32_t *ret_tid)
{
	struct perfline_text number, after;

	if (take_key(t, " pid=", &number))
		return take_tid(number, ret_tid);
	return take_short(t, ret_tid, &after);
}

/* --- the threads --- */

static struct perfwait_thread *thread_of(struct perfwait *w, uint32_t tid)
{
	uint64_t *at = map_put(&w->tids, tid, w->threads.n);

	if (*at == w->threads.n)
		vec_push(&w->threads, (struct perfwait_thread){ .thread = PROFILE_NONE, .waker = PROFILE_NONE });
	return &w->threads.v[*at];
}

void perfwait_count(struct perfwait *w, uint64_t ns)
{
	if (w->overflow || __builtin_add_overflow(w->total_ns, ns, &w->total_ns) || w->total_ns > INT64_MAX)
		w->overflow = true;
}

static void add_part(struct perfwait *w, uint32_t *event, const char *name, const char *describe, const struct perfwait_thread *t,
		     uint64_t ns)
{
	struct profile_sample s = { .time_ns = t->left_ns, .value = ns, .thread = t->thread, .stack = t->stack };

	if (!ns)
		return;
	perfwait_count(w, ns);
	if (w->overflow)
		return;
	if (*event == PROFILE_NONE)
		*event = profile_add_event(w->p, name, "ns", describe, 0);
	s.event = *event;
	profile_add_sample(w->p, &s);
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

static void add_wake(struct perfwait *w, const struct perfwait_thread *t, uint64_t blocked_ns, uint64_t queue_ns)
{
	struct profile *p = w->p;
	enum kernel_interrupt interrupt = interrupt_on(p, t->waker_stack);
	const struct profile_thread *waker = &p->threads.v[t->waker];
	bool task = !interrupt && waker->tid; /* thread 0 is the idle one: what wakes there is an interrupt */

	profile_add_wake(p, &(struct profile_wake){
		.time_ns = t->left_ns, .blocked_ns = blocked_ns, .queue_ns = queue_ns, .thread = t->thread, .stack = t->stack,
		.waker = task ? t->waker : PROFILE_NONE, .waker_stack = t->waker_stack,
		.waker_name = task ? waker->name
				   : profile_string(p, kernel_interrupt_waker(interrupt ? interrupt : INTERRUPT_OTHER)) });
}

/* The wait of a thread is over, or the text is. */
static void end_wait(struct perfwait *w, struct perfwait_thread *t, uint64_t now_ns)
{
	uint64_t blocked = 0, queue = 0;
	struct profile_thread *of;

	now_ns = MAX(now_ns, t->left_ns);
	if (t->preempted)
		queue = now_ns - t->left_ns;
	else if (t->asleep)
		blocked = now_ns - t->left_ns;
	else {
		blocked = t->woken_ns - t->left_ns;
		queue = now_ns > t->woken_ns ? now_ns - t->woken_ns : 0;
	}
	add_part(w, &w->wait_event, "wait", "time blocked, from leaving the CPU to being woken", t, blocked);
	add_part(w, &w->queue_event, "queue", "time ready to run, but without a CPU", t, queue);
	if (w->overflow)
		return;
	of = &w->p->threads.v[t->thread];
	of->blocked_ns += blocked;
	of->queue_ns += queue;
	if (t->waker != PROFILE_NONE && blocked >= LONG_NS)
		add_wake(w, t, blocked, queue);
}

/* From when it came to when it leaves. */
static void add_run(struct perfwait *w, const struct perfwait_thread *t, uint64_t now_ns)
{
	uint64_t *run = t->thread == PROFILE_NONE ? NULL : &w->p->threads.v[t->thread].run_ns;

	if (t->came_ns && run && now_ns > t->came_ns && __builtin_add_overflow(*run, now_ns - t->came_ns, run))
		*run = UINT64_MAX;
}

static void leave(struct perfwait *w, uint32_t tid, uint32_t thread, uint32_t stack, uint64_t now_ns, char state)
{
	struct perfwait_thread *t = thread_of(w, tid);
	bool preempted = state == 'R', dead = state == 'X' || state == 'Z' || state == 'x';

	add_run(w, t, now_ns);
	*t = (struct perfwait_thread){ .thread = thread, .stack = stack, .left_ns = dead ? 0 : now_ns,
				       .preempted = preempted, .asleep = !preempted, .waker = PROFILE_NONE };
}

static void come(struct perfwait *w, uint32_t tid, uint64_t now_ns)
{
	struct perfwait_thread *t = thread_of(w, tid);

	if (t->left_ns)
		end_wait(w, t, now_ns);
	t->left_ns = 0;
	t->came_ns = now_ns;
}

static void wake(struct perfwait *w, uint32_t tid, uint32_t waker, uint32_t stack, uint64_t now_ns)
{
	struct perfwait_thread *t = thread_of(w, tid);

	if (!t->left_ns || !t->asleep || now_ns < t->left_ns)
		return;
	t->asleep = false;
	t->woken_ns = now_ns;
	t->waker = waker;
	t->waker_stack = stack;
}

bool perfwait_take(struct perfwait *w, const struct perfline_record *r, uint32_t thread, uint32_t stack)
{
	static const char *const wakeups[] = { "sched:sched_waking", "sched:sched_wakeup", "sched:sched_wakeup_new" };
	uint32_t tid;
	char state;

	if (!r->timed || !r->time_ns)
		return false;
	if (is(r->event, "sched:sched_switch")) {
		if (!take_switch(r->rest, &tid, &state))
			return false;
		/* The idle thread waits for nothing. */
		if (r->tid)
			leave(w, r->tid, thread, stack, r->time_ns, state);
		if (tid)
			come(w, tid, r->time_ns);
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(wakeups); i++)
		if (is(r->event, wakeups[i])) {
			if (!take_wakeup(r->rest, &tid))
				return false;
			wake(w, tid, thread, stack, r->time_ns);
			return true;
		}
	return false;
}

void perfwait_end(struct perfwait *w, uint64_t last_ns)
{
	for (size_t i = 0; i < w->threads.n; i++) {
		struct perfwait_thread *t = &w->threads.v[i];

		if (t->left_ns)
			end_wait(w, t, last_ns);
		else
			add_run(w, t, last_ns);
	}
}
