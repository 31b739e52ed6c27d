#include "import/schedwaits.h"

#include <string.h>

#include "base/mem.h"
#include "profile/kernelname.h"
#include "profile/profile.h"

enum { LONG_NS = 1000000 }; /* waits from here on have wakes, as in a capture */

enum place { PLACE_NONE, PLACE_BLOCKED, PLACE_WOKEN, PLACE_READY }; /* none: it runs, it ended, or nobody knows */

struct schedwaits_thread {
	uint32_t thread; /* PROFILE_NONE: not seen yet */
	uint32_t stack;
	enum place place;
	bool ran;        /* it came to the CPU at came_ns */
	uint64_t came_ns, left_ns, woken_ns;
	uint32_t waker, waker_stack; /* PROFILE_NONE: not known */
};

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
		vec_push(&w->threads, (struct schedwaits_thread){ .thread = PROFILE_NONE, .waker = PROFILE_NONE });
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

static void add_wake(struct schedwaits *w, const struct schedwaits_thread *t, uint64_t blocked_ns, uint64_t queue_ns)
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

/* The wait of a thread is over, if it waits. */
static void finish(struct schedwaits *w, struct schedwaits_thread *t, uint64_t now_ns)
{
	struct profile_sample s = { .time_ns = t->left_ns, .thread = t->thread, .stack = t->stack };
	enum place place = t->place;
	uint64_t blocked, queue;

	t->place = PLACE_NONE;
	if (place == PLACE_NONE)
		return;
	now_ns = MAX(now_ns, place == PLACE_WOKEN ? t->woken_ns : t->left_ns);
	blocked = place == PLACE_READY ? 0 : (place == PLACE_WOKEN ? t->woken_ns : now_ns) - t->left_ns;
	queue = now_ns - t->left_ns - blocked;
	if (!count(w, blocked + queue))
		return;
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
	w->p->threads.v[t->thread].blocked_ns += blocked;
	w->p->threads.v[t->thread].queue_ns += queue;
	if (place == PLACE_WOKEN && t->waker != PROFILE_NONE && blocked + queue >= LONG_NS)
		add_wake(w, t, blocked, queue);
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
	*t = (struct schedwaits_thread){ .thread = thread, .stack = stack, .left_ns = time_ns, .waker = PROFILE_NONE,
					 .place = state == SCHEDWAITS_READY   ? PLACE_READY :
						  state == SCHEDWAITS_BLOCKED ? PLACE_BLOCKED :
										PLACE_NONE };
}

void schedwaits_woken(struct schedwaits *w, uint32_t tid, uint32_t waker, uint32_t waker_stack, uint64_t time_ns)
{
	struct schedwaits_thread *t = find(w, tid);

	if (!t || t->place != PLACE_BLOCKED || time_ns < t->left_ns)
		return;
	t->place = PLACE_WOKEN;
	t->woken_ns = time_ns;
	t->waker = waker;
	t->waker_stack = waker_stack;
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

void schedwaits_end(struct schedwaits *w, uint64_t time_ns)
{
	for (size_t i = 0; i < w->threads.n; i++) {
		struct schedwaits_thread *t = &w->threads.v[i];

		if (t->place == PLACE_NONE)
			add_run(w, t, t->thread, time_ns);
		finish(w, t, time_ns);
	}
}
