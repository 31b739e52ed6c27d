/*
 * exact.h - what hooks and gasflame share where each allocation is seen: a ring of events, and how to know a stack again.
 *
 * A uprobe and a walk in the kernel for each allocation would cost 3 us. So the hook walks
 * itself, where gasflame has told it how: rules for the return addresses that were seen
 * before, where the thread's stack ends, and numbers of the stacks that are known. Whatever is
 * missing, it runs over a nop with a uprobe on it, the kernel walks, and gasflame learns
 * from that. A stack that is walked twice at the same place is remembered (struct exact_memo): then its words are
 * only compared.
 *
 * An event takes a ticket (head) before it is written: of a free before the object is
 * freed, of an allocation after it was made. So the order of tickets is one in which no address is in
 * use twice, whichever threads they come from. seq = ticket + 1 says that the event is there. Each part has
 * one writer: gasflame, or (of a thread's) that thread.
 *
 * A locked instruction costs more than all the rest of an event: it waits for every write before it, and nothing after it
 * begins. So on x86-64 the first thread of a program that gasflame starts takes tickets without (EXACT_FIRST, then EXACT_ONE + its
 * index). Another one that wants a ticket asks and waits, once: gasflame withdraws the right (EXACT_ENDS), makes all processors see that
 * (membarrier), waits until the first thread is not between looking at the right and using it, and from then on
 * all use the lock (EXACT_ALL).
 */
#pragma once

#include <stdint.h>

/*
 * What depends on the processor. EXACT_BEFORE: what a C library keeps for a thread begins so many bytes before its thread pointer at most.
 * EXACT_ALONE: a plain addition is much cheaper than a locked one, and one instruction.
 */
#ifdef __x86_64__
enum { EXACT_BEFORE = 0, EXACT_ALONE = 1 };
#else
enum { EXACT_BEFORE = 4096, EXACT_ALONE = 0 };
#endif

/* In a loop that waits for another CPU. */
static inline void exact_pause(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#else
	__asm__ volatile("yield");
#endif
}

enum {
	EXACT_EVENTS = 1 << 18,  /* that may be on their way; who comes then waits */
	EXACT_RULES = 1 << 18,
	EXACT_RULE_WAYS = 4,
	EXACT_STACKS = 1 << 18,
	EXACT_STACK_WAYS = 4,
	EXACT_THREADS = 2048,
	EXACT_THREAD_WAYS = 16,
	EXACT_MEMOS = 8,         /* stacks that a thread remembers */
	EXACT_WORDS = 125,       /* of each */
	EXACT_FRAMES = 512,      /* deeper ones are left to the kernel */
	EXACT_FRAME_BYTES = 1 << 20,
};

#define EXACT_NONE UINT32_MAX

/* Who may take tickets without a lock. */
enum exact_only { EXACT_ALL, EXACT_FIRST, EXACT_ENDS, EXACT_ONE };

enum exact_what { EXACT_ALLOCATED = 1, EXACT_FREED };

struct exact_event {
	uint64_t seq;
	uint64_t address, size;
	union {
		struct {
			uint32_t stack;  /* number of a stack that is known; EXACT_NONE: the uprobe tells it, with this ticket */
			uint16_t thread; /* index of struct exact_thread, EXACT_THREADS: it has none */
			uint16_t what;
		};
		uint64_t rest;           /* all three, exact_rest() */
	};
};

/* How to go on from a return address (elf/unwind/rule.h). pc 0: none. */
struct exact_rule {
	uint64_t pc, rule;
};

struct exact_stack {
	uint64_t hash; /* of its return addresses, 0: none */
	uint64_t number;
};

struct exact_thread {
	uint64_t owner;           /* its thread pointer; 0 = nobody's yet */
	uint32_t identity;        /* what its thread pointer's memory says: its number, as the kernel wrote it there */
	uint32_t era;             /* how many threads it has been */
	uint64_t low, top;        /* gasflame's: its stack is mapped between them; 0: not known */
	uint32_t busy;
	uint32_t inside;          /* takes a ticket without a lock, as soon as it has seen that it may */
	uint64_t pad[3];
};

struct exact_count {
	uint64_t count, bytes; /* allocated by a thread, of all eras */
};

/* Return addresses, and other words that led to them, from the innermost on. */
struct exact_word {
	uint64_t address, value;
};

struct exact_memo {
	uint64_t sp, pc, bp, top;
	uint32_t generation, era;
	uint32_t stack;
	uint16_t count, uses_bp;
	struct exact_word words[EXACT_WORDS];
};

struct exact_shared {
	uint64_t head __attribute__((aligned(64)));
	uint64_t tail __attribute__((aligned(64)));       /* gasflame's: events before it were read */
	uint64_t generation __attribute__((aligned(64))); /* gasflame's: rises when code was unmapped, and with each recording */
	uint64_t identity_at;                             /* gasflame's: struct exact_thread.identity is there, from EXACT_BEFORE before
							     the thread pointer on; 0: not known */
	uint64_t turns;                                   /* gasflame's: a thread waits so long before it gives it up */
	uint64_t only;                                    /* enum exact_only */
	uint64_t asks;                                    /* another thread waits for its end */
	uint64_t stray_count __attribute__((aligned(64))), stray_bytes; /* of threads that found no room */
	struct exact_count counts[EXACT_THREADS] __attribute__((aligned(64)));
	struct exact_rule rules[EXACT_RULES] __attribute__((aligned(64)));
	struct exact_stack stacks[EXACT_STACKS] __attribute__((aligned(64)));
	struct exact_event events[EXACT_EVENTS] __attribute__((aligned(64)));
};

/* Addresses that a hook reads at: private memory of the process. gasflame reads and writes it through /proc/PID/mem. */
struct exact_own {
	struct exact_thread threads[EXACT_THREADS] __attribute__((aligned(64)));
	struct exact_memo memos[EXACT_THREADS][EXACT_MEMOS] __attribute__((aligned(64)));
};

/* The same on both sides. A stack's hash begins with 0, innermost first. */
static inline uint64_t exact_hash(uint64_t hash, uint64_t pc)
{
	hash = (hash ^ pc) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

static inline uint64_t exact_rest(uint32_t stack, uint16_t thread, enum exact_what what)
{
	return stack | (uint64_t)thread << 32 | (uint64_t)what << 48;
}

static inline struct exact_rule *exact_rules_of(struct exact_shared *s, uint64_t pc)
{
	return &s->rules[(pc * 0x9e3779b97f4a7c15ULL >> 46) & (EXACT_RULES - EXACT_RULE_WAYS)];
}

static inline struct exact_stack *exact_stacks_of(struct exact_shared *s, uint64_t hash)
{
	return &s->stacks[hash >> 46 & (EXACT_STACKS - EXACT_STACK_WAYS)];
}

static inline struct exact_event *exact_event_of(struct exact_shared *s, uint64_t ticket)
{
	return &s->events[ticket & (EXACT_EVENTS - 1)];
}

_Static_assert(sizeof(struct exact_event) == 32, "layout");
_Static_assert(sizeof(struct exact_thread) == 64, "layout");
_Static_assert(sizeof(struct exact_memo) == 2048, "layout");
