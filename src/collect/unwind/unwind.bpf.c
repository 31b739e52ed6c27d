/*
 * unwind.bpf.c - the shared unwinder, and what keeps the set of recorded processes
 * right from inside the kernel (fork and exec cannot wait for user space).
 *
 * Written for the verifiers from 5.15 on and clang 14: searches are branch-free
 * (a branch in each step would double the states at each step), and indexes are
 * masked right before they are used.
 */
#define UNWIND_DEFINE
#include "collect/unwind/unwind.bpf.h"

/* Processes with more than SHARED_FEW_MAPPINGS. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SHARED_MAX_LARGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, uint32_t);
	__type(value, struct shared_large);
} large SEC(".maps");

/* The largest i in [0, count) with keys below or at the wanted one; STEP halves. 1 if a <= b, without a branch. */
static __always_inline uint64_t not_above(uint64_t a, uint64_t b)
{
	return ((b - a) >> 63) ^ 1;
}

/* clang drops a mask that it finds needless; the verifier of 6.1 does not find the same. */
static __always_inline uint64_t masked(uint64_t i, uint64_t mask)
{
	asm volatile("" : "+r"(i));
	return i & mask;
}

#define SEARCH(position, count, step, key_at, wanted)                                      \
	do {                                                                               \
		uint64_t next_ = (position) + (step);                                      \
		uint64_t in_ = not_above(next_ + 1, (count));                              \
		uint64_t at_ = next_ & -in_;                                               \
		uint64_t take_ = in_ & not_above(key_at(at_), (wanted));                   \
		(position) += (step) & -take_;                                             \
	} while (0)

#define SEARCH_64(position, count, key_at, wanted)              \
	do {                                                    \
		SEARCH(position, count, 32, key_at, wanted);    \
		SEARCH(position, count, 16, key_at, wanted);    \
		SEARCH(position, count, 8, key_at, wanted);     \
		SEARCH(position, count, 4, key_at, wanted);     \
		SEARCH(position, count, 2, key_at, wanted);     \
		SEARCH(position, count, 1, key_at, wanted);     \
	} while (0)

#define SEARCH_4096(position, count, key_at, wanted)            \
	do {                                                    \
		SEARCH(position, count, 2048, key_at, wanted);  \
		SEARCH(position, count, 1024, key_at, wanted);  \
		SEARCH(position, count, 512, key_at, wanted);   \
		SEARCH(position, count, 256, key_at, wanted);   \
		SEARCH(position, count, 128, key_at, wanted);   \
		SEARCH(position, count, 64, key_at, wanted);    \
		SEARCH_64(position, count, key_at, wanted);     \
	} while (0)

static __always_inline const struct shared_mapping *find_few(struct shared_process *p, uint64_t pc)
{
	uint64_t at = 0, count = p->count;

#define KEY(i) (p->mappings[masked((i), SHARED_FEW_MAPPINGS - 1)].start)
	SEARCH_64(at, count, KEY, pc);
#undef KEY
	return &p->mappings[masked(at, SHARED_FEW_MAPPINGS - 1)];
}

static __always_inline const struct shared_mapping *find_many(struct shared_large *p, uint64_t pc)
{
	uint64_t at = 0, count = p->count;

#define KEY(i) (p->mappings[masked((i), SHARED_MANY_MAPPINGS - 1)].start)
	SEARCH_4096(at, count, KEY, pc);
#undef KEY
	return &p->mappings[masked(at, SHARED_MANY_MAPPINGS - 1)];
}

#include "collect/unwind/young.bpf.h"

/* Puts the mapping of pc into u->last. */
static __always_inline bool find_mapping(struct unwind *u, struct shared_process *p, uint64_t pc)
{
	const struct shared_mapping *m;

	if (pc - u->last.start < u->last.end - u->last.start)
		return true;
	if (p->large) {
		uint32_t pid = u->record.pid;
		struct shared_large *l = bpf_map_lookup_elem(&large, &pid);

		if (!l)
			return false;
		m = find_many(l, pc);
	} else {
		m = find_few(p, pc);
	}
	if (pc - m->start >= m->end - m->start)
		return false;
	u->last.start = m->start;
	u->last.end = m->end;
	u->last.bias = m->bias;
	u->last.module = m->module;
	return true;
}

#include "collect/unwind/rules.bpf.h"

static __always_inline bool read_word(uint64_t address, uint64_t *ret)
{
	return bpf_probe_read_user(ret, 8, (void *)address) == 0;
}

static __always_inline int stop(struct unwind *u, uint32_t reason)
{
	u->reason = reason;
	return 1;
}

/* Of a step: it has gone to the caller; the stack ends, u->reason says why; or what is seldom needed comes next: a mapping of a
 * young process, the row that was read from the code (u->rule), the search for a return address, and the same where the code
 * is not what the row was read from. */
enum step_result { STEP_ON, STEP_END, STEP_YOUNG, STEP_DERIVED, STEP_SEARCH, STEP_SEARCH_REWRITTEN };

/* A return address may be the first byte of the next function: the byte before it is the call's. */
static __always_inline uint64_t pc_of(const struct unwind *u)
{
	return u->pc - (u->leaf ? 0 : 1);
}

#ifdef __TARGET_ARCH_arm64
#include "collect/unwind/steparm64.bpf.h"
#else
#include "collect/unwind/stepx86.bpf.h"
#endif

#include "collect/unwind/stepping.bpf.h"

/*
 * The same, whatever it takes; 1 = the stack ends here. The parts are called from here and not from one another: programs
 * that call one another have 512 bytes of stack together (6.13 gives most of them their own).
 */
__attribute__((noinline)) int unwind_next(struct unwind *u, struct shared_process *p, struct trail *t)
{
	int result;

	if (!u || !p)
		return STEP_END;
	result = unwind_step(u, p, t);
	if (result == STEP_YOUNG && unwind_young(u, pc_of(u)))
		result = unwind_step(u, p, t);
	if (result == STEP_YOUNG && u->leaf && unwind_stepping(u))
		result = unwind_step(u, p, t);
	if (result == STEP_YOUNG)
		return stop(u, REASON_NO_MAPPING);
	if (result == STEP_DERIVED)
		result = unwind_derived(u, p, u->rule);
	if (result == STEP_SEARCH || result == STEP_SEARCH_REWRITTEN)
		result = unwind_guess(u, p, result == STEP_SEARCH_REWRITTEN);
	return result;
}

#include "collect/unwind/walk.bpf.h"

/*
 * Recorded processes are known by pid, and pids are reused. A pid is assigned only by a fork, and on_fork()
 * runs before the child does: the entry of a process that had the pid before is replaced or removed then, so
 * that no other process is ever taken for it, and samples need to check only the pid. on_free() removes old
 * entries earlier, so that there is room.
 */
uint64_t processes_full; /* children that found no room */
uint64_t versions;       /* given out here; those of user space are below 1 << 63 */

static __always_inline uint64_t new_version(void)
{
	return 1ULL << 63 | __sync_fetch_and_add(&versions, 1);
}

static __always_inline uint64_t born(struct task_struct *task)
{
	return BPF_CORE_READ(task, group_leader, start_boottime) / SHARED_TICK_NS;
}

static __always_inline void forget(uint32_t pid)
{
	bpf_map_delete_elem(&processes, &pid);
	bpf_map_delete_elem(&large, &pid);
	bpf_map_delete_elem(&young, &pid);
}

/* A forked child has its parent's mappings; copy them before it can run. */
SEC("raw_tp/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	uint32_t from = BPF_CORE_READ(parent, tgid), to = BPF_CORE_READ(child, tgid);
	struct shared_process *p;

	if (from == to) /* a thread */
		return 0;
	p = bpf_map_lookup_elem(&processes, &from);
	if (!p) {
		if (bpf_map_lookup_elem(&processes, &to))
			forget(to);
		return 0;
	}
	__sync_fetch_and_or(&process_bits[to / 64 % (SHARED_PROCESS_BITS / 64)], 1ULL << to % 64);
	if (bpf_map_update_elem(&processes, &to, p, BPF_ANY)) {
		__sync_fetch_and_add(&processes_full, 1);
		return 0;
	}
	if (p->large) {
		struct shared_large *l = bpf_map_lookup_elem(&large, &from);

		if (l)
			bpf_map_update_elem(&large, &to, l, BPF_ANY);
	} else {
		bpf_map_delete_elem(&large, &to);
	}
	young_fork(from, to);
	p = bpf_map_lookup_elem(&processes, &to);
	if (p) {
		p->born = born(child);
		p->version = new_version(); /* from now on it maps files of its own */
	}
	return 0;
}

/* The last of a process is gone, some time after its parent was told. Its pid may be another's by now. */
SEC("raw_tp/sched_process_free")
int on_free(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	uint32_t pid = BPF_CORE_READ(task, tgid);
	struct shared_process *p;

	if (pid != (uint32_t)BPF_CORE_READ(task, pid))
		return 0;
	p = bpf_map_lookup_elem(&processes, &pid);
	/* Its leader may be freed already: the time is its own, as it is the leader. */
	if (p && p->born == BPF_CORE_READ(task, start_boottime) / SHARED_TICK_NS)
		forget(pid);
	return 0;
}

BPF_MAP(nothing_mapped, ARRAY, 1, uint32_t, struct shared_process);

/* After exec nothing of the old mappings is true. */
SEC("raw_tp/sched_process_exec")
int on_exec(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	uint32_t pid = BPF_CORE_READ(task, tgid), zero = 0;
	struct shared_process *none = bpf_map_lookup_elem(&nothing_mapped, &zero), *p;

	if (!none || !bpf_map_lookup_elem(&processes, &pid))
		return 0;
	bpf_map_update_elem(&processes, &pid, none, BPF_EXIST);
	bpf_map_delete_elem(&large, &pid);
	young_exec(pid, task);
	p = bpf_map_lookup_elem(&processes, &pid);
	if (p) {
		p->born = born(task);
		p->version = new_version();
	}
	return 0;
}

/* How a process ended: of one that is no child of ours nobody else tells. Its first thread has the code of all. */
SEC("raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	struct shared_exit x = { .kind = RECORD_EXIT, .pid = BPF_CORE_READ(task, tgid) };

	if (x.pid != (uint32_t)BPF_CORE_READ(task, pid) || !bpf_map_lookup_elem(&processes, &x.pid))
		return 0;
	x.code = BPF_CORE_READ(task, exit_code);
	x.time_ns = bpf_ktime_get_ns();
	bpf_ringbuf_output(&ring, &x, sizeof(x), BPF_RB_NO_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
