/*
 * split.bpf.h - tells the stacks of one place apart by a word of the stack.
 *
 * A thread comes to one place, a program counter and a stack pointer, by different ways. From the leaf up to the frame
 * where two ways part the functions are the same, and so are the sizes of their frames: the return address that differs
 * lies at one offset for both. Two walks that are compared find it. From then on it is read at each wait, for some 20 ns
 * instead of the microseconds of a walk, and is part of the place.
 *
 * Stacks that differ in the kernel only, or further up than is looked, cannot be told so.
 *
 * Part of wait.bpf.c.
 */
#pragma once

#include "collect/unwind/stackcache.bpf.h"

enum {
	SPLIT_FRAMES = 32,     /* as many are compared */
	SPLIT_WALKS = 1 << 10, /* as many places can be compared at a time */
	SPLIT_LEVELS = 3,      /* ways that part may part again */
	SPLIT_WAYS = 1000,     /* a place with more is not told apart: the word changes each time */
	SPLIT_NEVER = 0xffff,
};

/* The return addresses of a walk, to compare the next one with. */
struct split_walk {
	uint64_t key, stack;
	uint64_t count;
	uint64_t pc[SPLIT_FRAMES];
};

BPF_MAP(split_walks, ARRAY, SPLIT_WALKS, uint32_t, struct split_walk);

/* Is the place one whose stacks can be told apart? */
static __always_inline bool split_known(const struct stackcache *place)
{
	return place->mixed && place->split && place->split != SPLIT_NEVER;
}

/* The key of what lies below: the place at hand, and the word that tells its stacks apart. */
static __always_inline uint64_t split_key(const struct stackcache *place, uint64_t key, uint64_t sp)
{
	uint64_t word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)(sp + 8 * ((uint64_t)place->split - 1)));
	return unwind_hash(key, word);
}

/* A frame's return address lies below the stack pointer of its caller; but for signals and rare code. */
static __always_inline bool split_offset(const struct unwind *u, uint64_t sp, uint64_t *ret)
{
	uint64_t word = 0, offset = u->sp - 8 - sp;

	if (offset & 7 || offset / 8 + 1 >= SPLIT_NEVER ||
	    bpf_probe_read_user(&word, sizeof(word), (void *)(u->sp - 8)) || word != u->pc)
		return false;
	*ret = offset / 8 + 1;
	return true;
}

/*
 * Compares the current task's stack, which was just walked and is this one, with one that was found before at a place. A
 * function that the verifier checks by itself: within on_switch() it checked it once for each way that leads there.
 */
__attribute__((noinline)) int split_learn(struct unwind *u, struct shared_process *p, struct stackcache *place, uint64_t key,
					  uint64_t stack)
{
	uint32_t slot = key >> 54;
	struct split_walk *w = bpf_map_lookup_elem(&split_walks, &slot);
	uint64_t sp, at = SPLIT_NEVER;
	bool compare;

	_Static_assert(SPLIT_WALKS == 1 << 10, "the shift above");
	if (!w || !u || !p || !place || place->split == SPLIT_NEVER || (w->key == key && w->stack == stack) || !unwind_from_task(u))
		return 0;
	compare = w->key == key;
	if (!compare)
		w->count = 0;
	sp = u->sp;
	u->count = 0;
	u->last.start = u->last.end = 0;
	for (uint32_t i = 0; i < SPLIT_FRAMES; i++) {
		if (unwind_next(u, p, NULL))
			break;
		if (!compare) {
			w->pc[i] = u->pc;
			w->count = i + 1;
		} else if (i >= w->count || w->pc[i] != u->pc) {
			if (!split_offset(u, sp, &at))
				at = SPLIT_NEVER;
			break;
		}
	}
	w->stack = stack;
	w->key = key;
	/* The lower one is a return address for all of them. */
	if (compare && (!place->split || at < place->split))
		place->split = at;
	return 0;
}
