#include "collect/perf/switches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/collector.h"
#include "collect/kernel/kernelmap.h"
#include "collect/kernel/wakecontext.h"
#include "collect/perf/samples.h"
#include "collect/process/processes.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "profile/schedwaits.h"

enum {
	LONG_NS = 1000000,  /* the waker's stack is of interest from here on */
	PLACES_MAX = 65536, /* that are remembered */
};

struct switches_thread {
	pid_t pid, tid;
	bool assumed;       /* what it does was looked up and not heard */
	bool asleep;        /* it is off its CPU, blocked */
	bool unknown;       /* at a place whose stack is not known */
	bool sampled;       /* where is of its current or next switch out */
	struct sample where;
	uint64_t left_ns;   /* CLOCK_MONOTONIC */
	uint32_t found;     /* by switches_look(): the user's part of its stack; PROFILE_NONE: nothing */
};

struct switches {
	struct session *session;
	struct schedwaits waits;
	bool stacks;
	switches_unwind_fn *unwind;
	void *unwind_context;
	struct map tids; /* to an index */
	VEC(struct switches_thread) threads;
	VEC(uint32_t) unknown; /* indices of threads that fell asleep at unknown places */
	struct map places;     /* hash of thread, program counter and stack pointer to the user's part of the stack */
	struct map names;      /* of strangers who wake: tid to a string of the profile */
	struct wakecontext context;
	pid_t held;            /* the process that has not executed its program yet; 0 = none */
	uint32_t preempted, before, none; /* stacks that stand for those without one */
	uint64_t walked, remembered;
};

static uint32_t marker(struct profile *p, const char *name)
{
	return profile_stack(p, 0, profile_named_frame(p, PROFILE_NONE, FRAME_KERNEL, name));
}

struct switches *switches_new(struct session *s, bool stacks, switches_unwind_fn *unwind, void *context)
{
	struct switches *w = mem_alloc(sizeof(*w));

	w->session = s;
	w->stacks = stacks;
	w->unwind = unwind;
	w->unwind_context = context;
	schedwaits_init(&w->waits, s->profile);
	schedwaits_add_events(&w->waits, SCHED_SWITCH);
	w->context = (struct wakecontext){ .profile = s->profile, .kernel = s->kernel };
	w->preempted = marker(s->profile, "[preempted]");
	w->before = marker(s->profile, "[waiting since before the recording]");
	w->none = marker(s->profile, "[stack not recorded]");
	if (s->options->program && s->options->pid_count)
		w->held = s->options->pids[0];
	return w;
}

void switches_free(struct switches *w)
{
	if (!w)
		return;
	schedwaits_done(&w->waits);
	wakecontext_done(&w->context);
	vec_done(&w->threads);
	vec_done(&w->unknown);
	map_done(&w->tids);
	map_done(&w->places);
	map_done(&w->names);
	free(w);
}

static uint64_t time_of(const struct switches *w, uint64_t mono_ns)
{
	return collector_time_ns(w->session, mono_ns);
}

static struct switches_thread *find(struct switches *w, pid_t tid)
{
	const uint64_t *at = map_get(&w->tids, tid);

	return at ? &w->threads.v[*at] : NULL;
}

static struct switches_thread *find_or_add(struct switches *w, pid_t pid, pid_t tid)
{
	uint64_t *at = map_put(&w->tids, tid, w->threads.n);

	if (*at == w->threads.n)
		vec_push(&w->threads, (struct switches_thread){ .pid = pid, .tid = tid });
	return &w->threads.v[*at];
}

static uint32_t thread_of(struct switches *w, pid_t pid, pid_t tid, uint64_t mono_ns)
{
	return processes_thread(w->session->processes, pid, tid, "", mono_ns);
}

/* --- where a thread is --- */

static uint64_t place_of(const struct sample *x)
{
	return map_hash(map_hash(x->regs.r[UNWIND_RIP] ^ (uint64_t)x->tid << 48) ^ x->regs.r[UNWIND_RSP]);
}

static void learn(struct switches *w, const struct sample *x, uint32_t base)
{
	if (w->places.n >= PLACES_MAX)
		map_clear(&w->places);
	*map_put(&w->places, place_of(x), base) = base;
	schedwaits_found(&w->waits, place_of(x), base);
	w->walked++;
}

/* The kernel's frames on top of the user's. */
static uint32_t with_kernel(struct switches *w, uint32_t stack, const struct sample *x)
{
	for (int i = x->kernel_count - 1; i >= 0; i--)
		stack = profile_stack(w->session->profile, stack, kernelmap_frame(w->session->kernel, x->kernel[i] - (i ? 1 : 0)));
	return stack;
}

void switches_sample(struct switches *w, const struct sample *x)
{
	struct switches_thread *t = find_or_add(w, x->pid, x->tid);

	t->where = *x;
	t->sampled = true;
}

void switches_stack(struct switches *w, const struct sample *x)
{
	/* The kernel may copy nothing; the next one will do. */
	if (x->has_regs && x->dump.size)
		learn(w, x, w->unwind(w->unwind_context, x, false));
}

/* The stack of a thread that leaves its CPU. */
static uint32_t stack_of(struct switches *w, struct switches_thread *t, bool preempted)
{
	struct profile *p = w->session->profile;
	const uint64_t *known;

	t->unknown = false;
	if (!w->stacks)
		return preempted ? w->preempted : w->none;
	if (!t->sampled)
		return preempted ? w->preempted : profile_stack(p, 0, profile_truncation_frame(p, "the kernel did not sample this switch"));
	if (!t->where.has_regs) /* it runs in the kernel only */
		return with_kernel(w, 0, &t->where);
	known = map_get(&w->places, place_of(&t->where));
	if (known) {
		w->remembered++;
		return with_kernel(w, *known, &t->where);
	}
	if (preempted)
		return w->preempted;
	t->unknown = true;
	vec_push(&w->unknown, t - w->threads.v);
	return with_kernel(w, profile_stack(p, 0, profile_truncation_frame(p, "no copy of its stack")), &t->where);
}

bool switches_look(struct switches *w)
{
	size_t left = 0;

	for (size_t i = 0; i < w->unknown.n; i++) {
		struct switches_thread *t = &w->threads.v[w->unknown.v[i]];

		if (!t->unknown || !t->asleep)
			continue;
		t->found = w->unwind(w->unwind_context, &t->where, true);
		if (t->found != PROFILE_NONE)
			w->unknown.v[left++] = w->unknown.v[i];
	}
	w->unknown.n = left;
	return left;
}

void switches_looked(struct switches *w)
{
	size_t left = 0;

	for (size_t i = 0; i < w->unknown.n; i++) {
		struct switches_thread *t = &w->threads.v[w->unknown.v[i]];

		if (!t->unknown || !t->asleep)
			continue;
		if (t->found == PROFILE_NONE) { /* it fell asleep once more meanwhile */
			w->unknown.v[left++] = w->unknown.v[i];
			continue;
		}
		learn(w, &t->where, t->found);
		schedwaits_set_stack(&w->waits, t->tid, with_kernel(w, t->found, &t->where));
		t->unknown = false;
	}
	w->unknown.n = left;
}

/* --- what happens --- */

static bool is_held(const struct switches *w, pid_t pid)
{
	return w->held && w->held == pid;
}

/* The stack of a thread that sleeps already: the kernel says where, if we may trace it. Of the registers only two are known, which is enough
 * for code without frame pointers. */
static uint32_t stack_before(struct switches *w, pid_t pid, pid_t tid)
{
	struct sample x = { .pid = pid, .tid = tid, .has_regs = true, .regs = { .leaf = true } };
	_cleanup_free_ char *text = NULL;
	uint32_t stack, reason;
	const char *pc, *sp;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	if (!w->stacks || fd_read_path(path, 512, &text, NULL) < 0)
		return w->before;
	/* "35 0x7ffd1 0x0 ... SP PC": the last two, in a system call and out of it; or "running" */
	pc = strrchr(text, ' ');
	sp = pc ? memrchr(text, ' ', pc - text) : NULL;
	if (!sp)
		return w->before;
	x.regs.r[UNWIND_RSP] = strtoull(sp, NULL, 16);
	x.regs.r[UNWIND_RIP] = strtoull(pc, NULL, 16);
	stack = w->unwind(w->unwind_context, &x, true);
	return stack == PROFILE_NONE || profile_stack_truncated(w->session->profile, stack, &reason) ? w->before : stack;
}

void switches_found(struct switches *w, pid_t pid, pid_t tid, bool asleep)
{
	uint32_t thread = thread_of(w, pid, tid, w->session->start_mono_ns);
	struct switches_thread *t;

	if (find(w, tid) || is_held(w, pid)) /* records are better */
		return;
	t = find_or_add(w, pid, tid);
	t->assumed = true;
	t->asleep = asleep;
	if (asleep)
		schedwaits_left(&w->waits, tid, thread, stack_before(w, pid, tid), SCHEDWAITS_BLOCKED, 0);
	else
		schedwaits_came(&w->waits, tid, thread, 0);
}

/* What was looked up when the recording began may have been over by the time that it did. */
static void correct(struct switches *w, struct switches_thread *t, uint32_t thread, bool leaves)
{
	if (!t->assumed)
		return;
	t->assumed = false;
	if (leaves && t->asleep)
		schedwaits_came(&w->waits, t->tid, thread, 0);
	else if (!leaves && !t->asleep)
		schedwaits_left(&w->waits, t->tid, thread, w->preempted, SCHEDWAITS_READY, 0);
}

void switches_started(struct switches *w, pid_t pid, pid_t tid, uint64_t time_ns)
{
	struct switches_thread *t = find_or_add(w, pid, tid);

	*t = (struct switches_thread){ .pid = pid, .tid = tid };
	schedwaits_left(&w->waits, tid, thread_of(w, pid, tid, time_ns), w->preempted, SCHEDWAITS_READY, time_of(w, time_ns));
}

void switches_ended(struct switches *w, pid_t pid, pid_t tid, uint64_t time_ns)
{
	struct switches_thread *t = find(w, tid);
	uint32_t thread;

	if (!t || is_held(w, pid))
		return;
	thread = thread_of(w, pid, tid, time_ns);
	correct(w, t, thread, true);
	schedwaits_left(&w->waits, tid, thread, 0, SCHEDWAITS_ENDED, time_of(w, time_ns));
	t->asleep = t->unknown = false;
}

void switches_executed(struct switches *w, pid_t pid, uint64_t time_ns)
{
	uint32_t thread;

	if (!is_held(w, pid))
		return;
	w->held = 0;
	thread = thread_of(w, pid, pid, time_ns);
	w->session->profile->threads.v[thread].start_ns = time_of(w, time_ns);
	find_or_add(w, pid, pid);
	schedwaits_came(&w->waits, pid, thread, time_of(w, time_ns));
}

void switches_out(struct switches *w, pid_t pid, pid_t tid, bool preempted, uint64_t time_ns)
{
	struct switches_thread *t = find_or_add(w, pid, tid);
	uint32_t thread;

	if (is_held(w, pid))
		return;
	thread = thread_of(w, pid, tid, time_ns);
	correct(w, t, thread, true);
	t->asleep = !preempted;
	t->left_ns = time_ns;
	t->found = PROFILE_NONE;
	schedwaits_left(&w->waits, tid, thread, stack_of(w, t, preempted), preempted ? SCHEDWAITS_READY : SCHEDWAITS_BLOCKED,
			time_of(w, time_ns));
	/* A copy of that place may come with a later wait there. */
	if (t->unknown)
		schedwaits_hold(&w->waits, tid, place_of(&t->where));
	t->sampled = false;
}

void switches_in(struct switches *w, pid_t pid, pid_t tid, uint64_t time_ns)
{
	struct switches_thread *t = find_or_add(w, pid, tid);
	uint32_t thread;

	if (is_held(w, pid))
		return;
	thread = thread_of(w, pid, tid, time_ns);
	correct(w, t, thread, false);
	t->asleep = t->unknown = t->sampled = false;
	schedwaits_came(&w->waits, tid, thread, time_of(w, time_ns));
}

/* --- who wakes --- */

/* The name of a thread that is not recorded. */
static uint32_t name_of(struct switches *w, pid_t tid)
{
	_cleanup_free_ char *text = NULL;
	uint64_t *known = map_get(&w->names, tid);
	char path[64];
	size_t n;

	if (known)
		return *known;
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)tid);
	if (fd_read_path(path, 64, &text, &n) < 0)
		return profile_string(w->session->profile, "?");
	text[strcspn(text, "\n")] = 0;
	known = map_put(&w->names, tid, 0);
	*known = profile_string(w->session->profile, text);
	return *known;
}

void switches_waking(struct switches *w, const struct sample *x, pid_t woken)
{
	struct switches_thread *t = find(w, woken);
	struct schedwaits_waker by = { .thread = PROFILE_NONE };
	enum kernel_interrupt interrupt;

	if (!t || !t->asleep)
		return;
	if (x->time_ns < t->left_ns + LONG_NS) { /* nobody will ask */
		schedwaits_woken(&w->waits, woken, NULL, time_of(w, x->time_ns));
		return;
	}
	by.stack = with_kernel(w, 0, x);
	interrupt = wakecontext_of(&w->context, &by.stack);
	if (!interrupt && !x->tid) /* the idle thread wakes nobody */
		interrupt = INTERRUPT_OTHER;
	if (interrupt)
		by.name = profile_string(w->session->profile, kernel_interrupt_waker(interrupt));
	else if (processes_knows(w->session->processes, x->pid)) {
		by.thread = thread_of(w, x->pid, x->tid, x->time_ns);
		by.name = w->session->profile->threads.v[by.thread].name;
	} else {
		by.name = name_of(w, x->tid);
	}
	schedwaits_woken(&w->waits, woken, &by, time_of(w, x->time_ns));
}

/* --- the end --- */

void switches_peek(struct switches *w, uint64_t now_mono_ns)
{
	schedwaits_peek(&w->waits, time_of(w, now_mono_ns));
}

void switches_finish(struct switches *w, uint64_t now_mono_ns)
{
	struct profile *p = w->session->profile;

	schedwaits_end(&w->waits, time_of(w, now_mono_ns));
	profile_count(p, KEY_WAITS_STACKS_WALKED, w->walked);
	profile_count(p, KEY_WAITS_STACKS_REMEMBERED, w->remembered);
}
