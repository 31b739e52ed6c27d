/*
 * task.h - the code that is put into a process to see its async tasks, and the memory that both sides share.
 *
 * A blob as inject/blobhead.h says. Each vtable of the process has a number, and three entries in the image that know it
 * (entries.S): for poll, schedule and dealloc. taskhooks.c writes what it sees into the ring of its thread, which that thread
 * alone writes and gasflame alone reads; nobody waits. Times are those of the processor's time-stamp counter.
 *
 * All data that decide where code jumps to are in the fixed part, which the target may not write. The shared part is figures,
 * which neither side trusts: an index is limited to its table, and no address in it is read, written or jumped to.
 *
 * Shared by both sides and by different versions of gasflame: TASK_VERSION fixes the layout.
 */
#pragma once

/* Offsets that entries.S and task.ld need. */
#define TASK_VTABLES      2048
#define TASK_ENTRY_BYTES  32
#define TASK_VTABLE_BYTES 48
#define TASK_FIXED_BYTES  0x40000
#define TASK_LOCAL_BYTES  0x1000
#define TASK_REAL_AT      (64 + 8) /* in the fixed part: the first function of the first vtable */
#define TASK_TSC_AT       4        /* in the local part: what setup found */
#define TASK_TID_AT       8
#define TASK_POINTER_AT   16

#ifndef __ASSEMBLER__

#include <stdint.h>

#include "collect/inject/blobhead.h"

#define TASK_MAGIC   0x62666c675461736bULL
#define TASK_VERSION 1
#define TASK_NAME    BLOB_NAMES "task" /* of the memfds */

enum task_slot { TASK_SLOT_POLL, TASK_SLOT_SCHEDULE, TASK_SLOT_DEALLOC, TASK_SLOTS };

enum {
	TASK_THREADS = 1024,    /* a thread's is found by its pointer in fs */
	TASK_WAYS = 16,         /* places that one may have */
	TASK_EVENTS = 1 << 15,  /* in the ring of a thread */
	TASK_ENDS = 1 << 16,    /* ends of tasks' last polls */
	TASK_END_SHIFT = 8,     /* ticks in a unit of them: a power of 2 */
};

struct task_vtable {
	uint64_t address;           /* in the target; 0: the number is free */
	uint64_t real[TASK_SLOTS];  /* the functions that its hooks stand for; never changed: a thread may be on its way there */
	uint64_t id_offset;         /* a task's number is there, from its header on; 0: it has none */
	uint64_t pad;
};

struct task_fixed {
	struct blob_head head;
	uint64_t interval;    /* ticks: the mean awaited time between wakes whose stack is taken; 0: none is */
	uint64_t patience;    /* ticks without a sign of gasflame, after which hooks that find no room pass on */
	uint64_t identity_at; /* a thread's own number is there, from its thread pointer on; 0: not known */
	uint64_t seed;
	struct task_vtable vtables[TASK_VTABLES];
	struct blob_slot slots[TASK_VTABLES * TASK_SLOTS];
};

/* Kinds of entries of a ring. The entry after TASK_IS_DRAWN_WAKE is TASK_IS_DRAWN. */
enum task_kind { TASK_IS_POLL = 1, TASK_IS_WAKE, TASK_IS_DRAWN_WAKE, TASK_IS_DEALLOC, TASK_IS_THREAD, TASK_IS_DRAWN };

/*
 *	                tsc           word           task             more
 *	poll            its end       task_word()    task's number    its ticks
 *	wake, drawn     the wake      task_word()    task's number    task_by() of the task that the thread polls, 0: none
 *	dealloc         the call      task_word()    task's number    0
 *	thread          now           the kind       the thread's     0        all that follow are of this thread
 *	drawn           the interval  kind, ticket   awaited ticks    0
 *
 * A task without a number has the address of its header.
 */
struct task_event {
	uint64_t tsc, word, task, more;
};

/* The first line of 64 bytes is the thread's, but for rare values; the second is gasflame's and the rest. */
struct task_thread {
	uint64_t owner;     /* its thread pointer; 0: nobody's */
	uint64_t head;      /* entries that were written */
	uint32_t busy;      /* writes one: its time may be before that of gasflame's look */
	uint32_t identity;  /* the number of the thread that wrote the last one */
	uint64_t current;   /* the task that it polls, 0: none */
	uint64_t word;      /* task_word() of it */
	uint64_t began;     /* that poll */
	int64_t countdown;  /* awaited ticks to the next drawn wake */
	uint64_t interval;  /* by which that was drawn */
	uint64_t tail;      /* gasflame's: entries that were read */
	uint64_t lost;      /* entries that found no room */
	uint64_t random;
	uint64_t pad[5];
};

struct task_shared {
	uint64_t sign;    /* gasflame's: the time of its last look */
	uint64_t since;   /* gasflame's: the begin of the recording */
	uint64_t strays;  /* entries of threads that found no place */
	uint32_t tickets; /* that were given */
	struct task_thread threads[TASK_THREADS] __attribute__((aligned(4096)));
	uint64_t ends[TASK_ENDS] __attribute__((aligned(4096))); /* task_end() of a task's last poll; a later task takes the place */
	struct task_event events[TASK_THREADS][TASK_EVENTS] __attribute__((aligned(4096)));
};

struct task_local {
	uint32_t active; /* number of the recording, 0: hooks pass on */
	/* What setup found: */
	uint32_t tsc;     /* of PR_GET_TSC */
	uint32_t tid;     /* of the thread that ran it, as that sees it */
	uint32_t pad;
	uint64_t pointer; /* and its thread pointer */
};

#define TASK_HEADER_MASK 0xffffffffffffULL

/* What an event is of: a header is below 2^48, a vtable below 2^11, a kind below 2^5. */
static inline uint64_t task_word(uint64_t header, uint32_t vtable, enum task_kind kind)
{
	return (header & TASK_HEADER_MASK) | (uint64_t)vtable << 48 | (uint64_t)kind << 59;
}

/* The task that a thread polls, 0: none; word is that of its poll. Numbers of tasks are below 2^48, too. */
static inline uint64_t task_by(uint64_t task, uint64_t word)
{
	return task ? (task & TASK_HEADER_MASK) | (word & ~TASK_HEADER_MASK) : 0;
}

static inline uint32_t task_number_in(uint64_t word)
{
	return word >> 48 & (TASK_VTABLES - 1);
}

static inline uint32_t task_thread_of(uint64_t pointer)
{
	return pointer * 0x1e3779b1 >> 20 & (TASK_THREADS - 1);
}

/* Where the end of a task's last poll is noted; a hash whose other bits tell tasks apart that share a place. */
static inline uint64_t task_hash(uint64_t task)
{
	return task * 0x9e3779b97f4a7c15ULL;
}

static inline uint32_t task_end_place(uint64_t hash)
{
	return hash >> 48;
}

/* 24 bits of the hash, 40 bits of the time. */
static inline uint64_t task_end(uint64_t hash, uint64_t tsc)
{
	return hash << 16 >> 40 << 40 | (tsc >> TASK_END_SHIFT & 0xffffffffffULL);
}

_Static_assert(sizeof(struct task_vtable) == TASK_VTABLE_BYTES, "as entries.S has it");
_Static_assert(__builtin_offsetof(struct task_fixed, vtables[0].real) == TASK_REAL_AT, "as entries.S has it");
_Static_assert(sizeof(struct task_fixed) <= TASK_FIXED_BYTES, "as task.ld has it");
_Static_assert(sizeof(struct task_local) <= TASK_LOCAL_BYTES, "as task.ld has it");
_Static_assert(__builtin_offsetof(struct task_local, tsc) == TASK_TSC_AT &&
		       __builtin_offsetof(struct task_local, tid) == TASK_TID_AT &&
		       __builtin_offsetof(struct task_local, pointer) == TASK_POINTER_AT,
	       "as entries.S has it");
_Static_assert(sizeof(struct task_thread) == 128 && sizeof(struct task_event) == 32, "layout");
_Static_assert(TASK_ENDS == 1 << 16, "as task_end_place() has it");

#endif
