/*
 * heap.bpf.c - sampled allocations and frees, as the hooks in the target pass by (blob/blob.h).
 *
 * The programs run at uprobes, where the registers are those that hooksx86.S and hooksarm64.S promise: REGS_HEAP_ADDRESS,
 * REGS_HEAP_BYTES and REGS_HEAP_INTERVAL of an allocation, REGS_HEAP_FREED of a free.
 */
#include "collect/scratch.bpf.h"

SCRATCH_MAP(heap_scratches);
PROBE_NO_PROGRAMS(heap_no_programs);

BPF_MAP(heap_counts, PERCPU_ARRAY, 1, uint32_t, struct shared_heap_counts);

bool heap_paused;

/* A program that we started is stopped whenever it executes another one, until that has hooks. */
uint32_t heap_exec_pid;
uint64_t heap_execs; /* how often it was */

enum { STOP = 19 /* SIGSTOP */ };

static __always_inline void send(struct shared_heap *r, struct shared_heap_counts *c)
{
	uint64_t id = bpf_get_current_pid_tgid();

	r->kind = RECORD_HEAP;
	r->pid = id >> 32;
	r->tid = id;
	r->time_ns = bpf_ktime_get_ns();
	SCRATCH_COUNT(c->samples);
	if (bpf_ringbuf_output(&ring, r, sizeof(*r), BPF_RB_NO_WAKEUP))
		SCRATCH_COUNT(c->ring_full);
}

/*
 * The stack of the hook's caller, and two of the registers that it stopped with; these are 0 when there are none. The
 * stack begins where the hook was called: it has done nothing to it. False: nobody is to be told.
 */
static __always_inline bool take_stack(struct shared_heap_counts *c, uint32_t pid, int first, uint64_t *ret_first, int second,
				       uint64_t *ret_second, uint64_t *ret_stack)
{
	struct shared_process *p = bpf_map_lookup_elem(&processes, &pid);
	struct scratch *s;

	if (!p)
		return false;
	s = scratch_take(&heap_scratches);
	if (!s) {
		SCRATCH_COUNT(c->busy);
		return false;
	}
	s->u.record.kind = RECORD_STACK;
	s->u.record.pid = pid;
	s->u.record.kernel_count = 0;
	if (unwind_from_task(&s->u) && UNWIND_LEAVE(&s->u)) {
		*ret_first = s->u.saved[first];
		*ret_second = s->u.saved[second];
		unwind_user(&s->u, p);
	} else {
		unwind_nothing(&s->u);
	}
	if (unwind_send(&s->u, false) == UNWIND_RING_FULL)
		SCRATCH_COUNT(c->ring_full);
	*ret_stack = s->u.record.stack;
	scratch_give(s);
	return *ret_first;
}

SEC("uprobe")
int on_heap_alloc(void *ctx)
{
	uint32_t pid = bpf_get_current_pid_tgid() >> 32, zero = 0;
	struct shared_heap_counts *c = bpf_map_lookup_elem(&heap_counts, &zero);
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	uint64_t *regs = (void *)bpf_task_pt_regs((void *)task);
	struct shared_heap r = { .what = HEAP_ALLOCATED };

	PROBE_USE_TASK_STACK(ctx, heap_no_programs);
	if (!c || heap_paused || !take_stack(c, pid, REGS_HEAP_ADDRESS, &r.address, REGS_HEAP_BYTES, &r.bytes, &r.stack))
		return 0;
	bpf_probe_read_kernel(&r.interval, sizeof(r.interval), regs + REGS_HEAP_INTERVAL);
	send(&r, c);
	return 0;
}

/* REGS_HEAP_TICKET is one more than the ticket of the event, which is valid once we return. */
SEC("uprobe")
int on_heap_exact(void *ctx)
{
	uint64_t id = bpf_get_current_pid_tgid();
	uint32_t pid = id >> 32, zero = 0;
	struct shared_heap_counts *c = bpf_map_lookup_elem(&heap_counts, &zero);
	struct shared_heap_stack r = { .kind = RECORD_HEAP_STACK, .pid = pid, .tid = id };

	PROBE_USE_TASK_STACK(ctx, heap_no_programs);
	if (!c || !take_stack(c, pid, REGS_SP, &r.sp, REGS_HEAP_TICKET, &r.ticket, &r.stack))
		return 0;
	r.ticket--;
	SCRATCH_COUNT(c->samples);
	if (bpf_ringbuf_output(&ring, &r, sizeof(r), BPF_RB_NO_WAKEUP))
		SCRATCH_COUNT(c->ring_full);
	return 0;
}

SEC("uprobe")
int on_heap_free(void *ctx)
{
	uint32_t pid = bpf_get_current_pid_tgid() >> 32, zero = 0;
	struct shared_heap_counts *c = bpf_map_lookup_elem(&heap_counts, &zero);
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	uint64_t *regs = (void *)bpf_task_pt_regs((void *)task), what = 0;
	struct shared_heap r = { 0 };

	PROBE_USE_TASK_STACK(ctx, heap_no_programs);
	if (!c || !bpf_map_lookup_elem(&processes, &pid) || heap_paused)
		return 0;
	bpf_probe_read_kernel(&r.address, sizeof(r.address), regs + REGS_HEAP_FREED);
	bpf_probe_read_kernel(&what, sizeof(what), regs + REGS_HEAP_WHAT);
	r.what = what & 2 ? HEAP_FREED_AT_ONCE : HEAP_FREED;
	send(&r, c);
	return 0;
}

SEC("raw_tp/sched_process_exec")
int on_heap_exec(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];

	if (heap_exec_pid && (uint32_t)BPF_CORE_READ(task, tgid) == heap_exec_pid && !bpf_send_signal(STOP))
		__sync_fetch_and_add(&heap_execs, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
