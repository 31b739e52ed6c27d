/*
 * steparm64.bpf.h - one step from a frame to its caller on arm64. A part of unwind.bpf.c; stepx86.bpf.h is the same for x86-64.
 *
 * A call leaves the return address in x30. It is there still in a leaf, and where a signal has come; in all other frames it was
 * saved, beside the frame pointer or elsewhere (RULE_LINK). It may be signed: the signature lies above pc_mask.
 */
#pragma once

#include "collect/unwind/unwind.bpf.h"

enum { RBX = 3 }; /* not kept here; what is common to both machines sets it */

#define RULE_RECORD (RULE_LINK_BESIDE + 1) /* x29 and x30 side by side */

#include "collect/unwind/trail.bpf.h"

static __always_inline uint64_t without_signature(uint64_t pc)
{
	return pc & pc_mask;
}

/* bl, or one of blr, blraa, blrab, blraaz, blrabz */
static __always_inline bool is_call(uint32_t word)
{
	return word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000 || (word & 0xfefff800) == 0xd63f0800;
}

/* The instruction before an address, 0 if it is no call. */
static __always_inline uint32_t call_before(uint64_t address)
{
	uint32_t word;

	return !(address & 3) && !bpf_probe_read_user(&word, sizeof(word), (void *)(address - 4)) && is_call(word) ? word : 0;
}

enum { GUESS_FUNCTION = 1 << 12 }; /* bytes from the begin of a function within which pc may be: most are shorter */

/*
 * Does the link register say who called the function at hand? A function that has called others has the place after that call
 * there. So it does where the code there is another file's, or where the call leads to a function that begins shortly before pc.
 */
static __always_inline bool is_called_from(struct unwind *u, struct shared_process *p, uint64_t lr)
{
	uint64_t own = u->last.start;
	uint32_t word = call_before(lr);

	if (!word || !find_mapping(u, p, lr - 1))
		return false;
	if (u->last.start != own)
		return true;
	return word >> 26 == 0x25 && u->pc - (lr - 4 + ((int64_t)((uint64_t)word << 38) >> 36)) < GUESS_FUNCTION;
}

/* Code that no row covers: hand-written leaves, and generated code that keeps frame records. What is found is a return address only
 * where a call stands before it. */
__attribute__((noinline)) int unwind_guess(struct unwind *u, struct shared_process *p, uint32_t rewritten)
{
	uint64_t pair[2], lr;

	asm volatile("" : : "r"(rewritten)); /* no row of this machine is wrong; clang would leave the argument out at calls */
	if (!u || !p)
		return 1;
	lr = without_signature(u->registers[UNWIND_LR]);
	if (u->leaf && is_called_from(u, p, lr)) {
		u->pc = lr;
		u->leaf = 0;
		u->guessed |= UNWIND_GUESSED;
		return 0;
	}
	if (u->bp < u->sp || u->bp & 7 || bpf_probe_read_user(pair, sizeof(pair), (void *)u->bp))
		return stop(u, REASON_NO_RULE);
	pair[1] = without_signature(pair[1]);
	if (!call_before(pair[1]) || !find_mapping(u, p, pair[1] - 1))
		return stop(u, REASON_NO_RULE);
	u->sp = u->bp + 16;
	u->bp = pair[0];
	u->pc = pair[1];
	u->leaf = 0;
	u->guessed |= UNWIND_DERIVED;
	return 0;
}

/* The kernel keeps x29, x30, sp and pc side by side in a signal frame. */
static __always_inline int signal_step(struct unwind *u)
{
	uint64_t at = u->sp + RULE_ARM64_SIGNAL_REGS + 29 * 8;

	if (bpf_probe_read_user(u->saved, 4 * 8, (void *)at))
		return stop(u, REASON_BAD_STACK);
	u->bp = u->registers[6] = u->saved[0];
	u->registers[UNWIND_LR] = u->saved[1];
	u->sp = u->registers[7] = u->saved[2];
	u->pc = u->saved[3];
	u->leaf = 1;
	return 0;
}

/* RULE_LINK */
static __always_inline int link_step(struct unwind *u, uint64_t rule)
{
	uint32_t link = RULE_LINK_OF(rule), how = RULE_RBP(rule);
	bool by_fp = RULE_REG(rule) == RULE_BASE_FP;
	uint64_t sp = u->sp, base = by_fp ? u->bp : sp, cfa = base + RULE_CFA_OFFSET(rule), place;
	uint64_t *pair = u->saved; /* there is no room on the stack */

	if ((by_fp && base == RULE_LOST_RBP) || (link == RULE_LINK_REGISTER && !u->leaf))
		return stop(u, REASON_LOST_REGISTER);
	/* Only a leaf may have no frame. With the frame pointer as base the stack may have been switched. */
	if (!by_fp && (cfa < sp || (cfa == sp && !u->leaf)))
		return stop(u, REASON_NOT_RISING);
	place = (how == RULE_RBP_RBP || link == RULE_LINK_BASE ? base : cfa) + RULE_RBP_OFFSET(rule);
	pair[0] = u->bp;
	pair[1] = u->registers[UNWIND_LR];
	if (link == RULE_RECORD) {
		if (bpf_probe_read_user(pair, 16, (void *)place))
			return stop(u, REASON_BAD_STACK);
	} else {
		if ((link == RULE_LINK_CFA || link == RULE_LINK_BASE) && !read_word(place, &pair[1]))
			return stop(u, REASON_BAD_STACK);
		if (link >= RULE_LINK_NEAR && !read_word(place + 8 * link - 8 * RULE_LINK_BESIDE, &pair[1]))
			return stop(u, REASON_BAD_STACK);
		if ((how == RULE_RBP_CFA || how == RULE_RBP_RBP) && !read_word(place, &pair[0]))
			return stop(u, REASON_BAD_STACK);
		if (how == RULE_RBP_LOST)
			pair[0] = RULE_LOST_RBP;
	}
	u->bp = pair[0];
	u->pc = without_signature(pair[1]);
	u->sp = cfa;
	u->leaf = 0;
	return u->pc ? 0 : stop(u, REASON_COMPLETE);
}

/* No table at all: x29 points to {caller's x29, return address}. */
static __always_inline int record_step(struct unwind *u)
{
	uint64_t *pair = u->saved, bp = u->bp;

	if (!bp)
		return stop(u, REASON_COMPLETE);
	if (bp < u->sp || bp & 7)
		return stop(u, REASON_FRAME_POINTER);
	if (bpf_probe_read_user(pair, 16, (void *)bp))
		return stop(u, REASON_BAD_STACK);
	u->sp = bp + 16;
	u->bp = pair[0];
	u->pc = without_signature(pair[1]);
	u->leaf = 0;
	return u->pc ? 0 : stop(u, REASON_COMPLETE);
}

/* Records the frame at hand and goes to its caller. t: the trail on which it is not, or NULL. Gives enum step_result. */
__attribute__((noinline)) int unwind_step(struct unwind *u, struct shared_process *p, struct trail *t)
{
	uint64_t pc, address, rule;
	uint32_t count;

	if (!u || !p)
		return 1;
	count = u->count;
	if (count >= SHARED_MAX_USER_FRAMES)
		return 1;
	pc = pc_of(u);
	if (!find_mapping(u, p, pc))
		return STEP_YOUNG;
	address = pc - u->last.bias;
	u->frames[count & (SHARED_MAX_USER_FRAMES - 1)] = SHARED_FRAME(u->last.module, address);
	u->hash = unwind_hash(u->hash, SHARED_FRAME(u->last.module, address));
	u->count = count + 1;

	rule = rule_of(u->last.module, address);
	unwind_note(u, t, SHARED_FRAME(u->last.module, address), rule);
	switch (RULE_CFA(rule)) {
	case RULE_LINK:
		return link_step(u, rule);
	case RULE_END:
		return stop(u, REASON_COMPLETE);
	case RULE_SIGNAL:
		/* The kernel has the handler return to the first byte of a function; the byte before is another's. */
		u->frames[count & (SHARED_MAX_USER_FRAMES - 1)] = SHARED_FRAME(u->last.module, u->pc - u->last.bias);
		return signal_step(u);
	case RULE_FRAME_POINTER:
		return record_step(u);
	case RULE_NONE:
		return STEP_SEARCH;
	case RULE_BUILDING:
		return stop(u, REASON_NO_TABLE_YET);
	default:
		return stop(u, REASON_UNSUPPORTED);
	}
}

/* No row is read from code of this machine. */
static __always_inline int unwind_derived(struct unwind *u, struct shared_process *p, uint64_t rule)
{
	return stop(u, REASON_UNSUPPORTED);
}
