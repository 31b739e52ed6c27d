/*
 * trail.bpf.h - frames that the last walk of the thread has met, walked without looking them up. A part of unwind.bpf.c.
 *
 * Two samples of a thread most often differ in a few frames at the leaf. The rest is walked along the trail: for each frame it
 * has the program counter, the module's address and the rule, one after the other in memory. Mapping, row and rule are not
 * searched for; they lie on pages of their own, and each of them missed the cache.
 *
 * Nothing is believed of the last walk but what does not change: which rule an address of the process has. Each return address
 * is read from the stack as ever. Entries hold as long as the mappings of the process are the same (shared_process.version),
 * and only rules of a table are kept, as a table never changes. So the frames are those that unwind_step() would find, and
 * whatever is not plain is left to it.
 */
#pragma once

#include "collect/unwind/unwind.bpf.h"

enum { TRAIL_BITS = 6, USER_FRAMES_BITS = 9 };
_Static_assert(TRAIL_FRAMES == 1 << TRAIL_BITS && SHARED_MAX_USER_FRAMES == 1 << USER_FRAMES_BITS, "bits");

#ifdef __TARGET_ARCH_arm64
/* Is a rule one that unwind_follow() knows? The others are rare, or read more than the frame. */
static __always_inline bool trail_takes(uint64_t rule)
{
	uint32_t link = RULE_LINK_OF(rule);

	return RULE_CFA(rule) == RULE_END || (RULE_CFA(rule) == RULE_LINK && (link == RULE_RECORD ||
					      (link == RULE_LINK_CFA && RULE_RBP(rule) == RULE_RBP_SAME)));
}
#else
/* Is a rule one that unwind_follow() knows? The others are rare, or read more than the frame. */
static __always_inline bool trail_takes(uint64_t rule)
{
	uint32_t kind = rule & (15 | RULE_DERIVED);

	return kind == RULE_END || ((kind == RULE_CFA_RSP || kind == RULE_CFA_RBP) && RULE_RBX(rule) == RULE_RBX_LOST &&
				    (RULE_RBP(rule) == RULE_RBP_SAME || RULE_RBP(rule) == RULE_RBP_CFA));
}
#endif

/* Makes a trail ready for a walk of the thread in u->record. What it has of another thread, or of other mappings, is given up. */
__attribute__((noinline)) int unwind_begin(struct unwind *u, const struct shared_process *p, struct trail *t)
{
	uint64_t thread;

	if (!u || !p || !t)
		return 0;
	thread = (uint64_t)u->record.pid << 32 | u->record.tid;
	if (t->thread != thread || t->version != p->version || !p->version) {
		t->thread = thread;
		t->version = p->version;
		t->last.start = t->last.end = 0;
		t->first = TRAIL_FRAMES;
	}
	t->at = t->joined = t->first;
	t->fresh_count = 0;
	u->last = t->last;
	return 0;
}

/* Notes the frame at hand, which is not on the trail. Of many the last ones are kept: they are the most likely to stay. Of the
 * leaf only the mapping is noted, as its address is hardly ever the same. */
__attribute__((noinline)) int unwind_note(const struct unwind *u, struct trail *t, uint64_t frame, uint64_t rule)
{
	struct trail_frame *f;

	if (!u || !t)
		return 0;
	if (u->leaf) {
		t->last = u->last;
		return 0;
	}
	if (!trail_takes(rule))
		return 0;
	f = &t->fresh[masked(t->fresh_count, TRAIL_FRESH - 1)];
	f->pc = u->pc;
	f->sp = u->sp;
	f->frame = frame;
	f->rule = rule;
	t->fresh_count++;
	return 0;
}

/*
 * Puts the fresh frames before the one at t->at, in the place of frames that were passed over since the last one that was
 * found. Where there is no room for them, what lies before is lost, and the next walks find it again. Other frames that the
 * thread has left stay as long as all are in order of the stack pointer: it may soon call the same again.
 */
__attribute__((noinline)) int unwind_keep(struct trail *t)
{
	uint32_t at, count;

	if (!t || !t->fresh_count)
		return 0;
	at = t->at;
	count = t->fresh_count;
	for (uint32_t i = 0; i < TRAIL_FRESH; i++) {
		if (!count || !at)
			break;
		count--;
		at--;
		t->frames[masked(at, TRAIL_FRAMES - 1)] = t->fresh[masked(count, TRAIL_FRESH - 1)];
	}
	t->fresh_count = 0;
	if (at < t->joined ||
	    (at > t->first && t->frames[masked(at - 1, TRAIL_FRAMES - 1)].sp >= t->frames[masked(at, TRAIL_FRAMES - 1)].sp))
		t->first = at;
	return 0;
}

/* Passes over frames that the thread has left: they lie below the stack pointer. Is the frame at hand on the trail? A function
 * of its own, so that the verifier need not know which one was found. */
__attribute__((noinline)) int unwind_find(struct trail *t, uint64_t pc, uint64_t sp)
{
	uint32_t at;

	if (!t)
		return 0;
	at = t->at;
	for (uint32_t i = 0; i < TRAIL_FRAMES; i++) {
		if (at >= TRAIL_FRAMES || t->frames[masked(at, TRAIL_FRAMES - 1)].sp >= sp)
			break;
		at++;
	}
	t->at = at;
	return at < TRAIL_FRAMES && t->frames[masked(at, TRAIL_FRAMES - 1)].sp == sp &&
	       t->frames[masked(at, TRAIL_FRAMES - 1)].pc == pc;
}

/*
 * Walks along the trail for as long as the frames are on it. 1 = the stack ends here, u->reason says why. 0: the frame at
 * hand is not on it, or something is odd about it; unwind_step() sees to it.
 */
__attribute__((noinline)) int unwind_follow(struct unwind *u, struct trail *t)
{
	uint64_t pc, sp, bp, hash, pair[2];
	uint32_t at, count;

	if (!u || !t || u->leaf)
		return 0;
	pc = u->pc;
	sp = u->sp;
	if (!unwind_find(t, pc, sp))
		return 0;
	unwind_keep(t);
	at = t->at;
	bp = u->bp;
	hash = u->hash;
	count = u->count;
	for (uint32_t i = 0; i < TRAIL_STEPS; i++) {
		const struct trail_frame *f = &t->frames[masked(at, TRAIL_FRAMES - 1)];
#ifdef __TARGET_ARCH_arm64
		uint64_t rule = f->rule, frame = f->frame, by_fp = -(uint64_t)(RULE_REG(rule) & 1), base = sp + ((bp - sp) & by_fp), cfa, place;

		if ((f->pc ^ pc) | (f->sp ^ sp) | at >> TRAIL_BITS | count >> USER_FRAMES_BITS | (by_fp & (bp == RULE_LOST_RBP)))
			break;
		cfa = base + RULE_CFA_OFFSET(rule);
		place = RULE_RBP_OFFSET(rule) + (RULE_RBP(rule) == RULE_RBP_RBP ? base : cfa);
		if (RULE_CFA(rule) == RULE_LINK) {
			if (cfa <= (sp & ~by_fp) || bpf_probe_read_user(pair, 16, (void *)place))
				break;
			if (RULE_LINK_OF(rule) == RULE_RECORD)
				bp = pair[0];
			else
				pair[1] = pair[0];
			pc = pair[1] & pc_mask;
			sp = cfa;
		} else {
			pc = 0;
		}
#else
		uint64_t rule = f->rule, frame = f->frame, by_rbp = rule & rule >> 1 & 1, cfa;

		_Static_assert(RULE_END == 1 && RULE_CFA_RSP == 2 && RULE_CFA_RBP == 3, "the shifts");
		if ((f->pc ^ pc) | (f->sp ^ sp) | at >> TRAIL_BITS | count >> USER_FRAMES_BITS | (by_rbp & (bp == RULE_LOST_RBP)))
			break;
		cfa = sp + ((bp - sp) & -by_rbp) + RULE_CFA_OFFSET(rule);
		if (rule & 2) {
			if (cfa <= (sp & (by_rbp - 1)) || bpf_probe_read_user(pair, 16, (void *)(cfa - 16)))
				break;
			if (RULE_RBP(rule) && RULE_RBP_OFFSET(rule) != -16 && !read_word(cfa + RULE_RBP_OFFSET(rule), &pair[0]))
				break;
			bp ^= (bp ^ pair[0]) & -(uint64_t)(rule >> 8 & 1);
			pc = pair[1];
			sp = cfa;
		} else {
			pc = 0;
		}
#endif
		u->frames[masked(count, SHARED_MAX_USER_FRAMES - 1)] = frame;
		hash = unwind_hash(hash, frame);
		count++;
		at++;
		if (!pc)
			break;
	}
	if (count != u->count) {
		u->pc = pc;
		u->sp = sp;
		u->bp = bp;
		u->registers[RBX] = RULE_LOST_RBX;
		u->hash = hash;
		u->count = count;
	}
	t->at = t->joined = at;
	if (pc)
		return 0;
	u->reason = REASON_COMPLETE;
	return 1;
}
