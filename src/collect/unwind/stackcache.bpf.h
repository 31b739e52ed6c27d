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

/*
 * check ^ stack is the place's key, so that a slot written by two CPUs at once is no slot rather than a wrong one.
 * last_ns: how long the last wait there took. mean_ns: how long they take on average, where the stack was walked.
 * walked_ns: when chance last had it walked. mixed: more than one stack was found. rare: the chance of walking it again
 * is 2^-rare. sure: walks since that was so rare, all of one stack. split, ways: see split.bpf.h. carried_ns: the time that was given to the stack since it is remembered
 * where there are others, else since a walk last found it. unsure_us2: the
 * squares of these times, while one stack was found. newest: of the key of the place where a stack was last walked, for an
 * instruction that stands for many.
 */
struct stackcache {
	uint64_t check, stack;
	uint64_t last_ns, mean_ns, walked_ns;
	uint8_t mixed, rare;
	uint16_t split, ways, sure;
	uint32_t carried_ns, newest;
	uint64_t unsure_us2;
};

/*
 * A stack is walked again to find other stacks of its place, and where there are some, to tell their shares. A new place
 * is walked again at once, then with half the chance each time, down to one of 32, or of 8 where there are several. From
 * there the chance falls where the place is passed often, so that its walks are some 30 a second, or 1,000 where there are
 * several, rather than a part of 100,000. The chance depends on nothing but how often the place is passed: shares stay
 * right.
 *
 * Where one stack was found, what was not found yet has no share, and no stated error. A stack that is there one time in four
 * is missed by 13 walks in 2 % of all places, by 34 in 1 of 18,000: so four walks must agree before the chance is halved
 * once more, and a budget that thins stacks (thin) lowers these walks to some ten a second, not further.
 */
enum {
	STACKCACHE_RARE = 5, STACKCACHE_RARE_MIXED = 3, STACKCACHE_RARE_MOST = 12,
	STACKCACHE_SOON_NS = 8000000, STACKCACHE_SOON_MIXED_NS = 250000,
	STACKCACHE_LATE = 8, /* times soon */
	STACKCACHE_SURE = 4, STACKCACHE_THIN_ONE = 3,
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
 * the place. Some are addresses of buffers, and then a place is new more often than it need be. words: room for them, which is
 * not on the stack where that is short.
 */
enum { STACKCACHE_WORDS = 8 };
static __always_inline uint64_t stackcache_callers(uint64_t sp, uint64_t words[STACKCACHE_WORDS])
{
	uint64_t hash = 1;

	if (bpf_probe_read_user(words, STACKCACHE_WORDS * 8, (void *)sp))
		return hash;
	for (int i = 0; i < STACKCACHE_WORDS; i++)
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
	p->rare = 0;
	p->split = p->ways = 0;
	p->sure = 0;
	p->carried_ns = p->newest = 0;
	p->unsure_us2 = 0;
	p->stack = stack;
	p->check = key ^ stack;
}

static __always_inline void stackcache_forget(struct stackcache *p)
{
	p->check = p->stack = 0;
}

/*
 * Does chance want the stack of a known place walked again? Each step of thin halves that where there are several. Where one
 * was found, others may not have been seen yet: there the steps only make stackcache_walked() lower the chance further.
 */
static __always_inline bool stackcache_again(const struct stackcache *p, uint32_t thin)
{
	uint32_t rare = p->rare + (p->mixed ? thin : 0);

	return !(bpf_get_prandom_u32() & ((1u << (rare < 31 ? rare : 31)) - 1));
}

/* Another stack was found at a place. */
static __always_inline void stackcache_mix(struct stackcache *p)
{
	p->mixed = 1;
	p->rare = STACKCACHE_RARE_MIXED;
}

/* The stack of a known place was walked again, by chance, and is this one. */
static __always_inline void stackcache_walked(struct stackcache *p, uint64_t stack, uint64_t now, uint32_t thin)
{
	uint64_t passed = now - p->walked_ns;
	uint32_t shift = p->mixed || thin < STACKCACHE_THIN_ONE ? thin & 15 : STACKCACHE_THIN_ONE;
	uint64_t soon = (uint64_t)(p->mixed ? STACKCACHE_SOON_MIXED_NS : STACKCACHE_SOON_NS) << shift;
	uint32_t least = p->mixed ? STACKCACHE_RARE_MIXED : STACKCACHE_RARE;

	p->walked_ns = now;
	if (!p->mixed && p->stack != stack) {
		stackcache_mix(p);
	} else if (p->rare < least || (passed < soon && p->rare < STACKCACHE_RARE_MOST)) {
		if (p->mixed || p->rare < least || ++p->sure % STACKCACHE_SURE == 0)
			p->rare++;
	} else if (passed > soon * STACKCACHE_LATE && p->rare > least) {
		p->rare--;
	}
}

/* Is a stack that was walked worth remembering? One that is cut because mappings or tables are not known yet will
 * soon be whole. */
static __always_inline bool stackcache_worth(const struct unwind *u)
{
	return u->reason != REASON_NO_MAPPING && u->reason != REASON_NO_TABLE_YET;
}
