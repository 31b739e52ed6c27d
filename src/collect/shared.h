/*
 * shared.h - what the BPF programs and user space both read: fixed widths, explicit padding.
 */
#pragma once

#ifndef __bpf__
#include <stdint.h>
#endif

#include "collect/collectors.h"
#include "elf/unwind/rule.h"

enum {
	SHARED_MAX_USER_FRAMES = 512,
	SHARED_MAX_KERNEL_FRAMES = 127,

	SHARED_CHUNK_WORDS = 1 << 18,     /* 1 MiB of 4-byte words */
	SHARED_MAX_CHUNKS = 1024,
	SHARED_MAX_MODULES = 1 << 16,
	SHARED_MAX_RULES = 1 << 16,
	SHARED_PARTS = 8,                 /* of a cache (unwind.bpf.h), each below 32 KiB with its head */
	SHARED_RULE_PART = 1984,          /* entries in a part of the cache from address to rule */
	SHARED_SEEN_PART = 3968,          /* and of that of stacks already sent */

	SHARED_FEW_MAPPINGS = 64,         /* most processes */
	SHARED_MANY_MAPPINGS = 4096,      /* the rest: one entry of another map */
	SHARED_MAX_PROCESSES = 16384,
	SHARED_MAX_LARGE = 256,
	SHARED_PROCESS_BITS = 1 << 13,    /* of pids: see unwind_may_be_ours() */
};

/* Why a stack ends where it does. Index into shared_reason_names. */
enum shared_reason {
	REASON_COMPLETE = 0,
	REASON_NO_MAPPING,     /* the address lies in no executable mapping that is known */
	REASON_NO_TABLE_YET,   /* its table is still being made */
	REASON_NO_RULE,        /* the file's table does not cover the address */
	REASON_UNSUPPORTED,    /* a rule that cannot be expressed */
	REASON_LOST_REGISTER,  /* it needs a register that only the leaf has */
	REASON_BAD_STACK,      /* the stack memory could not be read */
	REASON_NOT_RISING,     /* the stack pointer did not rise: a loop */
	REASON_FRAME_POINTER,  /* no table, and rbp is no frame pointer */
	REASON_TOO_DEEP,       /* more than SHARED_MAX_USER_FRAMES */
	REASON_NO_REGISTERS,   /* the user registers could not be had */
	REASON_ENDING,         /* the thread was ending, its memory was gone already */
	REASON_DUMP_SHORT,     /* without BPF only: deeper than the stack dump */
	REASON_COUNT,
};

/* A frame as the kernel side stores it. Kernel frames are plain addresses. */
#define SHARED_FRAME(module, address) ((uint64_t)(module) << 48 | ((address) & 0xffffffffffffULL))
#define SHARED_FRAME_MODULE(f) ((uint32_t)((f) >> 48))
#define SHARED_FRAME_ADDRESS(f) ((uint64_t)(f) & 0xffffffffffffULL)

/* An executable mapping of a process. Module 0 is no module. */
struct shared_mapping {
	uint64_t start, end;
	uint64_t bias; /* address in the process - address in the module */
	uint32_t module;
	uint32_t pad;
};

enum { SHARED_TICK_NS = 10000000 }; /* USER_HZ is 100 */

/* Sorted by start. In the map of large processes there is room for more. */
struct shared_process {
	uint32_t count;
	uint32_t large; /* look into the other map instead */
	uint64_t since_ns; /* when it was found, for one that joined later; 0 = the recording, or itself, began then */
	uint64_t born;     /* when its first thread was, in ticks as /proc/PID/stat has it: pids are given out again; 0 = not known */
	uint64_t version;  /* another one whenever the mappings may be others; 0 = not known */
	struct shared_mapping mappings[SHARED_FEW_MAPPINGS];
};

/* A rule, and where it holds: see rules.bpf.h. */
struct shared_cached_rule {
	uint64_t check, rule;
};

struct shared_large {
	uint32_t count;
	uint32_t pad[3];
	struct shared_mapping mappings[SHARED_MANY_MAPPINGS];
};

enum {
	SHARED_YOUNG_MAPPINGS = 16,  /* that the kernel side finds by itself after an exec */
	SHARED_YOUNG_ASKS = 64,      /* times that it asks the kernel for one; user space has caught up by then */
	SHARED_CODE_PARTS = 4,       /* executable parts of a file; few have more than one */
	SHARED_MAX_CODE_FILES = 1 << 16,
};

/* A file of code as the kernel sees it. When it is written to, it is another one, as in modules.c. All zero: the vdso. */
struct shared_code_key {
	uint64_t inode;
	uint64_t size;
	int64_t changed_s;
	uint32_t changed_ns;
	uint32_t device; /* as the kernel numbers it, 20 bits of minor */
};

/* Where the code of a file lies in its module. */
struct shared_code_file {
	uint32_t module;
	uint32_t part_count;
	struct {
		uint64_t offset, size, address;
	} parts[SHARED_CODE_PARTS];
};

/* A mapping that was found in the kernel. Its end is written last, and only one who writes has a slot: a mapping without
 * end is none yet. Module 0: the file is not known yet. */
struct shared_young_mapping {
	struct shared_mapping m;
	uint64_t offset; /* of start, in the file */
	struct shared_code_key file;
};

/* What a process has mapped since its exec, as far as the kernel side knows; not sorted, it only grows. */
struct shared_young {
	uint32_t count; /* slots given out; may be more than there are */
	uint32_t asked;
	struct shared_young_mapping mappings[SHARED_YOUNG_MAPPINGS];
};
_Static_assert(sizeof(struct shared_code_key) == 32, "layout");
_Static_assert(sizeof(struct shared_young_mapping) == 72, "layout");

enum shared_module_state { MODULE_NO_TABLE = 0, MODULE_BUILDING = 1, MODULE_TABLE = 2 };

/*
 * Where a module's table lies in the space of words that the chunks make up:
 * at index two words for each page {position of its first row, count}.
 */
struct shared_module {
	uint64_t first_page; /* address >> 12 */
	uint32_t page_count;
	uint32_t index;
	uint32_t state;
	uint32_t pad;
};

/* Kinds of more than one file; a collector may have its own beside its programs (RECORD_OF). */
enum shared_record_kind {
	RECORD_STACK = 1 | RECORD_FRAMES, /* struct shared_record: only makes a stack known */
	RECORD_EXIT = 2,                  /* struct shared_exit: a process has ended */
	RECORD_CPU = RECORD_OF(COLLECTOR_cpu, 1) | RECORD_FRAMES, /* struct shared_record: a sample */
	RECORD_COPY = RECORD_OF(COLLECTOR_cpu, 2),        /* struct shared_copy: a sample with a copy of its stack */
	RECORD_WAIT = RECORD_OF(COLLECTOR_wait, 1),       /* struct shared_wait: one long wait */
	RECORD_WAITS = RECORD_OF(COLLECTOR_wait, 2),      /* struct shared_wait: short waits within a slot of time */
	RECORD_THREAD_END = RECORD_OF(COLLECTOR_wait, 3), /* struct shared_account: of a thread that has ended */
	RECORD_IO = RECORD_OF(COLLECTOR_io, 1),           /* struct shared_io: calls of one kind within a slot of time */
	RECORD_FILE = RECORD_OF(COLLECTOR_io, 2),         /* struct shared_file: what a file is called */
	RECORD_EVENT = RECORD_OF(COLLECTOR_event, 1),     /* struct shared_event_record: an event chosen by name */
	RECORD_FAULTS = RECORD_OF(COLLECTOR_fault, 1),    /* struct shared_fault: page faults of one place within a slot of time, or reclaims */
	RECORD_FAULT_END = RECORD_OF(COLLECTOR_fault, 2), /* struct shared_fault_end: all faults of a thread, by the kernel's count */
	RECORD_HEAP = RECORD_OF(COLLECTOR_heap, 1),       /* struct shared_heap: a sampled allocation, or that one was freed */
	RECORD_HEAP_STACK = RECORD_OF(COLLECTOR_heap, 2), /* struct shared_heap_stack: of an allocation that the hooks report */
	RECORD_ALLOC = RECORD_OF(COLLECTOR_alloc, 1),     /* struct shared_alloc: a thread has allocated so much */
	RECORD_HW = RECORD_OF(COLLECTOR_hw, 1),           /* struct shared_hw: a counter has gone so far */
	RECORD_SPAN = RECORD_OF(COLLECTOR_span, 1),       /* struct shared_span: a call of a marked function, or what the program says */
};

/* A record in the ring; frames follow (8 bytes each; the user's, then the kernel's, each leaf first) when
 * the stack was not sent before. */
struct shared_record {
	uint32_t kind;
	uint32_t pid, tid;
	uint16_t user_count, kernel_count;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t value;
	uint64_t stack; /* hash of what follows */
	uint8_t reason;
	uint8_t has_frames;
	uint8_t own_frames; /* the kernel's frames begin with those of the program that took them: bpf_get_stack() at a tracepoint */
	uint8_t pad[5];
	char name[16];
};

enum {
	SHARED_COPY_PAGES = 3,
	SHARED_COPIES = 256,         /* within a second, on all CPUs */
	SHARED_COPY_REGISTERS = 17,  /* the places of struct unwind_regs; the last is rip, or pc */
};

/* A sample of a young process that leads to where no mapping or table is known yet, to be unwound later. The pages
 * from that of the stack pointer on follow, as many as there are. */
struct shared_copy {
	struct shared_record record; /* user_count 0, has_frames 0 */
	uint64_t registers[SHARED_COPY_REGISTERS];
	uint64_t base;               /* address of the first page */
	uint64_t kernel[SHARED_MAX_KERNEL_FRAMES];
	struct shared_young young;   /* what was known of its mappings */
};

struct shared_exit {
	uint32_t kind;
	uint32_t pid;
	uint32_t code; /* as wait() has it: the status << 8, or a signal */
	uint32_t pad;
	uint64_t time_ns;
};
_Static_assert(sizeof(struct shared_exit) == 24, "layout");

enum {
	SHARED_MAX_THREADS = 32768,
	SHARED_SLOT_NS = 10000000,     /* short waits are added up within 10 ms */
	SHARED_LONG_NS = 1000000,      /* waits from 1 ms on are kept one by one */
	SHARED_SUMS = 4,               /* places that are added up at a time, for each thread */
	SHARED_STACKCACHE = 1 << 16,
	SHARED_PREEMPT_WALKS = 4,      /* stacks within a slot of time, on each CPU */
};

/* stack 0: it began before the recording; stack 1: it was preempted. */
enum { SHARED_STACK_BEFORE = 0, SHARED_STACK_PREEMPTED = 1 };

struct shared_wait {
	uint32_t kind;
	uint32_t pid, tid;
	uint32_t count;
	uint64_t time_ns; /* when it began, or the slot did */
	uint64_t blocked_ns, queue_ns;
	uint64_t throttled_ns; /* of queue_ns: stopped by a CPU quota */
	uint64_t stack;
	uint64_t waker_stack; /* 0 = not taken */
	uint32_t waker_pid, waker_tid;
	char waker_name[16];
};

enum shared_state { STATE_UNKNOWN = 0, STATE_RUNNING, STATE_BLOCKED, STATE_READY };

/* A thread's time, added up, and what it does now. */
struct shared_account {
	uint32_t kind;
	uint32_t pid, tid;
	uint32_t state;
	uint64_t since_ns;  /* in this state */
	uint64_t cpu_ns, queue_ns, blocked_ns;
	uint64_t switches;
	char name[16];
};

struct shared_sum {
	uint64_t stack;
	uint64_t blocked_ns, queue_ns, throttled_ns;
	uint32_t count, pad;
};

/* Threads of a process that wake each other give the CPU back soon; other programs may keep it. */
enum shared_preempted { PREEMPTED_BY_OWN = 1, PREEMPTED_BY_OTHER = 2 };

/* A thread as the wait collector's programs keep it. */
struct shared_thread {
	struct shared_account account;
	uint64_t stack;        /* of the wait at hand */
	uint64_t place;        /* key of its place, 0 = none */
	uint64_t blocked_ns;   /* of the wait at hand, once it was woken */
	uint64_t queue_ns;     /* and until it ran */
	uint64_t left_ns;      /* when it began, 0 = there is none */
	uint64_t kernel_run_ns, kernel_queue_ns; /* as the kernel counts, when it began; all of its life */
	uint8_t has_kernel;    /* they are known */
	uint8_t preempted;     /* it did not wish to wait: enum shared_preempted, 0 = it did */
	uint8_t walked;        /* stack is its own, not what is remembered for the place */
	uint8_t throttled;     /* it did not wish to wait: a CPU quota stopped it, and that is certain */
	uint8_t preempt_long;  /* of these, the ones whose last wait took long */
	uint8_t pad[7];
	uint32_t preempt_carried_ns; /* the time that was given to preempt_stack since it is remembered */
	uint32_t preempt_mean_ns;    /* how long it is preempted for on average, where its stack was walked */
	uint64_t quota_rq;     /* run queue whose stops are watched until it runs again, 0 = none */
	uint64_t quota_ns;     /* how long that was stopped before */
	uint64_t throttled_ns; /* of queue_ns */
	uint64_t preempt_stack; /* one of those that were walked, 0 = none was */
	uint64_t waker_stack;
	uint32_t waker_pid, waker_tid;
	char waker_name[16];
	uint64_t slot;         /* of the sums */
	struct shared_sum sums[SHARED_SUMS];
};

#if defined(__aarch64__) || defined(__TARGET_ARCH_arm64)
enum { SHARED_TASK_REGS = 34 };
#else
enum { SHARED_TASK_REGS = 21 };
#endif
#define SHARED_TASK_THROTTLED 0x80000000u /* it could run, but for a CPU quota */
#define SHARED_TASK_READY 0x40000000u     /* it could run, but is on no CPU */

/* A thread as it stands when a recording begins: its registers, and its stack in the kernel. */
struct shared_task {
	uint32_t pid, tid;
	uint32_t state; /* the kernel's, and the above; 0 = it runs */
	uint32_t kernel_count;
	uint64_t regs[SHARED_TASK_REGS]; /* struct pt_regs */
	uint64_t kernel[SHARED_MAX_KERNEL_FRAMES];
};

struct shared_wait_counts {
	uint64_t walked, remembered, ring_full, threads_full;
	uint64_t left;        /* how often threads of the target left a CPU */
	uint64_t drawn_ns;    /* of waits with a stack that was drawn from several */
	uint64_t squares_us2; /* sum of the squares of the times that one draw decided */
	uint64_t stolen_ns;   /* in the queue, beyond the kernel's own count of it */
	uint64_t preempt_slot_ns, preempt_walks, preempt_rare; /* of preempted threads one of 2^rare is walked */
};

_Static_assert(sizeof(struct shared_wait) == 88, "layout");
_Static_assert(sizeof(struct shared_account) == 72, "layout");

enum shared_heap_what { HEAP_ALLOCATED = 1, HEAP_FREED = 2, HEAP_FREED_AT_ONCE = 3 };

struct shared_heap {
	uint32_t kind;
	uint32_t pid, tid;
	uint32_t what;
	uint64_t time_ns;
	uint64_t address, bytes;
	uint64_t stack;
	uint64_t interval; /* of samples, as the hook had it */
};

struct shared_heap_stack {
	uint32_t kind;
	uint32_t pid, tid, pad;
	uint64_t ticket; /* of its event (blob/exact.h) */
	uint64_t sp;     /* where the return address of the hook stands */
	uint64_t stack;
};
_Static_assert(sizeof(struct shared_heap_stack) == 40, "layout");

struct shared_heap_counts {
	uint64_t samples, ring_full, busy;
};

struct shared_alloc {
	uint32_t kind;
	uint32_t pid, tid, pad;
	uint64_t time_ns;
	uint64_t bytes; /* since the thread's last */
	uint64_t stack;
};
_Static_assert(sizeof(struct shared_alloc) == 40, "layout");

struct shared_alloc_counts {
	uint64_t hits, lost;
	uint64_t odd; /* what was to be read was not what it should be */
};

struct shared_counts {
	uint64_t samples, ring_full, stacks_sent;
	uint64_t copies;    /* samples sent with a copy of their stack, to be unwound later */
	uint64_t no_memory; /* samples in an exec or an exit, where there is no user stack */
	uint64_t guessed; /* samples with a frame whose caller was found by the look of the stack alone */
	uint64_t derived; /* samples with a frame whose row was read from the code */
};

enum {
	SHARED_MAX_EVENTS = 1024,
	SHARED_EVENT_USES = 4,             /* sums by different fields of one event */
	SHARED_EVENT_SUMS = 32768,
	SHARED_EVENT_NOTE = 127,           /* bits of a note that matter */
	SHARED_EVENT_SLOT_NS = 1000000000, /* the limit of events kept one by one counts within this time */
};

/* The use of an event's records: a count (size 0), or the sum of a field. */
struct shared_event_use {
	uint32_t event; /* of those that were chosen */
	uint16_t offset;
	uint8_t size;
	uint8_t is_signed;
};

/* Does an event fire in the thread that caused it? Never, or for some only: a kill at a cgroup's limit does, one for
 * want of memory in the machine may be in anybody's. */
enum shared_everywhere { NOT_EVERYWHERE, EVERYWHERE, SOMETIMES_EVERYWHERE };

/* An event that programs are attached to; the cookie of the attachment is its index. */
struct shared_event {
	uint32_t use_count;
	uint16_t note_offset; /* a number that tells its records apart, shown below the stack */
	uint8_t note_size;    /* 0 = none */
	uint8_t everywhere;   /* enum shared_everywhere */
	struct shared_event_use uses[SHARED_EVENT_USES];
};

struct shared_event_record {
	uint32_t kind;
	uint32_t event, note;
	uint32_t pid, tid;
	uint32_t pad;
	uint64_t time_ns;
	uint64_t value;
	uint64_t stack;
	char name[16];
};

struct shared_event_key {
	uint64_t stack;
	uint32_t pid, tid;
	uint32_t event, note;
};

struct shared_event_sum {
	uint64_t count, value;
	uint64_t first_ns;
	char name[16];
};

/* All there is to know without stacks; lost is a part of hits. */
struct shared_event_totals {
	uint64_t hits, value;
	uint64_t negative;  /* of hits: below 0, an error mostly; not in value */
	uint64_t elsewhere; /* outside the processes recorded; in nothing else */
	uint64_t summed, lost;
	uint64_t remembered; /* of hits: their stack was not walked, but is that of their place */
};

_Static_assert(sizeof(struct shared_event) == 40, "layout");
_Static_assert(sizeof(struct shared_event_record) == 64, "layout");
_Static_assert(sizeof(struct shared_event_key) == 24, "layout");
_Static_assert(sizeof(struct shared_mapping) == 32, "layout");
_Static_assert(sizeof(struct shared_process) == 32 + 32 * SHARED_FEW_MAPPINGS, "layout");
_Static_assert(sizeof(struct shared_module) == 24, "layout");
_Static_assert(sizeof(struct shared_record) == 64, "layout");

enum {
	SHARED_FAULT_SUMS = 32,     /* kinds of faults that are added up at a time, for each thread */
	SHARED_FAULT_RANGES = 64,   /* parts of a file that are told apart */
	SHARED_FAULT_WALKS = 32,    /* stacks walked without need within a slot on each CPU, while faults are few */
	SHARED_FAULT_BUSY = 64,     /* faults within a slot on a CPU, beyond which they are many */
};

enum shared_fault_what { FAULT_MINOR = 0, FAULT_MAJOR, FAULT_RECLAIM };
/* The kind of mapping at the address. UNKNOWN: could not be found out in the kernel, look into
 * /proc/PID/maps. */
enum shared_fault_where { FAULT_UNKNOWN = 0, FAULT_FILE, FAULT_HEAP, FAULT_STACK, FAULT_ANONYMOUS, FAULT_NOWHERE };
/* It was a write to a page that was there, but read-only: a copy, or the first write to a page of a file. */
enum { FAULT_WRITE_PROTECTED = 1, FAULT_SHARED = 2 };

struct shared_fault {
	uint32_t kind;
	uint32_t pid, tid;
	uint32_t count;
	uint64_t time_ns;   /* when the slot began */
	uint64_t spent_ns;  /* from entering the kernel to the end of the fault, 0 = not measured */
	uint64_t stack;
	uint64_t address;   /* one of those that were touched; UNKNOWN: all have the same bits from shift on */
	uint64_t inode;     /* FILE: which */
	uint64_t offset;    /* FILE: where the range begins; of major faults, the others are not told apart */
	uint64_t size;      /* FILE: of the file */
	uint32_t device;    /* FILE: as the kernel numbers it, 20 bits of minor */
	uint8_t what, where;
	uint8_t shift;      /* a range has 1 << shift bytes */
	uint8_t flags;
	char name[16];
};

struct shared_fault_end {
	uint32_t kind;
	uint32_t pid, tid;
	uint32_t pad;
	uint64_t time_ns;
	uint64_t minor, major; /* since the recording began */
	char name[16];
};

struct shared_fault_counts {
	uint64_t walked, remembered, ring_full, lost_faults;
	uint64_t kswapd_wakes;       /* of the whole system */
	uint64_t walk_slot, walks;   /* the budget of stacks */
	uint64_t faults, allowed;    /* in this slot; and how many stacks may be walked without need */
	uint64_t rare;               /* known stacks are walked again with a chance of 2^-rare */
};

_Static_assert(sizeof(struct shared_fault) == 96, "layout");
_Static_assert(sizeof(struct shared_fault_end) == 56, "layout");

/* A sample of a counter, with how long it has been there and how long it had its turn, since the start. */
struct shared_hw {
	uint32_t kind;
	uint32_t pid, tid;
	uint32_t counter, cpu;
	uint32_t pad;
	uint64_t time_ns;
	uint64_t period;
	uint64_t enabled_ns, running_ns;
	uint64_t stack;
	char name[16];
};

/* Of enum counter: from one to the other the kernel reports one by one, from the second on by periods. */
enum { SHARED_HW_ONE_BY_ONE = 1, SHARED_HW_PROCESSOR = 5, SHARED_HW_PENDING = 32768 };

struct shared_hw_key {
	uint64_t place; /* where in the program: stackcache.bpf.h */
	uint32_t tid, counter;
};

/* A thread's count of a counter at one place that is not in any sample yet. */
struct shared_hw_pending {
	uint64_t count;
	uint64_t last_ns; /* when its last sample was sent, 0 = none */
	uint64_t stack;   /* and with which stack */
	uint32_t pid, pad;
};

struct shared_hw_counts {
	uint64_t samples, lost;
};

_Static_assert(sizeof(struct shared_hw) == 80, "layout");
