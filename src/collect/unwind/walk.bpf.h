/*
 * walk.bpf.h - a whole stack: all frames, their hash, the record. A part of unwind.bpf.c.
 *
 * Each is a global function. The verifier checks such a function once for a program, by itself. Within the function that
 * walks a stack it would check the loops again for every way that leads there: on_switch() took 227,000 instructions, and takes
 * 50,000.
 */
#pragma once

#include "collect/unwind/unwind.bpf.h"

/* All frames, from the registers in u; what came of it is in u. */
__attribute__((noinline)) int unwind_all(struct unwind *u, struct shared_process *p)
{
	if (!u || !p)
		return 0;
	for (int i = 0; i < SHARED_MAX_USER_FRAMES; i++)
		if (unwind_next(u, p, NULL))
			break;
	return 0;
}

/* The same with a trail. */
__attribute__((noinline)) int unwind_all_along(struct unwind *u, struct shared_process *p, struct trail *t)
{
	if (!u || !p || !t)
		return 0;
	unwind_begin(u, p, t);
	for (int i = 0; i < SHARED_MAX_USER_FRAMES; i++)
		if (unwind_follow(u, t) || unwind_next(u, p, t))
			break;
	unwind_keep(t);
	return 0;
}

/* Adds the kernel's frames, which follow the user's, to the hash. */
__attribute__((noinline)) int unwind_hash_kernel(struct unwind *u)
{
	uint32_t first, count;
	uint64_t hash;

	if (!u)
		return 0;
	first = u->count;
	count = u->record.kernel_count;
	hash = u->hash;
	if (first > SHARED_MAX_USER_FRAMES)
		return 0;
	for (uint32_t i = 0; i < SHARED_MAX_KERNEL_FRAMES; i++) {
		if (i >= count)
			break;
		hash = unwind_hash(hash, u->frames[first + i]);
	}
	u->hash = hash;
	return 0;
}

/* Completes the record and sends it, with the frames where they were not sent before. always: also when
 * they were; the record says more than the stack. Gives enum unwind_sent. */
__attribute__((noinline)) int unwind_send(struct unwind *u, uint32_t always)
{
	uint32_t count, kernel_count;
	uint64_t size, *slot;

	if (!u)
		return UNWIND_RING_FULL;
	count = u->count;
	kernel_count = u->record.kernel_count;
	size = sizeof(u->record);
	if (count > SHARED_MAX_USER_FRAMES || kernel_count > SHARED_MAX_KERNEL_FRAMES)
		return UNWIND_RING_FULL;
	u->record.user_count = count;
	u->record.reason = u->reason;
	u->record.stack = unwind_hash(u->hash, (uint64_t)count << 32 | kernel_count << 8 | u->record.own_frames << 7 | u->reason);
	slot = cache_entry(&seen, SHARED_SEEN_PART, u->record.stack);
	u->record.has_frames = !slot || *slot != u->record.stack;
	if (u->record.has_frames)
		size += (count + kernel_count) * 8;
	else if (!always)
		return UNWIND_SENT;
	if (bpf_ringbuf_output(&ring, &u->record, size, BPF_RB_NO_WAKEUP))
		return UNWIND_RING_FULL;
	if (!u->record.has_frames || !slot)
		return UNWIND_SENT;
	*slot = u->record.stack;
	return UNWIND_SENT_FRAMES;
}
