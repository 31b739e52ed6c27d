/*
 * blob.h - the code that is put into a process to see its allocations, and the memory that both sides share.
 *
 * The blob is a small ELF file without libc, relocations or state of its own
 * (hooksx86.S or hooksarm64.S, sampler.c, exact.c), mapped into the target from a memfd that nobody can write to any more:
 *
 *	image    private, executable    hooks and their unwind information
 *	fixed    private, read-only     struct blob_fixed: where hooks jump to, and what they replaced
 *	local    private                struct blob_local, zeroed by fork: a child's hooks do nothing
 *	shared   shared with gasflame   struct blob_shared, of a second memfd; no child of fork has it
 *
 * All data that decide where code jumps to, or that are written back to the target later, are in the fixed part:
 * gasflame writes it through /proc/PID/mem, and the target may not. The shared part is figures, which neither side
 * trusts: an index is limited to its table, and no address in it is read, written or jumped to. A child of fork
 * keeps the image, the fixed part, and slots that lead there, and its hooks touch nothing else.
 *
 * A slot of the global offset table that held the address of malloc holds that of a hook
 * instead. A hook counts the bytes down; where the count passes zero the allocation is a
 * sample, and the hook runs over an instruction with a uprobe on it, with the registers of its
 * caller. Frees look up their pointer in the table of live samples. Memory that
 * is never unmapped again: a thread may be anywhere in it.
 *
 * Where each allocation is to be seen (interval_bytes of 1 or less) there is no sampling: each is an entry of one ring
 * in the shared memory, and the uprobe is only for stacks that are not known yet (exact.h).
 *
 * Shared by both sides and by different versions of gasflame: layout is fixed by BLOB_VERSION.
 */
#pragma once

/* The largest page of the processor: all parts begin at multiples of it. */
#ifdef __x86_64__
#define BLOB_PAGE        0x1000
#define BLOB_LOCAL_BYTES 0x2021000
#else
#define BLOB_PAGE        0x10000
#define BLOB_LOCAL_BYTES 0x2030000
#endif

/* Offsets that the hooks and blob.ld need. */
#define BLOB_FIXED_BYTES 0x10000
#define BLOB_REAL_AT     64   /* in the fixed part */
#define BLOB_THREADS_AT  1024 /* in the shared part */
#define BLOB_COARSE_AT   (BLOB_THREADS_AT + 4096 * 64)

#ifndef __ASSEMBLER__

#include <stdint.h>

#include "collect/heap/blob/exact.h"
#include "collect/inject/blobhead.h"

#define BLOB_MAGIC   0x62666c6748656170ULL
#define BLOB_VERSION 6
#define BLOB_NAME    BLOB_NAMES "heap" /* of the memfds */

/* How a function takes its size; for each, so many functions can be hooked. */
enum blob_shape {
	BLOB_SIZE,       /* (size, …): malloc, mallocx */
	BLOB_SIZE_2ND,   /* (alignment, size): aligned_alloc */
	BLOB_PRODUCT,    /* (n, size): calloc */
	BLOB_OUT,        /* (&pointer, alignment, size): posix_memalign */
	BLOB_RESIZE,     /* (pointer, size, …): realloc, rallocx */
	BLOB_FREE,       /* (pointer, …): free, sdallocx */
	BLOB_SHAPES,
};
enum { BLOB_EACH = 12 };

enum {
	BLOB_THREADS = 4096,  /* a thread's is found by its thread pointer; two that share one take turns */
	BLOB_HOMES = 1 << 19, /* places for live samples, by address */
	BLOB_NEAR = 16,       /* homes that share a bit of the coarse filter */
	BLOB_WAYS = 2,
	BLOB_SLOTS = 2048,
	/* Samples without a sign of gasflame, after which the blob goes to sleep. */
	BLOB_PATIENCE = 1 << 18,
};

struct blob_thread {
	uint64_t owner;     /* its thread pointer; 0 = nobody's yet */
	int64_t countdown;  /* bytes to the next sample */
	uint64_t count;     /* allocations */
	uint64_t bytes;     /* allocated, up to the last sample and but for what countdown says since */
	uint64_t drawn;     /* what countdown was set to then */
	uint64_t random;
	uint64_t samples;
	uint64_t interval;  /* of the distance that is counted down now; gasflame may have asked for another one since */
};

/* A sampled object: address 0 = none. Who allocated it, and its how many-th allocation that was. */
struct blob_object {
	uint64_t address;
	uint64_t stamp;
};

/*
 * A call of jemalloc's mallctl() that gasflame asks for: the next allocation that comes to sampler.c makes it, when it
 * is done. There no lock of the allocator is held. The order is in the fixed part, the answer in the shared one.
 */
enum blob_order_state { BLOB_IDLE, BLOB_ASKED, BLOB_TAKEN, BLOB_ANSWERED };
enum { BLOB_VALUE = 64, BLOB_MANY = 64 };

struct blob_order {
	uint64_t function;           /* 0: there is none */
	uint64_t old_size, new_size; /* of the values; 0: none */
	uint64_t new_is_text;        /* the new value is a pointer to text */
	char name[64];
	uint8_t new_value[BLOB_VALUE];
	char text[512];
	/* More than 0: so many calls, whose names are name, the numbers from first on, rest. */
	uint32_t many, first;
	char rest[32];
};

struct blob_answer {
	uint32_t state;    /* gasflame: idle to asked, and back; the target: asked to taken, taken to answered */
	int32_t result;    /* errno */
	uint64_t old_size; /* what was written */
	uint8_t old_value[BLOB_VALUE];
	uint64_t values[BLOB_MANY]; /* of many calls */
};

struct blob_fixed {
	struct blob_head head;
	uint64_t interval_bytes; /* mean distance of samples, for those drawn from now on; 1 or less: every allocation */
	uint64_t seed;
	uint64_t recordings; /* that there were */
	uint64_t pad;
	uint64_t real[BLOB_SHAPES][BLOB_EACH]; /* the functions that the hooks stand for */
	struct blob_order order;
	struct blob_slot slots[BLOB_SLOTS];
};

struct blob_shared {
	uint64_t silence; /* samples since gasflame set this to 0 */
	uint64_t full;    /* samples that found no room */
	struct blob_answer answer __attribute__((aligned(64)));
	struct blob_thread threads[BLOB_THREADS] __attribute__((aligned(1024)));
	/*
	 * A bit for each 16 homes of which one has an object, and one for each of these. Nearly every free is of an
	 * object that is no sample, and reads the first alone: 4 KB, so that it does not drive the target's own data out of
	 * the cache next to the processor.
	 */
	uint32_t coarse[BLOB_HOMES / BLOB_NEAR / 32];
	uint32_t filter[BLOB_HOMES / 32];
	struct blob_object objects[BLOB_HOMES][BLOB_WAYS];
	struct exact_shared exact __attribute__((aligned(4096)));
};

enum blob_active { BLOB_PASS_ON, BLOB_SAMPLE, BLOB_EXACT };

struct blob_local {
	uint32_t active; /* enum blob_active */
	struct exact_own exact __attribute__((aligned(BLOB_PAGE)));
};

/* Both hashes are in the hooks, too. */
static inline uint32_t blob_home(uint64_t address)
{
	return address * 0x1e3779b1 >> 17 & (BLOB_HOMES - 1);
}

static inline uint32_t blob_thread_of(uint64_t pointer)
{
	return pointer * 0x1e3779b1 >> 20 & (BLOB_THREADS - 1);
}

_Static_assert(__builtin_offsetof(struct blob_fixed, real) == BLOB_REAL_AT, "as the hooks have it");
_Static_assert(__builtin_offsetof(struct blob_shared, threads) == BLOB_THREADS_AT, "as the hooks have it");
_Static_assert(__builtin_offsetof(struct blob_shared, coarse) == BLOB_COARSE_AT, "as the hooks have it");
_Static_assert(sizeof(struct blob_fixed) <= BLOB_FIXED_BYTES, "as blob.ld has it");
_Static_assert(sizeof(struct blob_local) == BLOB_LOCAL_BYTES, "as the hooks and blob.ld have it");
_Static_assert(sizeof(struct blob_thread) == 64, "as the hooks have it");

#endif
