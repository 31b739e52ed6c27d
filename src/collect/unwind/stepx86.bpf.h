/*
 * stepx86.bpf.h - one step from a frame to its caller on x86-64. A part of unwind.bpf.c; steparm64.bpf.h is the same for arm64.
 */
#pragma once

#include "collect/unwind/unwind.bpf.h"

/* Where the kernel keeps registers in a signal frame: ucontext + 40, in this order. */
static __always_inline int signal_step(struct unwind *u)
{
	const uint64_t *g = u->saved;

	if (bpf_probe_read_user(u->saved, 17 * 8, (void *)(u->sp + 40))) {
		u->reason = REASON_BAD_STACK;
		return 1;
	}
	/* r8-r15 rdi rsi rbp rbx rdx rax rcx rsp rip */
	u->registers[0] = g[13];
	u->registers[1] = g[12];
	u->registers[2] = g[14];
	u->registers[3] = g[11];
	u->registers[4] = g[9];
	u->registers[5] = g[8];
	u->registers[6] = g[10];
	u->registers[7] = g[15];
	u->registers[8] = g[0];
	u->registers[9] = g[1];
	u->registers[10] = g[2];
	u->registers[11] = g[3];
	u->registers[12] = g[4];
	u->registers[13] = g[5];
	u->registers[14] = g[6];
	u->registers[15] = g[7];
	u->bp = g[10];
	u->sp = g[15];
	u->pc = g[16];
	u->leaf = 1;
	return 0;
}

enum { RBX = 3 }; /* DWARF's number */

#include "collect/unwind/guess.bpf.h"
#include "collect/unwind/trail.bpf.h"

/* From the stack of a thread to that of its goroutine: RULE_GO_*. The stack of a thread that has left its goroutine
 * and looks for another is complete. */
__attribute__((noinline)) int unwind_go(struct unwind *u, uint64_t rule)
{
	uint64_t at, sp, word;

	if (!u)
		return 1;
	if (RULE_CFA(rule) == RULE_GO_DEPTH) {
		at = u->sp + RULE_CFA_OFFSET(rule);
		if (!read_word(at, &sp) || !read_word(at + 8, &word) || !read_word(word + RULE_GO_STACK_HI, &word))
			return stop(u, REASON_BAD_STACK);
		sp = word - sp;
		at = 0;
	} else {
		struct task_struct *task = (void *)bpf_get_current_task();

		at = BPF_CORE_READ(task, thread.fsbase) + RULE_RBP_OFFSET(rule);
		if (!read_word(at, &word) || !read_word(word + RULE_GO_M, &word) ||
		    !read_word(word + RULE_CFA_OFFSET(rule), &word))
			return stop(u, REASON_BAD_STACK);
		if (!word)
			return stop(u, REASON_COMPLETE);
		at = word + RULE_GO_SCHED;
		if (!read_word(at, &sp))
			return stop(u, REASON_BAD_STACK);
	}
	sp += 8 * RULE_REG(rule);
	if (!read_word(RULE_REG(rule) ? sp - 8 : at + 8, &word))
		return stop(u, REASON_BAD_STACK);
	if (RULE_RBP(rule) != RULE_RBP_SAME)
		u->bp = RULE_LOST_RBP;
	u->registers[RBX] = RULE_LOST_RBX;
	u->sp = sp;
	u->pc = word;
	u->leaf = 0;
	return word ? 0 : stop(u, REASON_COMPLETE);
}

/* Goes on with the caller's rbx, the only one of registers[] that is carried beyond the leaf. */
static __always_inline void keep_rbx(struct unwind *u, uint64_t rule, uint64_t cfa)
{
	uint32_t where = RULE_RBX(rule);

	if (where == RULE_RBX_SAME)
		return;
	if (where < RULE_RBX_CFA || !read_word(cfa - 8 * where, &u->registers[RBX]))
		u->registers[RBX] = RULE_LOST_RBX;
}

/* Records the frame at hand and goes to its caller. t: the trail on which it is not, or NULL. Gives enum step_result. */
__attribute__((noinline)) int unwind_step(struct unwind *u, struct shared_process *p, struct trail *t)
{
	uint64_t pc, address, rule, cfa, old_sp, pair[2];
	bool rising = false;
	uint32_t count, kind;

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
	/* Rows that were read from code are none of the cases below, at no cost to the others. */
	kind = rule & (15 | RULE_DERIVED);
	old_sp = u->sp;
	switch (kind) {
	case RULE_CFA_RSP:
		cfa = old_sp + RULE_CFA_OFFSET(rule);
		rising = true;
		break;
	case RULE_CFA_RBP:
		if (u->bp == RULE_LOST_RBP)
			return stop(u, REASON_LOST_REGISTER);
		cfa = u->bp + RULE_CFA_OFFSET(rule);
		break;
	case RULE_END:
		return stop(u, REASON_COMPLETE);
	case RULE_CFA_PLT:
		cfa = old_sp + 8 + ((pc & 15) >= 11 ? 8 : 0);
		rising = true;
		break;
	case RULE_CFA_REG:
		if (!u->leaf && (RULE_REG(rule) != RBX || u->registers[RBX] == RULE_LOST_RBX))
			return stop(u, REASON_LOST_REGISTER);
		cfa = u->registers[RULE_REG(rule) & 15] + RULE_CFA_OFFSET(rule);
		break;
	case RULE_CFA_DEREF_RSP:
	case RULE_CFA_DEREF_RBP:
		if (kind == RULE_CFA_DEREF_RBP && u->bp == RULE_LOST_RBP)
			return stop(u, REASON_LOST_REGISTER);
		cfa = (kind == RULE_CFA_DEREF_RSP ? old_sp : u->bp) + RULE_CFA_OFFSET(rule);
		if (!read_word(cfa, &cfa))
			return stop(u, REASON_BAD_STACK);
		cfa += 8 * RULE_REG(rule);
		break;
	case RULE_SIGNAL:
		/* The kernel has the handler return to the first byte of a function; the byte before is another's. */
		u->frames[count & (SHARED_MAX_USER_FRAMES - 1)] = SHARED_FRAME(u->last.module, u->pc - u->last.bias);
		return signal_step(u);
	case RULE_RA_REG:
		if (!u->leaf)
			return stop(u, REASON_LOST_REGISTER);
		u->pc = u->registers[RULE_REG(rule) & 15];
		u->sp = old_sp + RULE_CFA_OFFSET(rule);
		u->registers[RBX] = RULE_LOST_RBX;
		u->leaf = 0;
		return u->pc ? 0 : stop(u, REASON_COMPLETE);
	case RULE_FRAME_POINTER:
		if (!u->bp)
			return stop(u, REASON_COMPLETE);
		if (u->bp < old_sp || u->bp & 7)
			return stop(u, REASON_FRAME_POINTER);
		cfa = u->bp + 16;
		rule = rule_make(RULE_CFA_RBP, 0, 16, RULE_RBP_CFA, -16);
		rising = true;
		break;
	case RULE_NONE:
		return STEP_SEARCH;
	case RULE_UNSUPPORTED:
		return stop(u, REASON_UNSUPPORTED);
	default:
		if (rule & RULE_DERIVED) {
			u->rule = rule;
			return STEP_DERIVED;
		}
		return kind <= RULE_RA_REG ? unwind_go(u, rule) : stop(u, REASON_NO_TABLE_YET);
	}
	if (rising && cfa <= old_sp)
		return stop(u, REASON_NOT_RISING);

	/* The caller's rbp most often stands right below the return address: one read for both. */
	if (RULE_RBP(rule) == RULE_RBP_CFA && RULE_RBP_OFFSET(rule) == -16) {
		if (bpf_probe_read_user(pair, 16, (void *)(cfa - 16)))
			return stop(u, REASON_BAD_STACK);
		u->bp = pair[0];
		u->pc = pair[1];
	} else {
		if (!read_word(cfa - 8, &pair[1]))
			return stop(u, REASON_BAD_STACK);
		if (RULE_RBP(rule) == RULE_RBP_CFA || RULE_RBP(rule) == RULE_RBP_RBP) {
			uint64_t base = RULE_RBP(rule) == RULE_RBP_CFA ? cfa : u->bp;

			if (!read_word(base + RULE_RBP_OFFSET(rule), &pair[0]))
				return stop(u, REASON_BAD_STACK);
			u->bp = pair[0];
		} else if (RULE_RBP(rule) == RULE_RBP_LOST) {
			u->bp = RULE_LOST_RBP;
		}
		u->pc = pair[1];
	}
	keep_rbx(u, rule, cfa);
	u->sp = cfa;
	u->leaf = 0;
	if (!u->pc)
		return stop(u, REASON_COMPLETE);
	return 0;
}
