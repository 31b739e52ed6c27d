/*
 * stackcache.bpf.h - stacks remembered by the place where they were taken.
 *
 * A place is a thread, what it does, its program counter and its stack pointer:
 * nearly always one stack. Walking it again costs microseconds, finding it here
 * some nanoseconds. Which stack a place has can change under it; who uses it walks
 * again now and then by chance, so that each gets its share on average.
 *
 * One file defines the map (STACKCACHE_DEFINE), all share it.
 */
#pragma once

#include "collect/unwind/unwind.bpf.h"

/* check ^ stack is the place's key, so that a slot written by two CPUs at once is no slot rather than a wrong
 * one. last_ns: how long it was waited there last. mean_ns: how long on average, where the stack was walked.
 * walked_ns: when that was last. mixed: more than one stack was found. rare: it is walked again with a chance of
 * 2^-rare. */
struct stackcache {
	uint64_t check, stack, last_ns;
	uint64_t mean_ns, walked_ns;
	uint32_t mixed, rare;
};

/*
 * How often the stack of a place is walked again: often enough to find other stacks there, and where there are some, to
 * tell their shares; but no more often where a place is passed 100,000 times a second than where it is passed 1,000
 * times. The chance depends on nothing but how often the place is passed, so that shares stay right.
 */
enum {
	STACKCACHE_RARE = 5, STACKCACHE_RARE_MIXED = 3, STACKCACHE_RARE_MOST = 12,
	STACKCACHE_SOON_NS = 8000000, STACKCACHE_SOON_MIXED_NS = 2000000,
	STACKCACHE_LATE = 8, /* times soon */
};

#ifdef STACKCACHE_DEFINE
#define STACKCACHE_MAP
#else
#define STACKCACHE_MAP extern
#endif

STACKCACHE_MAP BPF_MAP(stackcache, ARRAY, SHARED_STACKCACHE, uint32_t, struct stackcache);

/* The key of the registers in u; what: tells apart what one thread does at one address. */
static __always_inline uint64_t stackcache_key(uint32_t tid, uint32_t what, const struct unwind *u)
{
	return unwind_hash(unwind_hash((uint64_t)tid << 32 | what, u->pc), u->sp);
}

/*
 * Many functions call read() with the same stack pointer. The return address is near
 * it, in one of the words below: pointers that do not point into the stack are part of
 * the place. Some are addresses of buffers, and then a place is new more often than it need be.
 */
static __always_inline uint64_t stackcache_callers(uint64_t sp)
{
	uint64_t words[8], hash = 1;

	if (bpf_probe_read_user(words, sizeof(words), (void *)sp))
		return hash;
	for (int i = 0; i < 8; i++)
		if (words[i] >> 32 && words[i] - sp + (1 << 23) > 1 << 24)
			hash = unwind_hash(hash, words[i]);
	return hash;
}

/* Its slot, which may be another place's. */
static __always_inline struct stackcache *stackcache_of(uint64_t key)
{
	uint32_t slot = key >> 48;

	_Static_assert(SHARED_STACKCACHE == 1 << 16, "the shift above");
	return bpf_map_lookup_elem(&stackcache, &slot);
}

static __always_inline bool stackcache_known(const struct stackcache *p, uint64_t key)
{
	return (p->check ^ p->stack) == key;
}

static __always_inline void stackcache_set(struct stackcache *p, uint64_t key, uint64_t stack)
{
	p->last_ns = 0;
	p->mean_ns = 0;
	p->walked_ns = 0;
	p->mixed = 0;
	p->rare = STACKCACHE_RARE;
	p->stack = stack;
	p->check = key ^ stack;
}

/* Does chance want the stack of a known place walked again? */
static __always_inline bool stackcache_again(const struct stackcache *p)
{
	return !(bpf_get_prandom_u32() & ((1u << (p->rare & 15)) - 1));
}

/* The stack of a known place was walked again, by chance. */
static __always_inline void stackcache_walked(struct stackcache *p, uint64_t now)
{
	uint64_t passed = now - p->walked_ns, soon = p->mixed ? STACKCACHE_SOON_MIXED_NS : STACKCACHE_SOON_NS;
	uint32_t least = p->mixed ? STACKCACHE_RARE_MIXED : STACKCACHE_RARE;

	p->walked_ns = now;
	if (passed < soon && p->rare < STACKCACHE_RARE_MOST)
		p->rare++;
	else if (passed > soon * STACKCACHE_LATE && p->rare > least)
		p->rare--;
}

/* Is a stack that was walked worth remembering? One that is cut because mappings or tables are not known yet will
 * soon be whole. */
static __always_inline bool stackcache_worth(const struct unwind *u)
{
	return u->reason != REASON_NO_MAPPING && u->reason != REASON_NO_TABLE_YET;
}
