/*
 * unwind.bpf.h - user stacks without frame pointers, unwound in the kernel.
 *
 * A program of any kind fills a struct unwind with the user registers and calls
 * unwind_user(), or unwind_along() if it samples the same threads again and again.
 * Tables, mappings and rules are put into the maps by unwindmaps.c and processes.c.
 * The work of one frame is a global function (unwind_step), and so is the loop around
 * it (walk.bpf.h): the verifier checks each of them once.
 */
#pragma once

#include "collect/kernel.bpf.h"
#include "collect/shared.h"
#ifdef __TARGET_ARCH_arm64
#include "collect/unwind/regsarm64.bpf.h"
#else
#include "collect/unwind/regsx86.bpf.h"
#endif

/*
 * The registers of the frame at hand, and the record that is being made. One for
 * each CPU and context. Kernel frames follow the user's, so that the record is
 * in one piece.
 */
struct unwind {
	uint64_t pc, sp, bp;
	uint64_t leaf;              /* registers[] are those of this frame, and pc is exact */
	uint64_t registers[16];     /* as in struct unwind_regs; beyond the leaf only rbx, where it is not RULE_LOST_RBX */
	struct shared_mapping last; /* where the last frame was */
	uint64_t hash;              /* of the frames so far */
	uint32_t count;
	uint32_t reason;
	uint64_t no_memory;         /* the task is in an exec or exits: it has no user stack */
	uint64_t guessed;           /* UNWIND_GUESSED, UNWIND_DERIVED: frames were not found by a table */
	uint64_t rule;              /* of the frame at hand, for unwind_derived() */
	uint64_t saved[REGS_COUNT]; /* registers as they were found in memory; there is no room for them on the stack */
	struct shared_record record;
	uint64_t frames[SHARED_MAX_USER_FRAMES + SHARED_MAX_KERNEL_FRAMES];
};

/* The caller of a frame was taken from the stack without knowing the frame's size; or by a row that was read from the code. */
enum { UNWIND_GUESSED = 1, UNWIND_DERIVED = 2 };

enum {
	TRAIL_FRAMES = 64,
	TRAIL_FRESH = 16,
	TRAIL_STEPS = 32,   /* in one go: the verifier checks each */
	TRAIL_THREADS = 16, /* for each CPU */
};

/* A frame of an earlier walk: its registers, how it is stored, and the rule of its address. */
struct trail_frame {
	uint64_t pc, sp;
	uint64_t frame;
	uint64_t rule;
};

/* The frames of a thread that its last walk has met, beyond the leaf (trail.bpf.h). Owned by one program, which nothing may
 * interrupt that uses the same trail. */
struct trail {
	uint64_t thread;
	uint64_t version;           /* shared_process.version: what is below is true of these mappings */
	struct shared_mapping last; /* where the leaf was */
	uint32_t first;             /* frames from here to the end, the outermost last */
	uint32_t at;                /* where the walk is; frames before it were passed */
	uint32_t joined;            /* after the last one that was on the trail */
	uint32_t fresh_count;
	struct trail_frame frames[TRAIL_FRAMES];
	struct trail_frame fresh[TRAIL_FRESH]; /* met by this walk since then, as a ring */
};

#define TRAIL_MAP(name) BPF_MAP(name, PERCPU_ARRAY, TRAIL_THREADS, uint32_t, struct trail)

#ifdef UNWIND_DEFINE
#define UNWIND_MAP
#else
#define UNWIND_MAP extern
#endif

/* Which processes are recorded, and where their code lies. */
UNWIND_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SHARED_MAX_PROCESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, uint32_t);
	__type(value, struct shared_process);
} processes SEC(".maps");

/*
 * A bit for each pid that was recorded, modulo their number. It is set before the process is put into the map, and is never
 * cleared. Most switches, ticks and calls of a machine are of other processes: they leave after a look at one word, where
 * look-ups in a hash miss the cache and the TLB.
 */
#ifdef UNWIND_DEFINE
uint64_t process_bits[SHARED_PROCESS_BITS / 64];
#else
extern uint64_t process_bits[SHARED_PROCESS_BITS / 64];
#endif

/* Set before the programs are loaded: pages of this machine, and the bits of an address of code (arm64 signs return addresses above
 * them). */
#ifdef UNWIND_DEFINE
const volatile uint32_t page_shift = 12;
const volatile uint64_t pc_mask = RULE_ARM64_PC_MASK;
#else
extern const volatile uint32_t page_shift;
extern const volatile uint64_t pc_mask;
#endif

/* False: the process is not recorded. True: it may be, look into the map. */
static __always_inline bool unwind_may_be_ours(uint32_t pid)
{
	return ((volatile uint64_t *)process_bits)[pid / 64 % (SHARED_PROCESS_BITS / 64)] >> pid % 64 & 1;
}

/* What a process has mapped since its exec, found in the kernel (young.bpf.h). */
UNWIND_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SHARED_MAX_PROCESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, uint32_t);
	__type(value, struct shared_young);
} young SEC(".maps");

UNWIND_MAP struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} ring SEC(".maps");

/*
 * A cache of SHARED_PARTS arrays, made by unwindmaps_new(). The kernel takes an array of up to 32 KiB from memory that it maps
 * by huge pages. A larger one is made of single pages: each look-up misses the TLB, which costs 0.2 us in a virtual machine.
 */
#define CACHE_OF_PARTS(part, entries, bytes)               \
	struct part {                                      \
		__uint(type, BPF_MAP_TYPE_ARRAY);          \
		__uint(max_entries, entries);              \
		__uint(key_size, 4);                       \
		__uint(value_size, bytes);                 \
	};                                                 \
	UNWIND_MAP struct {                                \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);  \
		__uint(max_entries, SHARED_PARTS);         \
		__uint(key_size, 4);                       \
		__array(values, struct part);              \
	}

/* The entry of a hash, whose high bits must be good. */
static __always_inline void *cache_entry(void *cache, uint32_t entries, uint64_t hash)
{
	uint32_t part = hash >> 61, slot = (hash << 3 >> 32) * entries >> 32;
	void *map = bpf_map_lookup_elem(cache, &part);

	_Static_assert(SHARED_PARTS == 1 << 3, "the shifts above");
	return map ? bpf_map_lookup_elem(map, &slot) : NULL;
}

/* Hashes of stacks that were sent; a slot that was overwritten only costs sending one again. */
CACHE_OF_PARTS(seen_part, SHARED_SEEN_PART, 8) seen SEC(".maps");

int unwind_next(struct unwind *u, struct shared_process *p, struct trail *t);
int unwind_all(struct unwind *u, struct shared_process *p);
int unwind_all_along(struct unwind *u, struct shared_process *p, struct trail *t);
int unwind_hash_kernel(struct unwind *u);

enum unwind_sent { UNWIND_SENT, UNWIND_SENT_FRAMES, UNWIND_RING_FULL };
int unwind_send(struct unwind *u, uint32_t always);

static __always_inline uint64_t unwind_hash(uint64_t h, uint64_t frame)
{
	h = (h ^ frame) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 29;
}

static __always_inline bool unwind_task_ending(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, flags) & 4; /* PF_EXITING */
}

/* No stack could be had. */
static __always_inline void unwind_nothing(struct unwind *u)
{
	u->count = 0;
	u->hash = 0;
	u->guessed = 0;
	u->no_memory = 0;
	u->reason = REASON_NO_REGISTERS;
}

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct___unwind {
	unsigned long start_code;
};

struct task_struct___unwind {
	struct mm_struct___unwind *mm;
};

#pragma clang attribute pop

/*
 * Has the current task no user memory? In an exec the memory of the old program is given up first, then the new one is
 * mapped, and the kernel notes where its code begins when all is in place. A thread that exits gives its memory up long
 * before it is gone. Its registers are still there, its stack is not.
 */
static __always_inline bool unwind_no_memory(void)
{
	struct task_struct___unwind *task = (void *)bpf_get_current_task();
	struct mm_struct___unwind *mm = BPF_CORE_READ(task, mm);

	return !mm || !BPF_CORE_READ(mm, start_code);
}

/* The trail of a thread, or of another one that has the same place (unwind_begin() sees to that). trails: see TRAIL_MAP. */
static __always_inline struct trail *trail_of(void *trails, uint64_t thread)
{
	uint32_t slot = (uint32_t)thread * 0x9e3779b9U >> 28;

	_Static_assert(TRAIL_THREADS == 1 << 4, "the shift above");
	return bpf_map_lookup_elem(trails, &slot);
}

static __always_inline void unwind_reset(struct unwind *u)
{
	u->count = 0;
	u->hash = 0;
	u->guessed = 0;
	u->no_memory = 0;
	u->reason = REASON_TOO_DEEP;
	u->last.start = u->last.end = 0;
}

/* Why a walk could not go on: there may be no user memory to read. */
static __always_inline void unwind_explain(struct unwind *u)
{
	if (u->reason != REASON_BAD_STACK && u->reason != REASON_NO_MAPPING)
		return;
	if (unwind_no_memory()) {
		unwind_nothing(u);
		u->reason = REASON_COMPLETE; /* the kernel's frames are all there is */
		u->no_memory = 1;
	} else if (u->reason == REASON_BAD_STACK && unwind_task_ending()) {
		u->reason = REASON_ENDING;
	}
}

/* Unwinds from the registers in u; the result is u->frames, u->count, u->hash and u->reason. */
static __always_inline void unwind_user(struct unwind *u, struct shared_process *p)
{
	unwind_reset(u);
	unwind_all(u, p);
	unwind_explain(u);
}

/* The same, faster, with the trail of the thread in u->record. */
static __always_inline void unwind_along(struct unwind *u, struct shared_process *p, struct trail *t)
{
	unwind_reset(u);
	unwind_all_along(u, p, t);
	unwind_explain(u);
}

/*
 * The context of a perf event's program is struct bpf_perf_event_data: a struct pt_regs, then the period. Word n of
 * it: clang 14 narrows and merges plain loads from it into forms that the verifier refuses, hence the
 * assembly.
 */
#define CONTEXT(n)                                                                    \
	({                                                                            \
		uint64_t v_;                                                          \
		asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(v_) : "r"(ctx), "i"((n) * 8)); \
		v_;                                                                   \
	})
enum { CONTEXT_PERIOD = REGS_COUNT };
#define CONTEXT_IN_USER() REGS_IN_USER(CONTEXT(REGS_MODE))

/* The registers with which the current task entered the kernel. False for a kernel thread. */
static __always_inline bool unwind_from_task(struct unwind *u)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct pt_regs *at = (void *)bpf_task_pt_regs((void *)task);

	_Static_assert(sizeof(u->saved) == REGS_COUNT * 8, "all of them");
	if (bpf_probe_read_kernel(u->saved, sizeof(u->saved), at) || !REGS_IN_USER(u->saved[REGS_MODE]))
		return false;
#define AT(n) u->saved[n]
	UNWIND_FROM(u, AT);
#undef AT
	return true;
}

/*
 * Only the program counter and the stack pointer of the same registers, for the key of a place; the rest is worth its
 * price when the stack is walked. False for a kernel thread.
 */
static __always_inline bool unwind_place_from_task(struct unwind *u)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct pt_regs *at = (void *)bpf_task_pt_regs((void *)task);

	u->pc = u->sp = 0;
	if (bpf_probe_read_kernel(u->saved, REGS_PLACE_WORDS * 8, (char *)at + REGS_PLACE * 8) ||
	    !REGS_IN_USER(u->saved[REGS_MODE - REGS_PLACE]))
		return false;
	u->pc = u->saved[REGS_IP - REGS_PLACE];
	u->sp = u->saved[REGS_SP - REGS_PLACE];
	return true;
}

/* Begins a stack in u with the frames of the user, if there are registers for it (user) and p is known. */
static __always_inline void unwind_start(struct unwind *u, struct shared_process *p, bool user)
{
	u->record.kind = RECORD_STACK;
	u->record.kernel_count = 0;
	u->record.own_frames = 0;
	if (user && p)
		unwind_user(u, p);
	else
		unwind_nothing(u);
}

/*
 * A program at a perf event is given the registers of the interrupted code, and the stack begins there. At a tracepoint it
 * begins with the program itself: user space takes these frames off (kernelmap_own_frames()), as only names tell them.
 */
enum unwind_taken { UNWIND_USER_ONLY, UNWIND_INTERRUPTED, UNWIND_TRACED };

/* Appends the kernel's frames to the user's and adds them to the hash. */
static __always_inline void unwind_kernel(void *ctx, struct unwind *u, enum unwind_taken taken)
{
	uint32_t count = u->count;
	long bytes;

	if (count > SHARED_MAX_USER_FRAMES || taken == UNWIND_USER_ONLY)
		return;
	bytes = bpf_get_stack(ctx, &u->frames[count], SHARED_MAX_KERNEL_FRAMES * 8, 0);
	if (bytes <= 0)
		return;
	u->record.kernel_count = (uint32_t)bytes / 8;
	u->record.own_frames = taken == UNWIND_TRACED;
	unwind_hash_kernel(u);
}
