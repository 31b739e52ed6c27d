/*
 * cpu.bpf.c - where the CPU time goes: one stack at each tick of a clock, on every CPU.
 *
 * The clock runs on all CPUs whoever is there; what is not recorded leaves after
 * one look-up. A stack that was sent before is sent as its hash only.
 */
#include "collect/unwind.bpf.h"

/* One for each CPU: the clock's interrupt does not interrupt itself. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct unwind);
} cpu_scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} ring SEC(".maps");

/* Hashes of stacks that were sent; a slot that was overwritten only costs sending one again. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SHARED_SEEN);
	__type(key, uint32_t);
	__type(value, uint64_t);
} seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct shared_counts);
} cpu_counts SEC(".maps");

/*
 * The program's context is struct bpf_perf_event_data: a struct pt_regs, then the
 * period. clang 14 narrows and merges plain loads from it into forms that the
 * verifier refuses, hence the assembly.
 */
#define CONTEXT(n)                                                                    \
	({                                                                            \
		uint64_t v_;                                                          \
		asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(v_) : "r"(ctx), "i"((n) * 8)); \
		v_;                                                                   \
	})
enum { CONTEXT_PERIOD = REGS_COUNT };

/* Appends the kernel's frames to the user's and adds them to the hash; how many there are. */
static __always_inline uint32_t add_kernel_stack(void *ctx, struct unwind *u, uint32_t count)
{
	uint64_t hash = u->hash;
	long bytes;

	if (count > SHARED_MAX_USER_FRAMES)
		return 0;
	bytes = bpf_get_stack(ctx, &u->frames[count], SHARED_MAX_KERNEL_FRAMES * 8, 0);
	if (bytes <= 0)
		return 0;
	for (uint32_t i = 0; i < SHARED_MAX_KERNEL_FRAMES; i++) {
		if (i * 8 >= bytes)
			break;
		hash = unwind_hash(hash, u->frames[count + i]);
	}
	u->hash = hash;
	return (uint32_t)bytes / 8;
}

SEC("perf_event")
int on_cpu_clock(void *ctx)
{
	uint64_t id = bpf_get_current_pid_tgid(), *slot;
	uint32_t pid = id >> 32, zero = 0, kernel_count = 0, count, where;
	struct shared_process *p = bpf_map_lookup_elem(&processes, &pid);
	struct shared_counts *counts;
	struct unwind *u;
	uint64_t size;

	if (!p)
		return 0;
	u = bpf_map_lookup_elem(&cpu_scratch, &zero);
	counts = bpf_map_lookup_elem(&cpu_counts, &zero);
	if (!u || !counts)
		return 0;
	u->record.kind = RECORD_CPU;
	u->record.pid = pid;
	u->record.tid = id;
	u->record.time_ns = bpf_ktime_get_ns();
	u->record.value = CONTEXT(CONTEXT_PERIOD);
	bpf_get_current_comm(u->record.name, sizeof(u->record.name));
	counts->samples++;

	if ((CONTEXT(REGS_CS) & 3) == 3) {
		UNWIND_FROM(u, CONTEXT);
		unwind_user(u, p);
		count = u->count;
	} else {
		if (unwind_from_task(u)) {
			unwind_user(u, p);
		} else {
			u->count = 0;
			u->hash = 0;
			u->reason = REASON_NO_REGISTERS;
		}
		count = u->count;
		kernel_count = add_kernel_stack(ctx, u, count);
	}
	if (count > SHARED_MAX_USER_FRAMES || kernel_count > SHARED_MAX_KERNEL_FRAMES)
		return 0;
	counts->guessed += u->guessed;
	u->record.user_count = count;
	u->record.kernel_count = kernel_count;
	u->record.reason = u->reason;
	u->record.stack = unwind_hash(u->hash, (uint64_t)count << 32 | kernel_count << 8 | u->reason);

	where = u->record.stack >> 47;
	_Static_assert(SHARED_SEEN == 1 << 17, "the shift above");
	slot = bpf_map_lookup_elem(&seen, &where);
	u->record.has_frames = !slot || *slot != u->record.stack;
	size = sizeof(u->record);
	if (u->record.has_frames)
		size += (count + kernel_count) * 8;
	if (bpf_ringbuf_output(&ring, &u->record, size, BPF_RB_NO_WAKEUP)) {
		counts->ring_full++;
	} else if (u->record.has_frames && slot) {
		*slot = u->record.stack;
		counts->stacks_sent++;
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
