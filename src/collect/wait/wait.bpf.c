/*
 * wait.bpf.c - where time goes when a thread is not on a CPU.
 *
 * Every moment of a thread is in one of three states: it runs, it is blocked (from
 * leaving the CPU until somebody wakes it), or it waits for a CPU (from there, or
 * from being preempted, until it runs). sched_switch and the wake-up tracepoints
 * are the borders, so the states add up to wall time whatever happens between.
 *
 * Unwinding is the main cost. How long a wait will be is not known when it begins, so
 * the stack of a *place* (thread, program counter, stack pointer) is remembered;
 * it is unwound again where the last wait at that place was long, and now and then
 * by chance. Where that finds another stack, one word of the stack tells the two
 * apart from then on (split.bpf.h); where none does, each gets its share on average.
 *
 * Long waits are sent one by one, with the waker and its stack, which is walked
 * only when the sleeper has slept long. Short ones are added up for each
 * thread, stack and slot of time, and sent when the slot is over.
 */
#define STACKCACHE_DEFINE
#include "collect/unwind/stackcache.bpf.h"
#include "collect/wait/begin.h"
#include "collect/wait/split.bpf.h"

/* Interrupts are off in all the tracepoints used here: one for each CPU is enough. */
BPF_MAP(wait_scratch, PERCPU_ARRAY, 1, uint32_t, struct unwind);

/* By tid, made in advance: nothing may be allocated while the run queue is locked. */
BPF_MAP(threads, HASH, SHARED_MAX_THREADS, uint32_t, struct shared_thread);

BPF_MAP(wait_counts, PERCPU_ARRAY, 1, uint32_t, struct shared_wait_counts);

/* What tells the instruction of a wait from a place in the stackcache; the most steps of wait_thin. */
enum { PLACE_OF_SITE = 0x200, THIN_MOST = 15, PREEMPT_RARE_MOST = 16 };
#define CARRIED_MOST 0xffffffffu

BPF_MAP(new_thread, ARRAY, 1, uint32_t, struct shared_thread);

uint64_t wait_start_ns; /* when the recording begins: it is set before; 0 = that is not known yet (begin.h) */
uint64_t wait_end_ns;   /* and ended, 0 = not yet */
uint64_t wait_exec_ns;  /* when the child that we run became the program, 0 = not yet */
uint32_t wait_held;     /* that child: until its exec it is ourselves; 0 = none */
uint32_t wait_quota;    /* a CPU quota binds a target, or may: look for it */

/* Each step halves the chance that the stack of a short wait is walked. A stack that was walked stands for waits that were
 * not; the account of each thread and the times of long waits stay exact. */
uint32_t wait_thin;

static __always_inline bool is_over(uint64_t now)
{
	uint64_t end = *(volatile uint64_t *)&wait_end_ns;

	return end && now >= end;
}

/* Has the recording not begun? What happens now is only kept in mind. */
static __always_inline bool is_early(uint64_t now)
{
	uint64_t start = *(volatile uint64_t *)&wait_start_ns;

	return !start || now < start;
}

static __always_inline struct shared_wait_counts *counts_here(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&wait_counts, &zero);
}

/*
 * The thread of a task, made if its process is recorded. Its first event tells
 * what it did since the recording began: state.
 */
static __always_inline struct shared_thread *thread_of(struct task_struct *task, uint32_t state)
{
	uint32_t tid = task->pid, pid = task->tgid, zero = 0;
	struct shared_thread *t, *blank;
	struct shared_process *p;
	uint64_t born, since, start;

	if (!unwind_may_be_ours(pid) || !tid)
		return NULL;
	t = bpf_map_lookup_elem(&threads, &tid);
	if (t)
		return t;
	p = pid == *(volatile uint32_t *)&wait_held ? NULL : bpf_map_lookup_elem(&processes, &pid);
	if (!p)
		return NULL;
	start = *(volatile uint64_t *)&wait_start_ns;
	since = p->since_ns > start ? p->since_ns : start;
	blank = bpf_map_lookup_elem(&new_thread, &zero);
	if (!blank || bpf_map_update_elem(&threads, &tid, blank, BPF_NOEXIST)) {
		struct shared_wait_counts *c = counts_here();

		if (c)
			c->threads_full++;
		return NULL;
	}
	t = bpf_map_lookup_elem(&threads, &tid);
	if (!t)
		return NULL;
	t->account.kind = RECORD_THREAD_END;
	t->account.pid = pid;
	t->account.tid = tid;
	t->account.state = state;
	/* The thread counts as in its current state since the recording began, or since it was born. */
	born = task->start_time;
	t->account.since_ns = born > since ? born : since;
	t->left_ns = state == STATE_RUNNING ? 0 : t->account.since_ns;
	return t;
}

/* Walks the current task's stack into u and makes it known. Its hash. */
static __always_inline uint64_t walk(void *ctx, struct unwind *u, struct shared_process *p, bool user)
{
	struct shared_wait_counts *c = counts_here();

	unwind_start(u, p, user);
	unwind_kernel(ctx, u, UNWIND_TRACED);
	if (unwind_send(u, false) == UNWIND_RING_FULL && c)
		c->ring_full++;
	if (c)
		c->walked++;
	return u->record.stack;
}

static __always_inline uint32_t thin_now(void)
{
	uint32_t thin = *(volatile uint32_t *)&wait_thin;

	return thin < THIN_MOST ? thin : THIN_MOST;
}

/*
 * Where a thread goes to sleep: its place in the cache, and the place that this is a part of. fresh: its place is not known,
 * and `place` is that of its instruction, which stands for all such places.
 */
struct where {
	struct stackcache *place, *above, *fresh;
	uint64_t key, above_key, fresh_key;
	bool known;
};

static __always_inline void look_up(struct where *w, uint64_t key)
{
	w->key = key;
	w->place = stackcache_of(key);
	w->known = w->place && stackcache_known(w->place, key);
}

static __always_inline void find_place(struct where *w, uint32_t tid, const struct unwind *u, uint32_t thin)
{
	look_up(w, stackcache_key(tid, 0, u));
#pragma clang loop unroll(full)
	for (int i = 0; i < SPLIT_LEVELS; i++) {
		if (!w->known || !split_known(w->place))
			break;
		w->above = w->place;
		w->above_key = w->key;
		look_up(w, split_key(w->place, w->key, u->sp));
	}
	/* The parts of a place are few and exact: each is walked when it is new. */
	if (w->known || w->above || !thin)
		return;
	w->fresh = w->place;
	w->fresh_key = w->key;
	look_up(w, unwind_hash((uint64_t)tid << 32 | PLACE_OF_SITE, u->pc));
}

/* A place, or an instruction, is new, and has this stack. */
static __always_inline void enter_place(struct where *w, uint64_t stack)
{
	if (!w->place)
		return;
	stackcache_set(w->place, w->key, stack);
	if (w->fresh) {
		stackcache_mix(w->place);
		w->place->split = SPLIT_NEVER; /* the stack pointers of an instruction differ */
		w->place->newest = w->fresh_key;
	}
}

/*
 * A stack was walked at an instruction that stands for places that are not known. They are many, so they are entered only
 * where two walks in a row find the same. Then the instruction is forgotten: what is remembered for it may be the stack
 * of the place that has just left it, which none of the others has.
 */
static __always_inline void admit_place(struct where *w, uint64_t stack)
{
	if (w->place->newest == (uint32_t)w->fresh_key) {
		stackcache_set(w->fresh, w->fresh_key, stack);
		stackcache_forget(w->place);
	} else {
		w->place->newest = w->fresh_key;
	}
}

static __always_inline uint64_t square_us2(uint64_t ns)
{
	return (ns / 1000) * (ns / 1000);
}

/*
 * A place that had one stack so far was walked again, and has this one. If it is another, chance may have missed it before:
 * the times that the walks so far decided, the last 64 of them mostly, count like those of any draw.
 */
static __always_inline void judge_carried(struct stackcache *place, uint64_t stack)
{
	struct shared_wait_counts *c = counts_here();

	place->unsure_us2 += square_us2(place->carried_ns) - place->unsure_us2 / 64;
	place->carried_ns = 0;
	if (c && place->stack != stack) {
		c->squares_us2 += place->unsure_us2;
		place->unsure_us2 = 0;
	}
}

/* A stack was walked: what does that say of its place? */
static __always_inline void learn_place(struct where *w, struct unwind *u, struct shared_process *p, uint64_t stack,
					uint64_t now, uint32_t thin)
{
	if (!stackcache_worth(u))
		return;
	if (w->known && !w->place->mixed)
		judge_carried(w->place, stack);
	if (w->known && w->place->last_ns < SHARED_LONG_NS)
		stackcache_walked(w->place, stack, now, thin);
	else if (w->known && !w->place->mixed && w->place->stack != stack)
		stackcache_mix(w->place);
	if (!w->known) {
		enter_place(w, stack);
		if (!w->above)
			return;
		split_learn(u, p, w->above, w->above_key, stack);
		if (++w->above->ways >= SPLIT_WAYS)
			w->above->split = SPLIT_NEVER;
	} else if (w->fresh) {
		admit_place(w, stack);
	} else if (w->place->mixed) {
		split_learn(u, p, w->place, w->key, stack);
	}
}

/* The stack with which the current task goes to sleep. */
static __always_inline uint64_t stack_of_sleeper(void *ctx, struct shared_thread *t, uint64_t now)
{
	uint32_t zero = 0, pid = t->account.pid, thin = thin_now();
	struct unwind *u = bpf_map_lookup_elem(&wait_scratch, &zero);
	struct shared_wait_counts *c = counts_here();
	struct shared_process *p;
	uint64_t stack;
	struct where w = { 0 };
	bool user;

	if (!u || !c)
		return SHARED_STACK_BEFORE;
	c->left++;
	u->record.pid = pid;
	user = unwind_place_from_task(u);
	find_place(&w, t->account.tid, u, thin);
	t->place = w.key;
	if (w.known && w.place->last_ns < SHARED_LONG_NS && !stackcache_again(w.place, thin)) {
		c->remembered++;
		return w.place->stack;
	}
	t->walked = 1;
	p = bpf_map_lookup_elem(&processes, &pid);
	stack = walk(ctx, u, p, user && unwind_from_task(u));
	learn_place(&w, u, p, stack, now, thin);
	return stack;
}

/* The record that is being made: the stack of a program and those that it calls has 512 bytes, and unwinding needs them. */
BPF_MAP(wait_record, PERCPU_ARRAY, 1, uint32_t, struct shared_wait);

static __always_inline struct shared_wait *blank_record(const struct shared_thread *t, uint32_t kind)
{
	uint32_t zero = 0;
	struct shared_wait *w = bpf_map_lookup_elem(&wait_record, &zero);

	if (!w)
		return NULL;
	__builtin_memset(w, 0, sizeof(*w));
	w->kind = kind;
	w->pid = t->account.pid;
	w->tid = t->account.tid;
	return w;
}

static __always_inline void send_wait(struct shared_wait *w)
{
	struct shared_wait_counts *c;

	if (bpf_ringbuf_output(&ring, w, sizeof(*w), BPF_RB_NO_WAKEUP)) {
		c = counts_here();
		if (c)
			c->ring_full++;
	}
}

static __always_inline void send_sum(struct shared_thread *t, struct shared_sum *s)
{
	struct shared_wait *w = s->count ? blank_record(t, RECORD_WAITS) : NULL;

	if (w) {
		w->count = s->count;
		w->time_ns = t->slot * SHARED_SLOT_NS;
		w->blocked_ns = s->blocked_ns;
		w->queue_ns = s->queue_ns;
		w->throttled_ns = s->throttled_ns;
		w->stack = s->stack;
		send_wait(w);
	}
	s->stack = 0;
	s->blocked_ns = 0;
	s->queue_ns = 0;
	s->throttled_ns = 0;
	s->count = 0;
}

static __always_inline void send_sums(struct shared_thread *t)
{
	/* Else clang lays the loop out with its end before its begin, which 6.1 refuses. */
#pragma clang loop unroll(full)
	for (int i = 0; i < SHARED_SUMS; i++)
		send_sum(t, &t->sums[i]);
}

/* A short wait, added to the sum of its stack in this slot of time. */
static __always_inline void add_short(struct shared_thread *t, uint64_t began, uint64_t blocked, uint64_t queue)
{
	uint64_t slot = began / SHARED_SLOT_NS;
	struct shared_sum *s;

	if (slot != t->slot) {
		send_sums(t);
		t->slot = slot;
	}
	s = &t->sums[(t->stack >> 5) & (SHARED_SUMS - 1)];
	if (s->count && s->stack != t->stack)
		send_sum(t, s);
	s->stack = t->stack;
	s->blocked_ns += blocked;
	s->queue_ns += queue;
	s->throttled_ns += t->throttled_ns;
	s->count++;
}

static __always_inline uint64_t mean_with(uint64_t mean, uint64_t passed)
{
	return mean ? mean - mean / 64 + passed / 64 : passed;
}

/*
 * A short wait whose stack was walked is over: does its stack become the one that is remembered? The more likely the
 * longer it was, so that stacks get their shares of the time, not of the number.
 */
static __always_inline bool chosen(uint64_t mean, uint64_t passed)
{
	return mean >= 1 << 29 || bpf_get_prandom_u32() % (uint32_t)(4 * mean + 1) < passed;
}

static __always_inline void place_learn(struct stackcache *place, uint64_t key, uint64_t stack, uint64_t passed)
{
	place->mean_ns = mean_with(place->mean_ns, passed);
	if (place->mixed && chosen(place->mean_ns, passed)) {
		place->stack = stack;
		place->check = key ^ stack;
		place->carried_ns = 0;
	}
}

/* The same for a thread that was preempted. A long wait is learnt as well: the thread is where it was then, or near it. */
static __always_inline void preempted_learn(struct shared_thread *t, uint64_t passed)
{
	if (passed < SHARED_LONG_NS)
		t->preempt_mean_ns = mean_with(t->preempt_mean_ns, passed);
	if (passed >= SHARED_LONG_NS || !t->preempt_stack || chosen(t->preempt_mean_ns, passed)) {
		t->preempt_stack = t->stack;
		t->preempt_carried_ns = 0;
	}
}

static __always_inline uint32_t carry_sum(uint64_t carried_ns, uint64_t passed)
{
	return carried_ns + passed < CARRIED_MOST ? carried_ns + passed : CARRIED_MOST;
}

/*
 * One more wait is given a stack that was drawn from several, and that was given so much time already. The time that a draw
 * decides is right or wrong as a whole: the squares of these times add up to the variance, times the share of the
 * stack and the share of the others.
 */
static __always_inline void carry(uint32_t *carried_ns, uint64_t passed)
{
	uint64_t before = *carried_ns, after = carry_sum(before, passed);
	struct shared_wait_counts *c = counts_here();

	*carried_ns = after;
	if (!c)
		return;
	c->drawn_ns += passed;
	c->squares_us2 += square_us2(after) - square_us2(before);
}

static __always_inline void send_long(struct shared_thread *t, uint64_t blocked, uint64_t queue)
{
	struct shared_wait *w = blank_record(t, RECORD_WAIT);

	if (!w)
		return;
	w->count = 1;
	w->time_ns = t->left_ns;
	w->blocked_ns = blocked;
	w->queue_ns = queue;
	w->throttled_ns = t->throttled_ns;
	w->stack = t->stack;
	w->waker_stack = t->waker_stack;
	w->waker_pid = t->waker_pid;
	w->waker_tid = t->waker_tid;
	__builtin_memcpy(w->waker_name, t->waker_name, sizeof(w->waker_name));
	send_wait(w);
}

/* A wait is over and what it was is known: it began at left_ns. */
static __always_inline void wait_over(struct shared_thread *t, uint64_t blocked, uint64_t queue)
{
	struct stackcache *place;

	if (t->place) {
		place = stackcache_of(t->place);
		if (place && stackcache_known(place, t->place)) {
			place->last_ns = blocked;
			if (!t->walked && place->mixed)
				carry(&place->carried_ns, blocked + queue);
			else if (!t->walked)
				place->carried_ns = carry_sum(place->carried_ns, blocked + queue);
			else if (t->walked && blocked + queue < SHARED_LONG_NS)
				place_learn(place, t->place, t->stack, blocked + queue);
		}
	} else if (t->preempted) {
		if (blocked + queue >= SHARED_LONG_NS)
			t->preempt_long |= t->preempted;
		else
			t->preempt_long &= ~t->preempted;
		if (!t->walked)
			carry(&t->preempt_carried_ns, blocked + queue);
		else
			preempted_learn(t, blocked + queue);
	}
	if (blocked + queue >= SHARED_LONG_NS)
		send_long(t, blocked, queue);
	else
		add_short(t, t->left_ns, blocked, queue);
}

/* Less than this is only that the two clocks are not read at the same moment. */
enum { STOLEN_NS = 20000 };

/* Reads the kernel's lifetime counts of a task: on a CPU, and waiting for one. */
static __always_inline void read_kernel(struct task_struct *task, uint64_t *run, uint64_t *queue)
{
	*run = task->se.sum_exec_runtime;
	*queue = bpf_core_field_exists(task->sched_info) ? task->sched_info.run_delay : 0;
}

/*
 * The thread has run, and leaves the CPU now. How long it ran, and waited for that, the kernel knows best: its clock
 * stands still between a wake-up and the switch that it causes, which it counts as run (rq_clock_skip_update in
 * wakeup_preempt), and the account is to be the kernel's. So the wait before is known only now; and it is known also
 * where its end was not seen, for tracepoints do not fire for every task. What the kernel does not count as run, time
 * taken by interrupts or the hypervisor, is time without a CPU.
 */
static __always_inline void settle(struct shared_thread *t, struct task_struct *task, uint64_t now)
{
	bool seen = t->account.state == STATE_RUNNING;
	uint64_t ran = seen ? now - t->account.since_ns : 0, run, queue, run_now, off;
	uint64_t blocked = t->blocked_ns, queued = t->queue_ns, before = 0;
	struct shared_wait_counts *c;

	read_kernel(task, &run, &queue);
	if (t->has_kernel && t->left_ns && bpf_core_field_exists(task->sched_info)) {
		off = now - t->left_ns;
		queued = queue - t->kernel_queue_ns;
		run_now = run - t->kernel_run_ns;
		if (seen && ran > run_now + STOLEN_NS)
			queued += ran - run_now;
		else if (seen && ran < run_now)
			before = run_now - ran;
		ran = run_now;
		if (ran > off)
			ran = off;
		off -= ran;
		if (queued > off || t->preempted)
			queued = off;
		blocked = off - queued;
		if (queued > queue - t->kernel_queue_ns) {
			c = counts_here();
			if (c)
				c->stolen_ns += queued - (queue - t->kernel_queue_ns);
		}
	} else if (seen && !t->left_ns && !t->has_kernel) {
		/* The first that is seen of it. If it came after the recording began, it had waited. */
		run_now = run - task->se.prev_sum_exec_runtime;
		if (run_now < ran) {
			blocked = ran - run_now;
			ran = run_now;
			t->left_ns = t->account.since_ns;
			t->stack = SHARED_STACK_BEFORE;
		}
	}
	t->has_kernel = 1;
	t->kernel_run_ns = run;
	t->kernel_queue_ns = queue;
	t->account.cpu_ns += ran;
	t->account.blocked_ns += blocked;
	t->account.queue_ns += queued;
	if (t->throttled_ns > queued)
		t->throttled_ns = queued;
	/* The part that only the kernel calls run: the clock that samples the CPU finds somebody else there. */
	if (t->left_ns)
		wait_over(t, blocked, queued + before);
}

/* How long a run queue was stopped by CPU quotas so far. */
static __always_inline uint64_t stopped_ns(struct cfs_rq *rq)
{
	struct cfs_rq___from519 *newer = (void *)rq;
	struct cfs_rq___before519 *older = (void *)rq;

	if (bpf_core_field_exists(rq->throttled_clock_self_time))
		return BPF_CORE_READ(rq, throttled_clock_self_time);
	if (bpf_core_field_exists(newer->throttled_clock_pelt_time))
		return BPF_CORE_READ(newer, throttled_clock_pelt_time);
	if (bpf_core_field_exists(older->throttled_clock_task_time))
		return BPF_CORE_READ(older, throttled_clock_task_time);
	return 0;
}

/*
 * A task could run, but does not: it was preempted, or was woken. If a quota is the reason, its run queue will have been
 * stopped longer when it runs again. Since 6.18 a task is stopped itself, on its way back to user space, and says so;
 * before, its run queue was, with all that were in it and that woke up there.
 */
static __always_inline void watch_quota(struct shared_thread *t, struct task_struct *task, bool woken)
{
	struct cfs_rq *rq;

	t->quota_rq = 0;
	t->throttled = 0;
	if (!*(volatile uint32_t *)&wait_quota || !bpf_core_field_exists(task->se.cfs_rq))
		return;
	if (bpf_core_field_exists(task->throttled)) {
		t->throttled = !woken && task->throttled;
		if (!t->throttled)
			return;
	}
	rq = task->se.cfs_rq;
	t->quota_rq = (uint64_t)rq;
	t->quota_ns = stopped_ns(rq);
}

/* It runs again. */
static __always_inline void judge_quota(struct shared_thread *t)
{
	uint64_t now, stopped;

	if (!t->quota_rq)
		return;
	now = stopped_ns((void *)t->quota_rq);
	stopped = now > t->quota_ns ? now - t->quota_ns : 0;
	t->throttled_ns = stopped < t->queue_ns ? stopped : t->queue_ns;
	t->quota_rq = 0;
	t->throttled = 0;
}

/*
 * Does chance want the stack of a preempted thread walked? With 2^-rare, which is set by how many were walked on this CPU
 * of late: it depends on no stack, nor on when within a slot of time a thread is preempted. Each step of thin makes the
 * slot in which a few are walked twice as long.
 */
static __always_inline bool preempted_again(struct shared_wait_counts *c, uint64_t now)
{
	uint64_t slot = SHARED_SLOT_NS << thin_now(), passed = now - c->preempt_slot_ns;

	if (passed >= slot) {
		if (passed >= 16 * slot)
			c->preempt_rare = 0;
		else if (c->preempt_walks < SHARED_PREEMPT_WALKS / 2 && c->preempt_rare)
			c->preempt_rare--;
		c->preempt_slot_ns = now;
		c->preempt_walks = 0;
	}
	if (bpf_get_prandom_u32() & ((1u << (c->preempt_rare & 31)) - 1))
		return false;
	if (++c->preempt_walks > SHARED_PREEMPT_WALKS && c->preempt_rare < PREEMPT_RARE_MOST) {
		c->preempt_rare++;
		c->preempt_slot_ns = now;
		c->preempt_walks = 0;
	}
	return true;
}

/*
 * The stack where the thread was interrupted. That can be anywhere, so there is no place to remember it by. It is walked
 * where the last such wait was long, as this one may be as long, and else by chance; or a stack that was drawn from those
 * that were walked stands for it.
 */
static __always_inline uint64_t stack_of_preempted(void *ctx, struct shared_thread *t, uint64_t now)
{
	uint32_t zero = 0, pid = t->account.pid;
	struct unwind *u = bpf_map_lookup_elem(&wait_scratch, &zero);
	struct shared_wait_counts *c = counts_here();

	if (!u || !c)
		return SHARED_STACK_PREEMPTED;
	c->left++;
	if (t->preempt_stack && !(t->preempt_long & t->preempted) && !preempted_again(c, now))
		return t->preempt_stack;
	u->record.pid = pid;
	t->walked = 1;
	return walk(ctx, u, bpf_map_lookup_elem(&processes, &pid), unwind_from_task(u));
}

static __always_inline void leave_cpu(void *ctx, struct task_struct *task, struct task_struct *next, bool preempted, uint64_t now)
{
	struct shared_thread *t = thread_of(task, STATE_RUNNING);
	uint32_t state, tid;

	if (!t)
		return;
	if (is_early(now)) {
		read_kernel(task, &t->kernel_run_ns, &t->kernel_queue_ns);
		t->has_kernel = 1;
	} else {
		begin_thread(t, wait_start_ns);
		settle(t, task, now);
		t->account.switches++;
	}
	t->account.since_ns = now;
	t->left_ns = now;
	t->waker_stack = 0;
	t->waker_tid = 0;
	t->blocked_ns = 0;
	t->queue_ns = 0;
	t->throttled_ns = 0;
	t->walked = 0;
	state = task->__state;
	if (state & 0x80) { /* TASK_DEAD: it will not come back */
		if (!is_early(now)) {
			send_sums(t);
			bpf_probe_read_kernel(t->account.name, sizeof(t->account.name), task->comm);
			bpf_ringbuf_output(&ring, &t->account, sizeof(t->account), BPF_RB_NO_WAKEUP);
		}
		tid = t->account.tid;
		bpf_map_delete_elem(&threads, &tid);
		return;
	}
	if (preempted || !state) {
		t->account.state = STATE_READY;
		t->preempted = next->tgid == task->tgid ? PREEMPTED_BY_OWN : PREEMPTED_BY_OTHER;
		watch_quota(t, task, false);
		t->stack = stack_of_preempted(ctx, t, now);
		t->place = 0;
	} else {
		t->preempted = 0;
		t->quota_rq = 0;
		t->throttled = 0;
		t->account.state = STATE_BLOCKED;
		t->stack = stack_of_sleeper(ctx, t, now);
	}
}

static __always_inline void enter_cpu(struct task_struct *task, uint64_t now)
{
	struct shared_thread *t = thread_of(task, STATE_READY);
	uint64_t passed;

	if (!t)
		return;
	if (!is_early(now))
		begin_thread(t, wait_start_ns);
	passed = now - t->account.since_ns;
	if (t->account.state == STATE_BLOCKED)
		t->blocked_ns = passed;
	else if (t->account.state == STATE_READY)
		t->queue_ns = passed;
	judge_quota(t);
	t->account.state = STATE_RUNNING;
	t->account.since_ns = now;
}

SEC("tp_btf/sched_switch")
int on_switch(uint64_t *ctx)
{
	uint64_t now = bpf_ktime_get_ns();

	if (is_over(now))
		return 0;
	leave_cpu(ctx, (void *)ctx[1], (void *)ctx[2], ctx[0], now);
	enter_cpu((void *)ctx[2], now);
	return 0;
}

/* The waker, where the sleeper has slept long: then its stack is worth its price. */
static __always_inline void note_waker(void *ctx, struct shared_thread *t)
{
	uint64_t id = bpf_get_current_pid_tgid();
	uint32_t zero = 0, pid = id >> 32;
	struct unwind *u = bpf_map_lookup_elem(&wait_scratch, &zero);
	struct shared_process *p = bpf_map_lookup_elem(&processes, &pid);

	if (!u)
		return;
	u->record.pid = pid;
	t->waker_pid = pid;
	t->waker_tid = id;
	bpf_get_current_comm(t->waker_name, sizeof(t->waker_name));
	t->waker_stack = walk(ctx, u, p, p && unwind_from_task(u));
}

SEC("tp_btf/sched_waking")
int on_waking(uint64_t *ctx)
{
	struct shared_thread *t = thread_of((void *)ctx[0], STATE_BLOCKED);
	uint64_t now;

	if (!t || t->account.state != STATE_BLOCKED)
		return 0;
	now = bpf_ktime_get_ns();
	if (is_over(now))
		return 0;
	if (!is_early(now))
		begin_thread(t, wait_start_ns);
	t->blocked_ns = now - t->account.since_ns;
	t->account.state = STATE_READY;
	t->account.since_ns = now;
	watch_quota(t, (void *)ctx[0], true);
	if (t->blocked_ns >= SHARED_LONG_NS)
		note_waker(ctx, t);
	return 0;
}

/* A thread's first wait is for a CPU. */
SEC("tp_btf/sched_wakeup_new")
int on_wakeup_new(uint64_t *ctx)
{
	struct shared_thread *t = is_over(bpf_ktime_get_ns()) ? NULL : thread_of((void *)ctx[0], STATE_READY);

	if (t) {
		t->account.state = STATE_READY;
		t->account.since_ns = bpf_ktime_get_ns();
		t->left_ns = t->account.since_ns;
		t->has_kernel = 1; /* it has nothing yet */
		t->stack = SHARED_STACK_PREEMPTED;
		t->preempted = PREEMPTED_BY_OWN;
	}
	return 0;
}

/* Here the program that we run begins: what its process did before, waiting for us among it, is not its. */
SEC("tp_btf/sched_process_exec")
int on_wait_exec(uint64_t *ctx)
{
	struct shared_thread *t;

	if (!wait_held || wait_held != bpf_get_current_pid_tgid() >> 32)
		return 0;
	wait_held = 0;
	wait_exec_ns = bpf_ktime_get_ns();
	t = thread_of((void *)ctx[0], STATE_RUNNING);
	if (!t)
		return 0;
	t->account.since_ns = wait_exec_ns;
	t->has_kernel = 1; /* that it runs is certain: nothing need be guessed from what came before */
	return 0;
}

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

BPF_MAP(wait_task, PERCPU_ARRAY, 1, uint32_t, struct shared_task);

/* Where the threads of the targets stand before the recording begins: it may be where they stay. Whoever leaves a CPU later than this is seen by
 * on_switch(), which is attached already. */
SEC("iter/task")
int list_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	uint32_t pid, zero = 0;
	struct shared_task *t = bpf_map_lookup_elem(&wait_task, &zero);
	struct pt_regs *regs;
	long bytes;

	if (!task || !t)
		return 0;
	pid = BPF_CORE_READ(task, tgid);
	if (pid == wait_held || !bpf_map_lookup_elem(&processes, &pid))
		return 0;
	t->pid = pid;
	t->tid = BPF_CORE_READ(task, pid);
	t->state = BPF_CORE_READ(task, __state);
	if (bpf_core_field_exists(task->throttled) && BPF_CORE_READ(task, throttled))
		t->state |= SHARED_TASK_THROTTLED;
	/* What is read of one that comes to a CPU meanwhile is wrong, and not used: on_switch() sees it. */
	if (!t->state && bpf_core_field_exists(task->on_cpu) && !BPF_CORE_READ(task, on_cpu))
		t->state = SHARED_TASK_READY;
	regs = (void *)bpf_task_pt_regs((void *)task);
	if (bpf_probe_read_kernel(t->regs, sizeof(t->regs), regs))
		return 0;
	bytes = bpf_get_task_stack((void *)task, t->kernel, sizeof(t->kernel), 0);
	t->kernel_count = bytes > 0 ? (uint32_t)bytes / 8 : 0;
	bpf_seq_write(ctx->meta->seq, t, sizeof(*t));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
