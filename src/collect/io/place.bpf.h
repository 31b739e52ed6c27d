/*
 * place.bpf.h - the places at which a thread makes its calls, each with its stack and its sum.
 *
 * A server makes most of its calls at a few places: an instruction, a depth of the stack, a file. Such a place is
 * remembered with the thread, so that a call there costs a comparison, and what it moved is added up right there. Its
 * stack is walked again by chance: other stacks are found, and where a place has several, each gets its share on average.
 * The chance falls where a place is passed often and depends on nothing else, so that shares stay right.
 *
 * Functions that call read() alike differ in the words near the stack pointer. To read these takes as long as the rest, so
 * they are compared at first, then for one call in eight, and for each call from the first difference on. Where they differ
 * and the stack does not, as when they are addresses of buffers, they are given up.
 */
#pragma once

#include "collect/io/io.bpf.h"

enum {
	PLACE_CHECKS = 64,      /* comparisons of the callers before one call in eight will do */
	PLACE_NOISE = 8,        /* stacks that were the same although the callers differed */
	PLACE_BUSY = 16,        /* calls of a thread within a slot, beyond which no stack is walked for its own sake */
	PLACE_RARE = 5, PLACE_RARE_MIXED = 3, PLACE_RARE_MOST = 12,
	PLACE_SOON_NS = 16000000, PLACE_SOON_MIXED_NS = 250000,
	PLACE_LATE = 2,         /* times soon */
};

static __always_inline void place_send(struct shared_io_place *p)
{
	if (!p->sum.count)
		return;
	io_send(&p->sum);
	p->sum.count = 0;
}

/* Sends what a thread has summed. Functions without static are checked by the verifier once, wherever they are called. */
__attribute__((noinline)) int place_send_all(struct shared_io_thread *t)
{
	if (!t)
		return 0;
	for (int i = 0; i < SHARED_IO_PLACES; i++)
		place_send(&t->places[i]);
	return 0;
}

static __always_inline bool place_is(const struct shared_io_place *p, const struct shared_io_call *c, uint32_t op)
{
	return p->ip == c->ip && p->sp == c->sp && p->sum.file == c->file && p->sum.op == op && p->sum.way == c->way;
}

static __always_inline uint32_t place_slot(uint64_t hash)
{
	_Static_assert(SHARED_IO_PLACES == 1 << 5, "the shift below");
	return hash >> 59 & (SHARED_IO_PLACES - 1);
}

static __always_inline uint64_t place_hash(const struct shared_io_call *c, uint32_t op)
{
	return unwind_hash(unwind_hash(unwind_hash(op << 8 | c->way, c->ip), c->sp), c->file);
}

/* Each has two slots. SHARED_IO_PLACES: it is in neither. callers: they are to be the same. */
static __always_inline uint32_t place_search(struct shared_io_thread *t, uint64_t hash, const struct shared_io_call *c, bool callers)
{
	uint32_t at = place_slot(hash);

	for (int i = 0; i < 2; i++, at ^= 1) {
		struct shared_io_place *p = &t->places[at & (SHARED_IO_PLACES - 1)];

		if (place_is(p, c, t->op) && (!callers || p->callers == c->callers))
			return at;
	}
	return SHARED_IO_PLACES;
}

/* Walks the stack of the call at hand. t->worth: it is worth remembering. 0: there was no room to walk it. */
__attribute__((noinline)) uint64_t place_walk(struct shared_io_thread *t)
{
	struct scratch *s = scratch_take(&io_scratches);
	uint64_t stack;
	uint32_t pid;

	if (!t || !s) {
		io_lost_stack();
		if (s)
			scratch_give(s);
		return 0;
	}
	pid = t->pid;
	s->u.record.pid = pid;
	stack = io_walk(&s->u, bpf_map_lookup_elem(&processes, &pid), unwind_from_task(&s->u));
	t->worth = stackcache_worth(&s->u);
	t->walks++;
	t->walked = 1;
	scratch_give(s);
	return stack;
}

static __always_inline bool place_remembered(struct stackcache *s, uint64_t key, uint64_t *stack)
{
	if (!s || !stackcache_known(s, key))
		return false;
	*stack = s->stack;
	return true;
}

/* The stack of a call at a new place: walked while these are few, then what was remembered for the place and the file by all
 * threads' cache, and where those are too many, for the place alone. */
static __always_inline uint64_t place_find_stack(struct shared_io_thread *t, struct shared_io_call *c)
{
	uint64_t coarse_key, fine_key, stack = 0;
	struct stackcache *coarse, *fine;
	uint32_t thin = io_thin & 15;

	coarse_key = unwind_hash(unwind_hash((uint64_t)t->tid << 32 | t->op, c->ip), c->sp);
	fine_key = unwind_hash(unwind_hash(coarse_key, c->callers), c->file);
	coarse = stackcache_of(coarse_key);
	fine = stackcache_of(fine_key);
	if (t->walks >= SHARED_IO_WALKS >> thin && bpf_get_prandom_u32() & ((64u << thin) - 1) &&
	    (place_remembered(fine, fine_key, &stack) ||
	     (t->walks >= SHARED_IO_MORE >> thin && place_remembered(coarse, coarse_key, &stack))))
		return stack;
	stack = place_walk(t);
	if (!stack || !t->worth)
		return stack; /* tried again next time */
	if (coarse)
		stackcache_set(coarse, coarse_key, stack);
	if (fine)
		stackcache_set(fine, fine_key, stack);
	return stack;
}

/* Reads the words near the stack pointer. A function of its own for its room on the stack. */
__attribute__((noinline)) int place_callers(struct shared_io_thread *t, uint32_t which)
{
	uint64_t words[STACKCACHE_WORDS];

	if (t)
		t->ways[which & 1].callers = stackcache_callers(t->ways[which & 1].sp, words);
	return 0;
}

/* The slot for a new place: of the two, one that is free, or the one with fewer calls. Its sum is sent. */
static __always_inline struct shared_io_place *place_room(struct shared_io_thread *t, uint64_t hash, uint32_t *at)
{
	uint32_t a = place_slot(hash), b = a ^ 1;
	struct shared_io_place *p = &t->places[a & (SHARED_IO_PLACES - 1)], *q = &t->places[b & (SHARED_IO_PLACES - 1)];

	if (a == t->from || (b != t->from && p->sum.kind && (!q->sum.kind || q->sum.count < p->sum.count))) {
		p = q;
		a = b;
	}
	place_send(p);
	*at = a;
	return p;
}

/* Makes a place for a call, with its stack. Its number. */
__attribute__((noinline)) int place_new(struct shared_io_thread *t, uint32_t which)
{
	struct shared_io_place *p;
	struct shared_io_call *c;
	uint64_t stack;
	uint32_t at;

	if (!t)
		return 0;
	c = &t->ways[which & 1];
	if (!c->callers)
		place_callers(t, which);
	stack = place_find_stack(t, c);
	if (c->near < SHARED_IO_PLACES) {
		p = &t->places[c->near & (SHARED_IO_PLACES - 1)];
		if (p->sum.stack == stack && p->noise < PLACE_NOISE)
			p->noise++;
	}
	p = place_room(t, c->hash, &at);
	__builtin_memset(p, 0, sizeof(*p));
	p->ip = c->ip;
	p->sp = c->sp;
	p->callers = c->callers;
	p->rare = PLACE_RARE;
	p->sum.kind = RECORD_IO;
	p->sum.pid = t->pid;
	p->sum.tid = t->tid;
	p->sum.op = t->op;
	p->sum.way = c->way;
	p->sum.stack = stack;
	p->sum.file = c->file;
	if (c->file && !file_announce((void *)c->handle, c->file))
		p->sp = 0; /* not to be found: its name is sent again with the next call */
	return at;
}

/* A call whose callers differ from those of its place: the place of these callers. SHARED_IO_PLACES: it is to be made. */
__attribute__((noinline)) int place_split(struct shared_io_thread *t, uint32_t which)
{
	struct shared_io_call *c;
	uint32_t at;

	if (!t)
		return 0;
	c = &t->ways[which & 1];
	t->places[c->near & (SHARED_IO_PLACES - 1)].split = 1;
	c->hash = unwind_hash(c->hash, c->callers);
	at = place_search(t, c->hash, c, true);
	return at >= SHARED_IO_PLACES && t->walks >= SHARED_IO_MORE >> (io_thin & 15) ? c->near : at;
}

/*
 * Walks the stack of a known place again. The next such walk becomes rarer or less rare. Each walk decides for the calls
 * until the next one, n of them: if a place has a stack in a share s of its calls, their number has a variance of s(1 - s)
 * n², and two walks in a row differ with a chance of 2s(1 - s).
 */
__attribute__((noinline)) int place_again(struct shared_io_thread *t, uint32_t at)
{
	struct shared_io_counts *counts = io_counts_here();
	uint64_t now = bpf_ktime_get_ns(), stack, after, soon, n;
	struct shared_io_place *p;

	if (!t)
		return 0;
	p = &t->places[at & (SHARED_IO_PLACES - 1)];
	after = now - p->walked_ns;
	n = p->passed;
	stack = place_walk(t);
	if (!stack || !t->worth)
		return 0; /* the remembered stack will do */
	p->passed = 0;
	if (p->sum.stack != stack) {
		place_send(p);
		p->sum.stack = stack;
		p->mixed = 1;
		if (counts)
			counts->variance += n * n / 2;
	}
	soon = (p->mixed ? PLACE_SOON_MIXED_NS : PLACE_SOON_NS) << (io_thin & 15);
	p->walked_ns = now;
	if (after < soon && p->rare < PLACE_RARE_MOST)
		p->rare++;
	else if (after > soon * PLACE_LATE && p->rare > (p->mixed ? PLACE_RARE_MIXED : PLACE_RARE))
		p->rare--;
	return 0;
}

/* The place of one way of the call at hand, made if it is new. */
static __always_inline uint32_t place_of(struct shared_io_thread *t, uint32_t which, uint64_t ip, uint64_t sp)
{
	uint32_t at, chance = bpf_get_prandom_u32(), thin = io_thin & 15;
	struct shared_io_call *c = &t->ways[which];
	struct shared_io_place *p;

	c->ip = ip;
	c->sp = sp;
	c->callers = 0;
	c->hash = place_hash(c, t->op);
	at = place_search(t, c->hash, c, false);
	p = &t->places[at & (SHARED_IO_PLACES - 1)];
	c->near = at;
	if (at < SHARED_IO_PLACES && p->noise < PLACE_NOISE && (p->split || p->checks < PLACE_CHECKS || !(chance & 7))) {
		place_callers(t, which);
		if (c->callers == p->callers)
			p->checks++;
		else
			at = place_split(t, which);
	}
	if (at >= SHARED_IO_PLACES)
		return place_new(t, which);
	p = &t->places[at & (SHARED_IO_PLACES - 1)];
	p->passed++;
	if (!t->walked && (t->walks < t->allowed >> thin || !(chance >> 3 & ((1u << ((p->rare & 15) + thin)) - 1))))
		place_again(t, at);
	return at;
}
