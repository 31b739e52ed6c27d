/*
 * guess.bpf.h - steps through code that no table describes. A part of unwind.bpf.c.
 *
 * Nothing is believed here that is not proven by the code as it is in memory now: before a return address stands a call. So a
 * program that has rewritten its code since its file was read gets no wrong frames by the old one. Stacks that passed here
 * are counted (struct unwind.guessed).
 */
#pragma once

#include "collect/unwind/unwind.bpf.h"

enum {
	GUESS_WORDS = 64,      /* of the stack that are looked at for a return address */
	GUESS_FUNCTION = 1 << 12, /* bytes from the begin of a function within which pc may be: most are shorter */
};

/* Does a call instruction end right before this address? e8 (relative), or ff with 2 in the middle bits of
 * its second byte, 2 to 7 bytes long. b: the 8 bytes before it. */
static __always_inline bool ends_with_call(const uint8_t *b)
{
	return b[3] == 0xe8 || (b[6] == 0xff && (b[7] & 0x38) == 0x10) ||
	       (b[5] == 0xff && (b[6] & 0x38) == 0x10) || (b[4] == 0xff && (b[5] & 0x38) == 0x10) ||
	       (b[3] == 0xff && (b[4] & 0x38) == 0x10) || (b[2] == 0xff && (b[3] & 0x38) == 0x10) ||
	       (b[1] == 0xff && (b[2] & 0x38) == 0x10);
}

static __always_inline bool follows_call(uint64_t address)
{
	uint8_t b[8];

	return !bpf_probe_read_user(b, sizeof(b), (void *)(address - 8)) && ends_with_call(b);
}

/* mov rax, 15; syscall: a signal handler returns there, and nobody calls it. */
static __always_inline bool is_signal_return(uint64_t address)
{
	uint64_t code;

	return read_word(address, &code) && code == 0x0f0000000fc0c748ULL;
}

/* What a search of the stack has found, in u->saved: there is no room for it elsewhere. */
enum {
	GUESS_MAPPING = 17, /* where the mapping of pc begins */
	GUESS_TARGET,       /* the highest function that a call leads to, of those that may be at hand */
	GUESS_PLACE,        /* where its return address stands, 0 = there is none */
	GUESS_OTHER,        /* the first return address whose call does not say what it calls, 0 = there is none */
};

/*
 * Looks at a word of the stack: is it the return address of the function at hand? It lies in known code, and follows a call.
 * Where the call says which function it calls, that must be one that may be at hand: it begins at or shortly before pc. Of
 * several the one that begins last is it: the others were called by its callers, or stand there from earlier calls. The call
 * of another file may go to a stub of that file. 1 = it was noted.
 */
__attribute__((noinline)) int unwind_look(struct unwind *u, struct shared_process *p, uint64_t place)
{
	uint64_t address, target;
	uint8_t b[8];

	if (!u || !p || !read_word(place, &address) || address < 0x1000 || address >> 47 || !find_mapping(u, p, address - 1) ||
	    bpf_probe_read_user(b, sizeof(b), (void *)(address - 8)) || !ends_with_call(b))
		return 0;
	if (b[3] == 0xe8) {
		target = address + (int32_t)((uint32_t)b[4] | (uint32_t)b[5] << 8 | (uint32_t)b[6] << 16 | (uint32_t)b[7] << 24);
		if (u->pc - target < GUESS_FUNCTION) {
			if (target > u->saved[GUESS_TARGET]) {
				u->saved[GUESS_TARGET] = target;
				u->saved[GUESS_PLACE] = place;
			}
			return 1;
		}
		if (u->last.start == u->saved[GUESS_MAPPING] || target - u->last.start >= u->last.end - u->last.start)
			return 0;
	}
	if (!u->saved[GUESS_OTHER])
		u->saved[GUESS_OTHER] = place;
	return 1;
}

/* Is the word at place a return address? Generated code jumps from one function to the next, so that the call before it need
 * not call the function at hand. */
static __always_inline bool is_return(struct unwind *u, struct shared_process *p, uint64_t place)
{
	uint64_t address;

	return read_word(place, &address) && follows_call(address) && find_mapping(u, p, address - 1);
}

/*
 * Code that no row covers: hand-written leaves (the return address is on top of the stack), generated code that keeps frame
 * pointers, and else the word of the stack that is proven best to be a return address.
 * rewritten: a row was there, and was not right. Then the function may keep no frame pointer although its callers do, and
 * what is called directly, below their frame pointer, is looked for first.
 */
__attribute__((noinline)) int unwind_guess(struct unwind *u, struct shared_process *p, uint32_t rewritten)
{
	uint64_t sp, bp, place, frame, words = GUESS_WORDS;
	bool has_frame;

	if (!u || !p)
		return 1;
	sp = u->sp;
	bp = u->bp;
	frame = bp + 8;
	u->saved[GUESS_MAPPING] = u->last.start;
	u->saved[GUESS_TARGET] = u->saved[GUESS_PLACE] = u->saved[GUESS_OTHER] = 0;
	if (sp & 7)
		return stop(u, REASON_NO_RULE);
	if (u->leaf && is_return(u, p, sp)) {
		place = sp;
		goto found;
	}
	has_frame = bp >= sp && !(bp & 7) && is_return(u, p, frame);
	if (has_frame && !rewritten) {
		place = frame;
		goto found;
	}
	if (has_frame && (bp - sp) / 8 < words)
		words = (bp - sp) / 8;
	for (uint32_t i = 0; i < GUESS_WORDS; i++) {
		if (i >= words)
			break;
		unwind_look(u, p, sp + 8 * i);
	}
	place = u->saved[GUESS_PLACE] ? u->saved[GUESS_PLACE] : has_frame ? frame : u->saved[GUESS_OTHER];
	if (!place)
		return stop(u, REASON_NO_RULE);
found:
	if (!read_word(place, &u->pc) || (place == frame && !read_word(bp, &u->bp)))
		return stop(u, REASON_BAD_STACK);
	u->sp = place + 8;
	u->registers[RBX] = RULE_LOST_RBX;
	u->leaf = 0;
	/* A frame pointer that leads to a return address is what generated code without any table is walked by, too. */
	u->guessed |= place == frame ? UNWIND_DERIVED : UNWIND_GUESSED;
	return 0;
}

/* A row that was read from the code of the file (RULE_DERIVED). Where it does not lead to a return address, it is not right
 * for the code in memory. */
__attribute__((noinline)) int unwind_derived(struct unwind *u, struct shared_process *p, uint64_t rule)
{
	uint64_t cfa, pc, bp;

	if (!u || !p)
		return 1;
	u->guessed |= UNWIND_DERIVED;
	if (RULE_CFA(rule) == RULE_END)
		return stop(u, REASON_COMPLETE);
	if (RULE_CFA(rule) == RULE_SIGNAL) {
		/* As in unwind_step(): the byte before is another function's. */
		u->frames[(u->count - 1) & (SHARED_MAX_USER_FRAMES - 1)] = SHARED_FRAME(u->last.module, u->pc - u->last.bias);
		return signal_step(u);
	}
	bp = u->bp;
	if (RULE_CFA(rule) == RULE_CFA_RBP && bp == RULE_LOST_RBP)
		return STEP_SEARCH_REWRITTEN;
	cfa = (RULE_CFA(rule) == RULE_CFA_RBP ? bp : u->sp) + RULE_CFA_OFFSET(rule);
	if (cfa <= u->sp || !read_word(cfa - 8, &pc) || !(follows_call(pc) || is_signal_return(pc)))
		return STEP_SEARCH_REWRITTEN;
	if (RULE_RBP(rule) == RULE_RBP_LOST)
		bp = RULE_LOST_RBP;
	else if (RULE_RBP(rule) == RULE_RBP_CFA && !read_word(cfa + RULE_RBP_OFFSET(rule), &bp))
		return stop(u, REASON_BAD_STACK);
	u->bp = bp;
	u->pc = pc;
	u->sp = cfa;
	u->registers[RBX] = RULE_LOST_RBX;
	u->leaf = 0;
	return 0;
}
