/*
 * task.bpf.c - stacks of wakes and spawns of tasks (task.c).
 *
 * A wake that was drawn passes the hook's uprobe, where rax is its ticket and the stack is the waker's: rsp points to the
 * return address of its call of schedule(). A spawn passes a place in the program that is run once for each task of a type.
 */
#include "collect/scratch.bpf.h"

#include "collect/task/sharedtask.h"

SCRATCH_MAP(task_scratches);
/* One for each: they are attached in different ways (uprobes_prepare()). */
PROBE_NO_PROGRAMS(task_no_wakes);
PROBE_NO_PROGRAMS(task_no_spawns);

BPF_MAP(task_counts, PERCPU_ARRAY, 1, uint32_t, struct shared_task_counts);
/* Hits of each place; threads may race, and some more stacks be walked. */
BPF_MAP(task_places, ARRAY, SHARED_TASK_PLACES, uint32_t, uint64_t);

bool task_paused;
uint32_t task_rare; /* after the first ones, one in 2^rare spawns of a place is walked */

/* Walks the current stack. called: from the caller of what has just been called. Its hash, 0: it could not be taken. */
static __always_inline uint64_t walk(struct shared_process *p, uint32_t pid, struct shared_task_counts *c, bool called)
{
	struct scratch *s = scratch_take(&task_scratches);
	uint64_t stack;
	bool known;

	if (!s) {
		SCRATCH_COUNT(c->lost);
		return 0;
	}
	s->u.record.kind = RECORD_STACK;
	s->u.record.pid = pid;
	s->u.record.kernel_count = 0;
	known = unwind_from_task(&s->u);
	if (known && called)
		known = UNWIND_LEAVE(&s->u);
	if (known)
		unwind_user(&s->u, p);
	else
		unwind_nothing(&s->u);
	if (unwind_send(&s->u, false) == UNWIND_RING_FULL)
		SCRATCH_COUNT(c->lost);
	stack = s->u.record.stack;
	scratch_give(s);
	SCRATCH_COUNT(c->walked);
	return stack;
}

SEC("uprobe")
int on_task_wake(void *ctx)
{
	uint64_t id = bpf_get_current_pid_tgid();
	uint32_t pid = id >> 32, zero = 0;
	struct shared_process *p = bpf_map_lookup_elem(&processes, &pid);
	struct shared_task_counts *c = bpf_map_lookup_elem(&task_counts, &zero);
	struct shared_task_wake r = { .kind = RECORD_TASK_WAKE, .pid = pid, .tid = id };

	PROBE_USE_TASK_STACK(ctx, task_no_wakes);
	if (!p || !c || task_paused)
		return 0;
	SCRATCH_COUNT(c->wakes);
	r.ticket = *(uint64_t *)(ctx + REGS_TASK_TICKET * 8);
	r.stack = walk(p, pid, c, true);
	if (bpf_ringbuf_output(&ring, &r, sizeof(r), BPF_RB_NO_WAKEUP))
		SCRATCH_COUNT(c->lost);
	return 0;
}

SEC("uprobe")
int on_task_spawn(void *ctx)
{
	uint64_t id = bpf_get_current_pid_tgid(), *hits;
	uint32_t pid = id >> 32, zero = 0, place = bpf_get_attach_cookie(ctx);
	struct shared_process *p = bpf_map_lookup_elem(&processes, &pid);
	struct shared_task_counts *c = bpf_map_lookup_elem(&task_counts, &zero);
	struct shared_task_spawn r = { .kind = RECORD_TASK_SPAWN, .pid = pid, .tid = id, .place = place };

	PROBE_USE_TASK_STACK(ctx, task_no_spawns);
	if (!p || !c || task_paused)
		return 0;
	r.time_ns = bpf_ktime_get_ns();
	SCRATCH_COUNT(c->spawns);
	hits = bpf_map_lookup_elem(&task_places, &place);
	if (hits && ((*hits)++ < SHARED_TASK_WALKS || !(bpf_get_prandom_u32() & ((1u << (task_rare & 31)) - 1))))
		r.stack = walk(p, pid, c, false);
	if (bpf_ringbuf_output(&ring, &r, sizeof(r), BPF_RB_NO_WAKEUP))
		SCRATCH_COUNT(c->lost);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
