/*
 * hw.bpf.c - the processor's counters, and the kernel's, by stack: a sample each time one of them has gone so far.
 *
 * Each counter is sampled by itself. Reading all of them at the ticks of one would give every function
 * the mean of all that ran since the tick before. A record also says how long the counter was enabled and
 * how long it ran: more counters than the processor has are multiplexed.
 *
 * The kernel's own events (faults, switches, migrations) come here one by one, and none is lost: those of a
 * thread at one place are summed until its stack may be taken again; the rest is read at the end, or when
 * the place is not used any more.
 */
#include "collect/unwind/stackcache.bpf.h"

/* Per CPU: the kernel lets no program of perf events interrupt another. */
BPF_MAP(hw_scratch, PERCPU_ARRAY, 1, uint32_t, struct unwind);

BPF_MAP(hw_counts, PERCPU_ARRAY, 1, uint32_t, struct shared_hw_counts);

/* Made in advance: a switch holds the lock of the run queue. */
BPF_MAP(hw_pending, HASH, SHARED_HW_PENDING, struct shared_hw_key, struct shared_hw_pending);

uint64_t hw_gap_ns; /* between two stacks of one thread, counter and place */

/* The user registers of the sample at hand into u. False: there are none. */
static __always_inline bool take_registers(void *ctx, struct unwind *u, bool in_user)
{
	if (!in_user)
		return unwind_from_task(u);
	UNWIND_FROM(u, CONTEXT);
	return true;
}

/* Its stack, made known. */
static __always_inline uint64_t walk(void *ctx, struct unwind *u, struct shared_process *p, bool user, bool kernel)
{
	unwind_start(u, p, user);
	if (kernel)
		unwind_kernel(ctx, u, UNWIND_INTERRUPTED);
	unwind_send(u, false);
	return u->record.stack;
}

/* Takes what the thread has here since its last stack. False: another stack would be too soon. */
static __always_inline bool add_up(struct shared_hw *r, struct unwind *u, struct shared_hw_pending **ret)
{
	struct shared_hw_key key = { .tid = r->tid, .counter = r->counter };
	struct shared_hw_pending *p;

	key.place = unwind_hash(stackcache_key(r->tid, r->counter, u), stackcache_callers(u->sp, u->saved));
	p = bpf_map_lookup_elem(&hw_pending, &key);
	*ret = NULL;
	if (!p) {
		struct shared_hw_pending none = { .pid = r->pid };

		bpf_map_update_elem(&hw_pending, &key, &none, BPF_NOEXIST);
		p = bpf_map_lookup_elem(&hw_pending, &key);
	}
	if (!p)
		return true; /* no room: it is sent by itself */
	/* A thread is on one CPU at a time: nobody else writes here. */
	p->count += r->period;
	if (p->last_ns && r->time_ns - p->last_ns < hw_gap_ns)
		return false;
	r->period = p->count;
	p->count = 0;
	p->last_ns = r->time_ns;
	*ret = p;
	return true;
}

SEC("perf_event")
int on_hw(void *ctx)
{
	uint64_t id = bpf_get_current_pid_tgid();
	uint32_t pid = id >> 32, zero = 0;
	struct shared_process *p = bpf_map_lookup_elem(&processes, &pid);
	struct bpf_perf_event_value value = { 0 };
	struct shared_hw r = { .kind = RECORD_HW, .pid = pid, .tid = id };
	struct shared_hw_pending *pending = NULL;
	struct shared_hw_counts *counts;
	struct unwind *u;
	bool in_user, user;

	if (!p)
		return 0;
	u = bpf_map_lookup_elem(&hw_scratch, &zero);
	counts = bpf_map_lookup_elem(&hw_counts, &zero);
	if (!u || !counts)
		return 0;
	r.counter = bpf_get_attach_cookie(ctx);
	r.cpu = bpf_get_smp_processor_id();
	r.time_ns = bpf_ktime_get_ns();
	r.period = CONTEXT(CONTEXT_PERIOD);
	in_user = CONTEXT_IN_USER();
	user = take_registers(ctx, u, in_user);
	if (r.counter >= SHARED_HW_ONE_BY_ONE && r.counter < SHARED_HW_PROCESSOR && user && !add_up(&r, u, &pending))
		return 0;
	if (!bpf_perf_prog_read_value(ctx, &value, sizeof(value))) {
		r.enabled_ns = value.enabled;
		r.running_ns = value.running;
	}
	bpf_get_current_comm(r.name, sizeof(r.name));
	u->record.pid = pid;
	r.stack = walk(ctx, u, p, user, !in_user);
	if (pending)
		pending->stack = r.stack;
	counts->samples++;
	if (bpf_ringbuf_output(&ring, &r, sizeof(r), BPF_RB_NO_WAKEUP))
		counts->lost++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
