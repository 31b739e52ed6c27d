/*
 * goroutine.bpf.c - goroutines that are parked, made ready and run (goroutine.c).
 *
 * The program runs at the conditional jump with which runtime.gopark, runtime.ready and runtime.execute begin
 * (goplaces.h), where the arguments are still in registers:
 *
 *	gopark(unlock, lock, reason, …)  by the goroutine itself, which is in r14 (arm64: x28); its stack is that of the wait
 *	ready(g, …)                      by the one that ends the wait, on the stack of its thread's scheduler
 *	execute(g, …)                    by the scheduler of a thread
 *
 * A wait lasts from gopark to ready. The runtime makes some goroutines ready without it (the network poller, the
 * garbage collector); such a wait ends when the goroutine runs.
 *
 * Go keeps frame pointers, so the callers are read along them in a fraction of the time that unwinding takes. The stack
 * is remembered by them: it is unwound where they are new, and by chance now and then. The chain goes on where the
 * runtime switches stacks.
 */
#include "collect/scratch.bpf.h"
#include "collect/unwind/stackcache.bpf.h"

#include "collect/goroutine/sharedgo.h"

SCRATCH_MAP(go_scratches);
PROBE_NO_PROGRAMS(go_no_programs);

BPF_MAP(go_parked, HASH, SHARED_GO_PARKED, struct shared_go_key, struct shared_go_parked);

/* Programs add to one of them, user space reads and empties the other. */
BPF_MAP(go_sums_0, HASH, SHARED_GO_SUMS, struct shared_go_sum_key, struct shared_go_sum);
BPF_MAP(go_sums_1, HASH, SHARED_GO_SUMS, struct shared_go_sum_key, struct shared_go_sum);

BPF_MAP(go_counts, PERCPU_ARRAY, 1, uint32_t, struct shared_go_counts);

bool go_paused;
uint32_t go_side;                  /* the sums that are added to */
uint64_t go_limit;                 /* long waits kept one by one, a second */
uint64_t go_second_ns, go_taken;   /* in this one; threads may race for it, and some more be taken */

struct frame {
	uint64_t bp, back;
};

/* The callers, as a key of the stack cache. */
static __always_inline uint64_t path_of(void *ctx, uint32_t pid, uint32_t what)
{
	uint64_t sp = *(uint64_t *)(ctx + REGS_SP * 8), bp = *(uint64_t *)(ctx + REGS_BP * 8);
	uint64_t hash = (uint64_t)pid << 32 | what, back = 0;
	struct frame f;

#ifdef __TARGET_ARCH_arm64
	back = *(uint64_t *)(ctx + REGS_LR * 8);
#else
	if (bpf_probe_read_user(&back, sizeof(back), (void *)sp))
		return unwind_hash(hash, sp);
#endif
	hash = unwind_hash(hash, back);
	for (int i = 0; i < SHARED_GO_DEPTH; i++) {
		if (bpf_probe_read_user(&f, sizeof(f), (void *)bp))
			return hash;
		hash = unwind_hash(hash, f.back);
		if (!f.bp || f.bp == bp)
			return hash;
		bp = f.bp;
	}
	/* Deeper than was looked: where the stack is tells it from others. */
	return unwind_hash(hash, sp);
}

/* Walks the current stack and makes it known. Its hash, 0: it could not be taken. */
static __always_inline uint64_t walk(struct shared_process *p, uint32_t pid, struct shared_go_counts *c, bool *ret_worth)
{
	struct scratch *s = scratch_take(&go_scratches);
	uint64_t stack;

	if (!s) {
		SCRATCH_COUNT(c->lost);
		return 0;
	}
	s->u.record.pid = pid;
	unwind_start(&s->u, p, unwind_from_task(&s->u));
	if (unwind_send(&s->u, false) == UNWIND_RING_FULL)
		SCRATCH_COUNT(c->lost);
	stack = s->u.record.stack;
	*ret_worth = stackcache_worth(&s->u);
	scratch_give(s);
	SCRATCH_COUNT(c->walked);
	return stack;
}

/* The stack from which a probe was reached. */
static __always_inline uint64_t stack_of(void *ctx, struct shared_process *p, uint32_t pid, uint32_t what,
					 struct shared_go_counts *c)
{
	uint64_t key = path_of(ctx, pid, what), stack;
	struct stackcache *place = stackcache_of(key);
	bool known = place && stackcache_known(place, key), worth = false;

	if (known && bpf_get_prandom_u32() & 255) {
		SCRATCH_COUNT(c->remembered);
		return place->stack;
	}
	stack = walk(p, pid, c, &worth);
	if (place && worth)
		stackcache_set(place, key, stack);
	return stack;
}

static __always_inline bool take_one(uint64_t now)
{
	if (now - go_second_ns >= 1000000000) {
		go_second_ns = now;
		go_taken = 0;
	}
	if (go_taken >= go_limit)
		return false;
	__sync_fetch_and_add(&go_taken, 1);
	return true;
}

static __always_inline void park(void *ctx, struct shared_process *p, uint32_t file, struct shared_go_counts *c, uint64_t now)
{
	struct shared_go_key key = { *(uint64_t *)(ctx + REGS_GO_G * 8), bpf_get_current_pid_tgid() >> 32, 0 };
	struct shared_go_parked w = { .since_ns = now };

	SCRATCH_COUNT(c->parks);
	w.reason = file << GO_REASON_BITS | (*(uint64_t *)(ctx + REGS_GO_3RD * 8) & 0xff);
	w.stack = stack_of(ctx, p, key.pid, GO_PARK, c);
	if (bpf_map_update_elem(&go_parked, &key, &w, BPF_ANY))
		SCRATCH_COUNT(c->no_room);
}

static __always_inline void ready(void *ctx, struct shared_process *p, struct shared_go_counts *c, uint64_t now)
{
	uint64_t id = bpf_get_current_pid_tgid();
	struct shared_go_key key = { *(uint64_t *)(ctx + REGS_GO_1ST * 8), id >> 32, 0 };
	struct shared_go_parked *w = bpf_map_lookup_elem(&go_parked, &key);

	if (!w) {
		SCRATCH_COUNT(c->before);
		return;
	}
	if (now - w->since_ns >= SHARED_LONG_NS) {
		w->waker_stack = stack_of(ctx, p, key.pid, GO_READY, c);
		w->waker_tid = id;
	}
	w->ready_ns = now;
}

static __always_inline void add(void *map, const struct shared_go_wait *r, struct shared_go_counts *c)
{
	struct shared_go_sum_key key = { r->stack, r->pid, r->reason };
	struct shared_go_sum one = { 1, r->wait_ns, r->queue_ns, r->time_ns };
	struct shared_go_sum *sum = bpf_map_lookup_elem(map, &key);

	if (!sum) {
		if (!bpf_map_update_elem(map, &key, &one, BPF_NOEXIST))
			return;
		/* Another thread was first, or there is no room. */
		sum = bpf_map_lookup_elem(map, &key);
	}
	if (!sum) {
		SCRATCH_COUNT(c->lost);
		return;
	}
	__sync_fetch_and_add(&sum->count, 1);
	__sync_fetch_and_add(&sum->wait_ns, r->wait_ns);
	__sync_fetch_and_add(&sum->queue_ns, r->queue_ns);
}

static __always_inline void run(void *ctx, struct shared_go_counts *c, uint64_t now)
{
	struct shared_go_key key = { *(uint64_t *)(ctx + REGS_GO_1ST * 8), bpf_get_current_pid_tgid() >> 32, 0 };
	struct shared_go_parked *w = bpf_map_lookup_elem(&go_parked, &key);
	struct shared_go_wait r = { .kind = RECORD_GO_WAIT, .pid = key.pid };
	uint64_t end;

	if (!w)
		return;
	end = w->ready_ns ? w->ready_ns : now;
	r.time_ns = w->since_ns;
	r.wait_ns = end - w->since_ns;
	r.queue_ns = now - end;
	r.stack = w->stack;
	r.waker_stack = w->waker_stack;
	r.waker_tid = w->waker_tid;
	r.reason = w->reason;
	if (!w->ready_ns)
		SCRATCH_COUNT(c->unready);
	bpf_map_delete_elem(&go_parked, &key);
	if (r.wait_ns + r.queue_ns >= SHARED_LONG_NS && take_one(now)) {
		if (bpf_ringbuf_output(&ring, &r, sizeof(r), BPF_RB_NO_WAKEUP))
			SCRATCH_COUNT(c->lost);
		return;
	}
	if (*(volatile uint32_t *)&go_side)
		add(&go_sums_1, &r, c);
	else
		add(&go_sums_0, &r, c);
}

SEC("uprobe")
int on_goroutine(void *ctx)
{
	uint32_t pid = bpf_get_current_pid_tgid() >> 32, zero = 0, cookie = bpf_get_attach_cookie(ctx);
	struct shared_process *p = bpf_map_lookup_elem(&processes, &pid);
	struct shared_go_counts *c = bpf_map_lookup_elem(&go_counts, &zero);
	uint64_t now = bpf_ktime_get_ns();

	PROBE_USE_TASK_STACK(ctx, go_no_programs);
	if (!p || !c || go_paused)
		return 0;
	SCRATCH_COUNT(c->hits);
	switch (cookie & GO_WHAT) {
	case GO_PARK:
		park(ctx, p, cookie >> GO_FILE_SHIFT, c, now);
		break;
	case GO_READY:
		ready(ctx, p, c, now);
		break;
	case GO_RUN:
		run(ctx, c, now);
		break;
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
