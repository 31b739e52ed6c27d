/*
 * cpu.bpf.c - where the CPU time goes: one stack at each tick of a clock, on every CPU.
 *
 * The clock runs on all CPUs whoever is there; what is not recorded leaves after
 * a look at one bit. A stack that was sent before is sent as its hash only.
 */
#include "collect/unwind/unwind.bpf.h"

#include "collect/cpu/copy.bpf.h"

/* Per CPU: the clock's interrupt does not interrupt itself. */
BPF_MAP(cpu_scratch, PERCPU_ARRAY, 1, uint32_t, struct unwind);

TRAIL_MAP(cpu_trails);

/* What a tick stands for. The context has the period that the clock was opened with, also when it ticks at another rate. */
uint64_t cpu_period_ns;

BPF_MAP(cpu_counts, PERCPU_ARRAY, 1, uint32_t, struct shared_counts);

SEC("perf_event")
int on_cpu_clock(void *ctx)
{
	uint64_t id = bpf_get_current_pid_tgid();
	bool from_user = CONTEXT_IN_USER();
	uint32_t pid = id >> 32, zero = 0;
	struct shared_process *p = unwind_may_be_ours(pid) ? bpf_map_lookup_elem(&processes, &pid) : NULL;
	struct shared_counts *counts;
	struct trail *trail;
	struct unwind *u;

	if (!p)
		return 0;
	u = bpf_map_lookup_elem(&cpu_scratch, &zero);
	counts = bpf_map_lookup_elem(&cpu_counts, &zero);
	trail = trail_of(&cpu_trails, id);
	if (!u || !counts || !trail)
		return 0;
	u->record.kind = RECORD_CPU;
	u->record.pid = pid;
	u->record.tid = id;
	u->record.time_ns = bpf_ktime_get_ns();
	u->record.value = *(volatile uint64_t *)&cpu_period_ns;
	bpf_get_current_comm(u->record.name, sizeof(u->record.name));
	counts->samples++;

	u->record.kernel_count = 0;
	if (from_user)
		UNWIND_FROM(u, CONTEXT);
	if (from_user || unwind_from_task(u))
		unwind_along(u, p, trail);
	else
		unwind_nothing(u);
	if (!from_user)
		unwind_kernel(ctx, u, UNWIND_INTERRUPTED);
	counts->guessed += u->guessed & UNWIND_GUESSED;
	counts->derived += (u->guessed & UNWIND_DERIVED) != 0;
	counts->no_memory += u->no_memory;
	if ((u->reason == REASON_NO_MAPPING || u->reason == REASON_NO_TABLE_YET) && copy_send(ctx, u)) {
		counts->copies++;
		return 0;
	}
	switch (unwind_send(u, true)) {
	case UNWIND_SENT_FRAMES:
		counts->stacks_sent++;
		break;
	case UNWIND_RING_FULL:
		counts->ring_full++;
		break;
	case UNWIND_SENT:
		break;
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
