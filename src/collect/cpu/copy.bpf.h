/*
 * copy.bpf.h - the stack of a young process as it is, to be unwound in user space when its files have been read.
 *
 * For the first process of a program: its samples come before anybody knows where its code lies. What is sent is
 * bounded: some pages of stack, and so many copies within a second on all CPUs together that the ring has room for the
 * rest. Part of cpu.bpf.c.
 */
#pragma once

#include "collect/unwind/unwind.bpf.h"

enum { COPY_PAGE = 4096, COPY_SLOT_NS = 1000000000 };

struct copy_scratch {
	struct shared_copy copy;
	uint8_t stack[SHARED_COPY_PAGES][COPY_PAGE];
};
BPF_MAP(copy_scratch, PERCPU_ARRAY, 1, uint32_t, struct copy_scratch);

struct copy_budget {
	uint64_t slot, used;
};
BPF_MAP(copy_budget, ARRAY, 1, uint32_t, struct copy_budget);

/* May one more be sent in this second? CPUs that begin one at the same time may send some more. */
static __always_inline bool copy_allowed(uint64_t now)
{
	uint32_t zero = 0;
	struct copy_budget *b = bpf_map_lookup_elem(&copy_budget, &zero);

	if (!b)
		return false;
	if (b->slot != now / COPY_SLOT_NS) {
		b->slot = now / COPY_SLOT_NS;
		b->used = 0;
	}
	if (b->used >= SHARED_COPIES)
		return false;
	__sync_fetch_and_add(&b->used, 1);
	return true;
}

/* The kernel's frames stand behind those of the user. */
static __always_inline void copy_kernel(struct shared_copy *c, struct unwind *u)
{
	uint32_t count = u->count, bytes = u->record.kernel_count * 8;

	if (count > SHARED_MAX_USER_FRAMES || bytes > sizeof(c->kernel) ||
	    bpf_probe_read_kernel(c->kernel, bytes, &u->frames[count]))
		c->record.kernel_count = 0;
}

/* Sends the sample in u, whose walk has changed the registers. False: it is to be sent as it is. */
static __always_inline bool copy_send(void *ctx, struct unwind *u)
{
	uint32_t pid = u->record.pid, zero = 0, pages = 0;
	struct shared_young *y = bpf_map_lookup_elem(&young, &pid);
	struct copy_scratch *s = bpf_map_lookup_elem(&copy_scratch, &zero);

	if (!y || !s || !copy_allowed(u->record.time_ns))
		return false;
	s->copy.record = u->record;
	s->copy.record.kind = RECORD_COPY;
	s->copy.record.user_count = 0;
	s->copy.record.has_frames = 0;
	s->copy.record.reason = u->reason;
	copy_kernel(&s->copy, u);
	if (bpf_probe_read_kernel(&s->copy.young, sizeof(s->copy.young), y))
		return false;
	if (CONTEXT_IN_USER())
		UNWIND_FROM(u, CONTEXT);
	else if (!unwind_from_task(u))
		return false;
	for (int i = 0; i < SHARED_COPY_REGISTERS - 1; i++)
		s->copy.registers[i] = u->registers[i];
	s->copy.registers[SHARED_COPY_REGISTERS - 1] = u->pc;
	s->copy.base = u->sp & ~(uint64_t)(COPY_PAGE - 1);
	for (; pages < SHARED_COPY_PAGES; pages++)
		if (bpf_probe_read_user(s->stack[pages], COPY_PAGE, (void *)(s->copy.base + pages * COPY_PAGE)))
			break;
	return pages && !bpf_ringbuf_output(&ring, s, sizeof(s->copy) + pages * COPY_PAGE, BPF_RB_NO_WAKEUP);
}
