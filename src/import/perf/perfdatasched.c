#include "import/perf/perfdatasched.h"

#include <string.h>

#include "base/mem.h"
#include "import/perf/perfdataattr.h"
#include "import/perf/perfdatasample.h"
#include "import/perf/perfdataspace.h"
#include "import/perf/perfdatatrace.h"
#include "profile/profile.h"

enum { STATE_NONE, STATE_BLOCKED, STATE_READY };

enum {
	LONG_NS = 1000000,  /* wakes are kept of waits from 1 ms on, as in a capture */
	STATE_BITS = 0xff,  /* of prev_state; above it says that the thread was preempted */
	STATE_DEAD = 0x30,  /* EXIT_DEAD, EXIT_ZOMBIE */
};

enum perfdatasched_kind perfdatasched_kind(const char *name)
{
	static const struct {
		const char *name;
		enum perfdatasched_kind kind;
	} kinds[] = { { "sched_switch", SCHED_SWITCH },		  { "sched_waking", SCHED_WAKE },
		      { "sched_wakeup", SCHED_WAKE },		  { "sched_stat_sleep", SCHED_STAT_BLOCKED },
		      { "sched_stat_blocked", SCHED_STAT_BLOCKED }, { "sched_stat_iowait", SCHED_STAT_BLOCKED },
		      { "sched_stat_wait", SCHED_STAT_QUEUE } };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return kinds[i].kind;
	return SCHED_NONE;
}

void perfdatasched_done(struct perfdatasched *s)
{
	vec_done(&s->list);
	map_done(&s->tids);
}

/* The state of a thread; NULL: it was not heard of. */
static struct perfdatasched_thread *find(const struct perfdatasched *s, uint32_t tid)
{
	const uint64_t *index = map_get(&s->tids, tid);

	return index ? &s->list.v[*index] : NULL;
}

static struct perfdatasched_thread *find_or_add(struct perfdatasched *s, uint32_t tid, uint32_t thread)
{
	uint64_t *index = map_put(&s->tids, tid, UINT64_MAX);

	if (*index == UINT64_MAX) {
		*index = s->list.n;
		vec_push(&s->list, (struct perfdatasched_thread){ .thread = thread });
	}
	return &s->list.v[*index];
}

/* Times of a hostile file may add up to more than can be counted: what does is left out. */
static bool add_up(uint64_t *total, uint64_t more)
{
	uint64_t sum;

	if (__builtin_add_overflow(*total, more, &sum))
		return false;
	*total = sum;
	return true;
}

static void add_sample(struct perfdatasched *s, const struct perfdatasched_thread *t, uint32_t event, uint64_t time_ns, uint64_t value)
{
	if (!value || event == PROFILE_NONE)
		return;
	if (!add_up(&s->total_ns, value)) {
		s->unended++;
		return;
	}
	profile_add_sample(s->p, &(struct profile_sample){ .time_ns = time_ns, .value = value, .thread = t->thread,
							   .stack = t->stack, .event = event });
}

/* The wait of a thread is over: its parts. */
static void finish(struct perfdatasched *s, struct perfdatasched_thread *t, uint64_t now)
{
	struct profile_thread *account = &s->p->threads.v[t->thread];
	uint64_t ready, blocked, queue;

	if (t->state == STATE_NONE)
		return;
	now = MAX(now, t->out_ns);
	ready = t->state == STATE_READY ? t->out_ns : t->woken ? MIN(MAX(t->wake_ns, t->out_ns), now) : now;
	blocked = ready - t->out_ns;
	queue = now - ready;
	add_sample(s, t, s->wait_event, t->out_ns, blocked);
	add_sample(s, t, s->queue_event, ready, queue);
	add_up(&account->blocked_ns, blocked);
	add_up(&account->queue_ns, queue);
	if (t->woken && blocked + queue >= LONG_NS && t->waker_stack)
		profile_add_wake(s->p, &(struct profile_wake){ .time_ns = t->out_ns, .blocked_ns = blocked, .queue_ns = queue,
							       .thread = t->thread, .stack = t->stack, .waker = t->waker,
							       .waker_name = t->waker_name, .waker_stack = t->waker_stack });
	t->state = STATE_NONE;
	t->woken = false;
}

void perfdatasched_in(struct perfdatasched *s, uint32_t tid, uint64_t time_ns)
{
	struct perfdatasched_thread *t = find(s, tid);
	uint32_t thread;

	if (!t) {
		thread = perfdataspaces_known_thread(s->spaces, tid);
		if (!tid || thread == PROFILE_NONE)
			return;
		t = find_or_add(s, tid, thread);
	}
	finish(s, t, time_ns);
	t->in_ns = time_ns;
	t->ran = true;
}

static void leave(struct perfdatasched *s, uint32_t tid, uint32_t thread, uint32_t stack, uint64_t prev_state, uint64_t time_ns)
{
	struct perfdatasched_thread *t = find_or_add(s, tid, thread);

	/* It has come to the CPU since it left it, and nobody said when: of one that was woken no more is known. */
	if (t->state == STATE_BLOCKED && t->woken)
		finish(s, t, t->wake_ns);
	else if (t->state != STATE_NONE)
		s->unended++;
	if (t->ran && time_ns > t->in_ns)
		add_up(&s->p->threads.v[thread].run_ns, time_ns - t->in_ns);
	*t = (struct perfdatasched_thread){ .thread = thread, .out_ns = time_ns, .stack = stack };
	if (!(prev_state & STATE_DEAD))
		t->state = prev_state & STATE_BITS ? STATE_BLOCKED : STATE_READY;
}

static void wake(struct perfdatasched *s, uint32_t tid, const struct perfdatasample *x, uint32_t waker, uint32_t stack, uint64_t time_ns)
{
	struct perfdatasched_thread *t = find(s, tid);

	if (!t || t->state != STATE_BLOCKED || t->woken)
		return;
	t->woken = true;
	t->wake_ns = time_ns;
	if (!x)
		return;
	/* The idle thread wakes nobody: an interrupt does. */
	t->waker = x->tid ? waker : PROFILE_NONE;
	t->waker_name = x->tid ? s->p->threads.v[waker].name : profile_string(s->p, "interrupt");
	t->waker_stack = stack;
}

void perfdatasched_sample(struct perfdatasched *s, const struct perfdataattr *a, const struct perfdatasample *x, uint32_t thread,
			  uint32_t stack, uint64_t time_ns)
{
	const struct tracefs_format *f = a->format;
	uint32_t tid;

	if (a->kind == SCHED_OFFCPU) {
		add_sample(s, &(struct perfdatasched_thread){ .thread = thread, .stack = stack }, s->wait_event, time_ns, x->period);
		return;
	}
	if (a->kind == SCHED_SWITCH) {
		tid = perfdatatrace_value(f, "prev_pid", x->raw, x->raw_bytes);
		if (tid && tid == x->tid)
			leave(s, tid, thread, stack, perfdatatrace_value(f, "prev_state", x->raw, x->raw_bytes), time_ns);
		tid = perfdatatrace_value(f, "next_pid", x->raw, x->raw_bytes);
		if (tid)
			perfdatasched_in(s, tid, time_ns);
		return;
	}
	tid = perfdatatrace_value(f, "pid", x->raw, x->raw_bytes);
	if (a->kind == SCHED_WAKE)
		wake(s, tid, x, thread, stack, time_ns);
	else if (a->kind == SCHED_STAT_BLOCKED)
		wake(s, tid, NULL, PROFILE_NONE, 0, time_ns);
	else if (a->kind == SCHED_STAT_QUEUE)
		perfdatasched_in(s, tid, time_ns);
}

void perfdatasched_fix_ended(const struct perfdatasched *s, const struct perfdataattr *a, struct perfdatasample *x)
{
	uint32_t tid = perfdatatrace_value(a->format, "prev_pid", x->raw, x->raw_bytes);
	uint32_t thread = perfdataspaces_known_thread(s->spaces, tid);

	if (thread == PROFILE_NONE)
		return;
	x->tid = tid;
	x->pid = s->p->processes.v[s->p->threads.v[thread].process].pid;
}

void perfdatasched_end(struct perfdatasched *s, uint64_t time_ns)
{
	for (size_t i = 0; i < s->list.n; i++) {
		struct perfdatasched_thread *t = &s->list.v[i];

		if (t->state == STATE_NONE && t->ran && time_ns > t->in_ns)
			add_up(&s->p->threads.v[t->thread].run_ns, time_ns - t->in_ns);
		finish(s, t, time_ns);
	}
}
