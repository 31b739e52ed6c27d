/*
 * alloc.bpf.c - allocation rate: jemalloc's own count of bytes, each time that it looks at it (alloc.c).
 *
 * The program runs at the first instruction of te_event_trigger(tsd, ctx). What ctx points to, in all
 * versions that have this function:
 *
 *	bool is_alloc; uint64_t *current, *last_event, ...
 *
 * bytes that the thread has allocated (or freed) so far, and what that was at the last event.
 */
#include "collect/scratch.bpf.h"

#define TOO_MUCH (1ULL << 42) /* between two events of a thread */

SCRATCH_MAP(alloc_scratches);
PROBE_NO_PROGRAMS(alloc_no_programs);

BPF_MAP(alloc_counts, PERCPU_ARRAY, 1, uint32_t, struct shared_alloc_counts);

bool alloc_paused;

/* Returns the bytes that the thread allocated since the last event; 0: the event is not about allocating. */
static __always_inline uint64_t read_bytes(uint64_t at, struct shared_alloc_counts *c)
{
	uint64_t places[3], current, last;

	if (bpf_probe_read_user(places, sizeof(places), (void *)at) || (places[0] & 0xff) > 1) {
		SCRATCH_COUNT(c->odd);
		return 0;
	}
	if (!(places[0] & 0xff))
		return 0;
	if (bpf_probe_read_user(&current, sizeof(current), (void *)places[1]) ||
	    bpf_probe_read_user(&last, sizeof(last), (void *)places[2]) || current - last >= TOO_MUCH) {
		SCRATCH_COUNT(c->odd);
		return 0;
	}
	return current - last;
}

SEC("uprobe")
int on_alloc_rate(void *ctx)
{
	uint64_t id = bpf_get_current_pid_tgid();
	uint32_t pid = id >> 32, zero = 0;
	struct shared_process *p = bpf_map_lookup_elem(&processes, &pid);
	struct shared_alloc_counts *c = bpf_map_lookup_elem(&alloc_counts, &zero);
	struct shared_alloc r = { .kind = RECORD_ALLOC, .pid = pid, .tid = id };
	struct scratch *s;

	PROBE_USE_TASK_STACK(ctx, alloc_no_programs);
	if (!p || !c || alloc_paused)
		return 0;
	SCRATCH_COUNT(c->hits);
	/* Half of them are about freeing. */
	r.bytes = read_bytes(*(uint64_t *)(ctx + REGS_2ND * 8), c);
	if (!r.bytes)
		return 0;
	s = scratch_take(&alloc_scratches);
	if (!s) {
		SCRATCH_COUNT(c->lost);
		return 0;
	}
	s->u.record.kind = RECORD_STACK;
	s->u.record.pid = pid;
	s->u.record.kernel_count = 0;
	if (unwind_from_task(&s->u))
		unwind_user(&s->u, p);
	else
		unwind_nothing(&s->u);
	if (unwind_send(&s->u, false) == UNWIND_RING_FULL)
		SCRATCH_COUNT(c->lost);
	r.stack = s->u.record.stack;
	scratch_give(s);
	r.time_ns = bpf_ktime_get_ns();
	if (bpf_ringbuf_output(&ring, &r, sizeof(r), BPF_RB_NO_WAKEUP))
		SCRATCH_COUNT(c->lost);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
