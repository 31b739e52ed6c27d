/*
 * wait.c - the wait collector: what every thread did while it was not on a CPU.
 *
 * The programs of wait.bpf.c keep the account of each thread; here their records
 * become samples of two events, "wait" (blocked) and "queue" (ready, but without a
 * CPU), and, for long waits, wakes: who ended them. Where a CPU quota binds a target there is a
 * third, "throttled": what of the queue the quota is to blame for.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "collect/bpfengine.h"
#include "collect/collector.h"
#include "collect/kernel/wakecontext.h"
#include "collect/process/processes.h"
#include "collect/unwind/userstack.h"
#include "collect/wait/begin.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/proc.h"

#include "gasflame.skel.h"

struct wait {
	struct bpf_link *links[4];
	uint32_t wait_event, queue_event, throttled_event; /* the last: PROFILE_NONE until there is one */
	uint32_t preempted, before, lost; /* stacks of the profile that stand for those without one */
	struct map stood; /* tid to the stack with which it slept, was throttled or had no CPU before the recording began */
	struct map stopped; /* tids of the throttled */
	struct map ready; /* tids of those without a CPU */
	struct map later; /* tid to an index: stacks of sleepers, taken again once their mappings were known */
	VEC(struct later) laters;
	uint64_t listed_ns, list_again_ns;
	bool tables_missing; /* at the last look some stacks ended where a table is still being made */
	struct wakecontext context; /* tells interrupts from wakers */
	VEC(uint32_t) silent; /* threads of the profile whose times the last look had to guess */
};

static struct wait *own(const struct session *s)
{
	return s->state[COLLECTOR_wait];
}

struct later {
	uint64_t from_ns, to_ns; /* the thread was seen asleep between these */
	uint32_t stack;
};

/* Listing all threads takes milliseconds where there are thousands: not more often than this, and ever less
 * often while tables are made that take long. */
enum { LIST_AGAIN_NS = 20000000, LIST_AGAIN_MOST_NS = 1000000000 };

/* Between the store that tells the programs when the recording begins and that moment; more than the store takes, also where we are preempted. */
enum { BEGIN_AHEAD_NS = 2000000 };

static uint32_t marker(struct profile *p, const char *name)
{
	return profile_stack(p, 0, profile_named_frame(p, PROFILE_NONE, FRAME_KERNEL, name));
}

/* The stack of a thread that sleeps, from its registers. */
static uint32_t stack_of_task(struct session *s, const struct shared_task *t)
{
#ifdef __aarch64__
	/* x29, sp, x30 and pc within struct pt_regs; the others are not used */
	static const uint8_t order[UNWIND_REGS] = { [UNWIND_RBP] = 29, [UNWIND_RSP] = 31, [UNWIND_LR] = 30, [UNWIND_RIP] = 32 };
#else
	/* DWARF numbers of rax rdx rcx rbx rsi rdi rbp rsp r8-r15 rip within struct pt_regs */
	static const uint8_t order[UNWIND_REGS] = { 10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16 };
#endif
	uint64_t frames[SHARED_MAX_USER_FRAMES + SHARED_MAX_KERNEL_FRAMES];
	struct shared_record r = { .pid = t->pid, .tid = t->tid };
	struct unwind_regs regs = { .leaf = true };
	pid_t pid = t->pid;
	struct userstack how = { .processes = s->processes, .pid = pid, .rule = bpfengine_rule,
				 .rule_context = s->engine, .read = userstack_read_process, .read_context = &pid };

	for (int i = 0; i < UNWIND_REGS; i++)
		regs.r[i] = t->regs[order[i]];
	r.reason = userstack_walk(&how, &regs, frames, &r.user_count);
	r.kernel_count = MIN(t->kernel_count, SHARED_MAX_KERNEL_FRAMES);
	memcpy(frames + r.user_count, t->kernel, r.kernel_count * sizeof(*frames));
	return collector_stack(s, &r, frames);
}

/* Calls fn for each thread of the targets that is on no CPU now. */
static void list_sleepers(struct session *s, void (*fn)(struct session *s, const struct shared_task *t))
{
	struct bpf_link *link = bpf_program__attach_iter(bpfengine_skeleton(s->engine)->progs.list_threads, NULL);
	_cleanup_fd_ int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
	struct shared_task t;

	while (fd >= 0 && fd_read_all(fd, &t, sizeof(t)) == sizeof(t))
		if (t.state)
			fn(s, &t);
	bpf_link__destroy(link);
}

/* Where it stands when the recording begins: if it sleeps on, it is its stack. */
static void note_stood(struct session *s, const struct shared_task *t)
{
	*map_put(&own(s)->stood, t->tid, 0) = stack_of_task(s, t);
	if (t->state & SHARED_TASK_THROTTLED)
		map_put(&own(s)->stopped, t->tid, 1);
	if (t->state & SHARED_TASK_READY)
		map_put(&own(s)->ready, t->tid, 1);
}

/* A thread that was found later has been asleep since before it was found. */
static void note_stood_new(struct session *s, const struct shared_task *t)
{
	if (!map_get(&own(s)->stood, t->tid))
		note_stood(s, t);
}

static void joined(struct session *s)
{
	list_sleepers(s, note_stood_new);
}

static bool is_cut_by(const struct session *s, uint32_t stack, enum shared_reason why)
{
	uint32_t reason;

	return profile_stack_truncated(s->profile, stack, &reason) &&
	       !strcmp(profile_str(s->profile, reason), shared_reason_names[why]);
}

static void note_later(struct session *s, const struct shared_task *t)
{
	struct wait *w = own(s);
	uint64_t *at = map_put(&w->later, t->tid, w->laters.n);
	uint64_t from = clock_mono_ns();
	uint32_t stack = stack_of_task(s, t);

	if (*at == w->laters.n)
		vec_push(&w->laters, (struct later){ 0 });
	w->laters.v[*at] = (struct later){ from, clock_mono_ns(), stack };
	w->tables_missing |= is_cut_by(s, stack, REASON_NO_TABLE_YET);
}

/*
 * A program that has just been started may go to sleep for long before its
 * mappings are read or its tables made, and its stack is cut. The sleepers are looked at
 * once more, now that they are known.
 */
static bool mapped(struct session *s)
{
	struct wait *w = own(s);

	if (clock_mono_ns() < w->listed_ns + w->list_again_ns)
		return false;
	w->tables_missing = false;
	list_sleepers(s, note_later);
	w->listed_ns = clock_mono_ns();
	w->list_again_ns = w->tables_missing ? MIN(2 * w->list_again_ns, LIST_AGAIN_MOST_NS) : LIST_AGAIN_NS;
	return !w->tables_missing;
}

static int attach(struct wait *w, struct bpf_program *const *programs, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(w->links); i++) {
		w->links[i] = bpf_program__attach(programs[i]);
		if (!w->links[i])
			return err_errno(err, errno, "cannot attach to the kernel's %s tracepoint",
					 bpf_program__section_name(programs[i]) + strlen("tp_btf/"));
	}
	return 0;
}

/* Everybody is known by now, from being listed or from the programs: the recording begins, at a moment of which these hear before it comes. */
static void begin(struct session *s)
{
	uint64_t start = clock_mono_ns() + BEGIN_AHEAD_NS;
	struct timespec at = { .tv_sec = start / 1000000000, .tv_nsec = start % 1000000000 };

	__atomic_store_n(&bpfengine_skeleton(s->engine)->bss->wait_start_ns, start, __ATOMIC_SEQ_CST);
	collector_begin_at(s, start);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static int start(struct session *s, struct err *err)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);
	/* on_switch() first: without it, on_waking() would see threads become ready that it never sees blocked again. */
	struct bpf_program *const programs[] = { skeleton->progs.on_switch, skeleton->progs.on_waking,
						 skeleton->progs.on_wakeup_new, skeleton->progs.on_wait_exec };
	struct profile *p = s->profile;
	struct wait *w = own(s);
	int r;

	w->wait_event = profile_add_event(p, "wait", "ns", "time blocked, from leaving the CPU to being woken", 0);
	w->queue_event = profile_add_event(p, "queue", "ns", "time ready to run, but without a CPU", 0);
	w->throttled_event = PROFILE_NONE;
	w->list_again_ns = LIST_AGAIN_NS;
	w->context = (struct wakecontext){ .profile = p, .kernel = s->kernel };
	w->preempted = marker(p, "[preempted]");
	w->before = marker(p, "[waiting since before the recording]");
	w->lost = marker(p, "[stack lost]");
	if (s->options->program && s->options->pid_count)
		skeleton->bss->wait_held = s->options->pids[0];
	skeleton->bss->wait_quota = s->quota;
	r = attach(w, programs, err);
	if (r < 0)
		return r;
	list_sleepers(s, note_stood);
	begin(s);
	return 0;
}

static uint32_t stack_of(struct session *s, uint32_t tid, uint64_t hash)
{
	uint64_t *stood = map_get(&own(s)->stood, tid);
	uint32_t stack;

	if (hash == SHARED_STACK_BEFORE)
		return stood ? *stood : own(s)->before;
	if (hash == SHARED_STACK_PREEMPTED)
		return own(s)->preempted;
	stack = bpfengine_stack(s->engine, hash);
	return stack == PROFILE_NONE ? own(s)->lost : stack;
}

/* The stack of a wait, from when it was taken again if it could not be walked at first. */
static uint32_t stack_of_wait(struct session *s, const struct shared_wait *r)
{
	uint32_t stack = stack_of(s, r->tid, r->stack);
	uint64_t *at = map_get(&own(s)->later, r->tid);
	const struct later *later = at ? &own(s)->laters.v[*at] : NULL;

	if (!later || later->from_ns < r->time_ns || later->to_ns > r->time_ns + r->blocked_ns ||
	    (!is_cut_by(s, stack, REASON_NO_MAPPING) && !is_cut_by(s, stack, REASON_NO_TABLE_YET)))
		return stack;
	return later->stack;
}

/* Adds the part of the time without a CPU that a quota caused: it comes first. Moves the sample on. */
static void add_throttled(struct session *s, uint64_t ns, struct profile_sample *sample)
{
	struct wait *w = own(s);

	if (w->throttled_event == PROFILE_NONE)
		w->throttled_event = profile_add_event(s->profile, "throttled", "ns",
						       "time ready to run, but stopped by the cgroup's CPU quota", 0);
	sample->event = w->throttled_event;
	sample->value = ns;
	profile_add_sample(s->profile, sample);
	sample->time_ns += ns;
}

/* Returns whether the quota had stopped the thread already when the recording began. */
static bool was_stopped(const struct session *s, const struct shared_wait *r)
{
	return r->stack == SHARED_STACK_BEFORE && map_get(&own(s)->stopped, r->tid);
}

/* Adds the end of a wait. An interrupt is nobody's doing: the thread that happened to run then is not named. */
static void add_wake(struct session *s, const struct shared_wait *r, uint32_t thread, uint32_t stack)
{
	uint32_t waker_stack = stack_of(s, r->waker_tid, r->waker_stack), waker = PROFILE_NONE;
	enum kernel_interrupt interrupt = wakecontext_of(&own(s)->context, &waker_stack);
	char name[sizeof(r->waker_name)];

	memcpy(name, r->waker_name, sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	if (!interrupt && processes_knows(s->processes, r->waker_pid))
		waker = processes_thread(s->processes, r->waker_pid, r->waker_tid, name, r->time_ns);
	profile_add_wake(s->profile, &(struct profile_wake){
		.time_ns = collector_time_ns(s, r->time_ns), .blocked_ns = r->blocked_ns, .queue_ns = r->queue_ns,
		.thread = thread, .stack = stack, .waker = waker,
		.waker_name = profile_string(s->profile, interrupt ? kernel_interrupt_waker(interrupt) : name),
		.waker_stack = waker_stack });
}

/* Adds a record, as a sample for each of its parts. */
static void add_wait(struct session *s, const struct shared_wait *r)
{
	uint64_t throttled = was_stopped(s, r) ? r->queue_ns : MIN(r->throttled_ns, r->queue_ns);
	uint32_t thread = processes_thread(s->processes, r->pid, r->tid, "", r->time_ns);
	struct profile_sample sample = { .time_ns = collector_time_ns(s, r->time_ns), .thread = thread,
					 .stack = stack_of_wait(s, r), .count = r->count };

	if (r->blocked_ns) {
		sample.event = own(s)->wait_event;
		sample.value = r->blocked_ns;
		profile_add_sample(s->profile, &sample);
	}
	if (throttled) {
		sample.time_ns += r->count > 1 ? 0 : r->blocked_ns;
		add_throttled(s, throttled, &sample);
	}
	if (r->queue_ns > throttled) {
		sample.event = own(s)->queue_event;
		sample.value = r->queue_ns - throttled;
		profile_add_sample(s->profile, &sample);
	}
	if (r->kind == RECORD_WAIT && r->waker_stack)
		add_wake(s, r, thread, sample.stack);
}

/* Is it the first thread of the program that we run? It began with its exec, not with our child. */
static bool is_program(const struct session *s, uint32_t tid)
{
	return s->options->program && s->options->pid_count && tid == (uint32_t)s->options->pids[0];
}

static void set_account(struct session *s, const struct shared_account *a, bool ended)
{
	char name[sizeof(a->name)] = "";
	struct profile_thread *t;

	/* Its name while it lives is older than what is known. */
	if (ended)
		memcpy(name, a->name, sizeof(name) - 1);
	t = &s->profile->threads.v[processes_thread(s->processes, a->pid, a->tid, name, a->since_ns)];
	t->run_ns = a->cpu_ns;
	t->queue_ns = a->queue_ns;
	t->blocked_ns = a->blocked_ns;
	if (ended) {
		uint64_t life = a->cpu_ns + a->queue_ns + a->blocked_ns;

		/* Short waits are told late, and it may not have been seen before them. */
		t->end_ns = collector_time_ns(s, a->since_ns);
		t->start_ns = MIN(t->start_ns, t->end_ns > life ? t->end_ns - life : 0);
	}
	if (is_program(s, a->tid))
		t->start_ns = collector_time_ns(s, bpfengine_skeleton(s->engine)->bss->wait_exec_ns);
}

static void record(struct session *s, const void *data, size_t size)
{
	const struct shared_wait *r = data;

	if ((r->kind == RECORD_WAIT || r->kind == RECORD_WAITS) && size >= sizeof(*r))
		add_wait(s, r);
	else if (r->kind == RECORD_THREAD_END && size >= sizeof(struct shared_account))
		set_account(s, data, true);
}

/* The state of a thread at the end of the recording counts for its share. */
static void finish_thread(struct session *s, const struct shared_thread *t, uint64_t now)
{
	struct shared_account a = t->account;
	struct shared_wait w = { .kind = RECORD_WAIT, .pid = a.pid, .tid = a.tid, .count = 1, .stack = t->stack,
				 .time_ns = a.since_ns, .waker_stack = t->waker_stack, .waker_pid = t->waker_pid,
				 .waker_tid = t->waker_tid };
	uint64_t left = now > a.since_ns ? now - a.since_ns : 0;

	for (int i = 0; i < SHARED_SUMS; i++) {
		const struct shared_sum *sum = &t->sums[i];
		struct shared_wait short_ones = { .kind = RECORD_WAITS, .pid = a.pid, .tid = a.tid,
						  .count = sum->count, .time_ns = t->slot * SHARED_SLOT_NS,
						  .blocked_ns = sum->blocked_ns, .queue_ns = sum->queue_ns,
						  .throttled_ns = sum->throttled_ns, .stack = sum->stack };

		if (sum->count)
			add_wait(s, &short_ones);
	}
	if (a.state == STATE_RUNNING) {
		/* The wait before it is not settled until it leaves the CPU. */
		a.cpu_ns += left;
		a.blocked_ns += t->blocked_ns;
		a.queue_ns += t->queue_ns;
		w.blocked_ns = t->blocked_ns;
		w.queue_ns = t->queue_ns;
		w.throttled_ns = t->throttled_ns;
		w.time_ns = t->left_ns;
		add_wait(s, &w);
	} else if (a.state == STATE_BLOCKED) {
		a.blocked_ns += left;
		w.blocked_ns = left;
		add_wait(s, &w);
	} else {
		a.blocked_ns += t->blocked_ns;
		a.queue_ns += left;
		w.blocked_ns = t->blocked_ns;
		w.queue_ns = left;
		w.throttled_ns = t->throttled ? left : 0;
		w.time_ns -= t->blocked_ns;
		add_wait(s, &w);
	}
	set_account(s, &a, false);
}

static void finish_threads(struct session *s, int threads_fd, uint64_t now)
{
	struct shared_thread t;
	uint32_t tid, *previous = NULL;

	while (!bpf_map_get_next_key(threads_fd, previous, &tid)) {
		if (!bpf_map_lookup_elem(threads_fd, &tid, &t)) {
			begin_thread(&t, s->start_mono_ns);
			finish_thread(s, &t, now);
		}
		previous = &tid;
	}
}

/* Threads of which nothing was heard did one thing all the time. */
static void finish_silent(struct session *s, uint64_t now, bool peek)
{
	uint64_t all = collector_time_ns(s, now);

	for (size_t i = 0; i < s->profile->threads.n; i++) {
		struct profile_thread *t = &s->profile->threads.v[i];
		uint32_t pid = s->profile->processes.v[t->process].pid;
		uint64_t *stood = map_get(&own(s)->stood, t->tid);
		uint64_t life = profile_thread_age_ns(t, all);
		struct proc_stat st;

		/* Events go on while the programs are let go: what began meanwhile has no time in the recording. */
		if (t->run_ns || t->queue_ns || t->blocked_ns || t->end_ns || !life ||
		    pid == bpfengine_skeleton(s->engine)->bss->wait_held)
			continue;
		/* A thread that slept and was never switched still sleeps: a peek need not check it. */
		if (!(peek && stood) && proc_thread_stat(pid, t->tid, &st) < 0) {
			/* Gone before the tracepoints were there. */
			t->end_ns = MAX(t->start_ns, 1);
			continue;
		}
		vec_push(&own(s)->silent, i);
		if (map_get(&own(s)->stopped, t->tid)) {
			t->queue_ns = all - t->start_ns;
			add_throttled(s, t->queue_ns, &(struct profile_sample){ .time_ns = t->start_ns, .thread = i, .stack = *stood });
			continue;
		}
		if (stood && map_get(&own(s)->ready, t->tid)) {
			t->queue_ns = life;
			profile_add_sample(s->profile, &(struct profile_sample){ .time_ns = t->start_ns, .value = life, .thread = i,
				.event = own(s)->queue_event, .stack = *stood });
			continue;
		}
		if (!(peek && stood) && st.state == 'R') {
			t->run_ns = life;
			continue;
		}
		t->blocked_ns = life;
		profile_add_sample(s->profile, &(struct profile_sample){
			.time_ns = t->start_ns, .value = t->blocked_ns, .thread = i, .event = own(s)->wait_event,
			.stack = stood ? *stood : own(s)->before });
	}
}

/* Forgets the guesses of the last look about silent threads. */
static void forget_silent(struct session *s)
{
	for (size_t i = 0; i < own(s)->silent.n; i++) {
		struct profile_thread *t = &s->profile->threads.v[own(s)->silent.v[i]];

		if (!t->end_ns) /* else it was heard of after all */
			t->run_ns = t->queue_ns = t->blocked_ns = 0;
	}
	vec_clear(&own(s)->silent);
}

static void peek(struct session *s, uint64_t now)
{
	forget_silent(s);
	finish_threads(s, bpf_map__fd(bpfengine_skeleton(s->engine)->maps.threads), now);
	finish_silent(s, now, true);
}

static void tally(struct session *s, struct profile *to)
{
	struct shared_wait_counts counts;

	if (!bpfengine_sum(bpfengine_skeleton(s->engine)->maps.wait_counts, 0, &counts, sizeof(counts)))
		return;
	profile_count(to, KEY_WAITS_STACKS_WALKED, counts.walked);
	profile_count(to, KEY_WAITS_STACKS_REMEMBERED, counts.remembered);
	profile_count(to, KEY_WAITS_DRAWN_NS, counts.drawn_ns);
	/* A share of a half varies most: a quarter of the squares, of microseconds. */
	profile_count(to, KEY_WAITS_ERROR_NS, (uint64_t)(sqrt((double)counts.squares_us2 / 4) * 1000));
	profile_count(to, KEY_WAITS_STOLEN_NS, counts.stolen_ns);
	profile_count(to, KEY_WAITS_LOST, counts.ring_full);
	profile_count(to, KEY_WAITS_THREADS_WITHOUT_ROOM, counts.threads_full);
}

static void stop(struct session *s)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);
	uint64_t now = clock_mono_ns();

	/* Letting go takes its time: what happens meanwhile is not part of it. */
	skeleton->bss->wait_end_ns = now;
	for (size_t i = 0; i < ARRAY_LEN(own(s)->links); i++)
		bpf_link__destroy(own(s)->links[i]);
	bpfengine_drain(s->engine);
	forget_silent(s);
	finish_threads(s, bpf_map__fd(skeleton->maps.threads), now);
	finish_silent(s, now, false);
	tally(s, s->profile);
	map_done(&own(s)->stood);
	map_done(&own(s)->stopped);
	map_done(&own(s)->ready);
	map_done(&own(s)->later);
	vec_done(&own(s)->laters);
	vec_done(&own(s)->silent);
	wakecontext_done(&own(s)->context);
}

/* A quota may come and go while it is recorded. */
static void tick(struct session *s, uint64_t now)
{
	bpfengine_skeleton(s->engine)->bss->wait_quota = s->quota;
}

static const char *const wait_programs[] = { "on_switch", "on_waking", "on_wakeup_new",
						    "on_wait_exec", "list_threads", NULL };
static const char *const wait_maps[] = { "threads", NULL };

static void thin(struct session *s, unsigned step)
{
	bpfengine_skeleton(s->engine)->bss->wait_thin = step;
}

static uint64_t looked_at(struct session *s)
{
	struct shared_wait_counts c;

	return bpfengine_sum(bpfengine_skeleton(s->engine)->maps.wait_counts, 0, &c, sizeof(c)) ? c.walked : 0;
}

static uint64_t recorded(const struct session *s)
{
	struct shared_wait_counts c;

	return bpfengine_sum(bpfengine_skeleton(s->engine)->maps.wait_counts, 0, &c, sizeof(c)) ? c.left : 0;
}

const struct collector collector_wait = {
	.name = "wait",
	.describe = "time off the CPU by stack: locks, disk, network, sleep, run queue",
	.flags = COLLECTOR_PERF,
	.state_size = sizeof(struct wait),
	.programs = wait_programs,
	.maps = wait_maps,
	.start = start,
	.record = record,
	.thin = thin,
	.thin_steps = 6,
	.looked_at = looked_at,
	.recorded = recorded,
	/* No pause: each thread's account is of all its time. */
	.tick = tick,
	.joined = joined,
	.mapped = mapped,
	.peek = peek,
	.tally = tally,
	.stop = stop,
};
