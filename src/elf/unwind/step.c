#include "elf/unwind/unwind.h"

#include <elf.h>
#include <string.h>

#include "base/vec.h"
#include "elf/unwind/arm64/arm64.h"

/* Looks up a table and takes a step, as the BPF unwinder does, in user space. */

uint64_t unwind_find(const struct unwind_table *t, uint64_t address)
{
	uint64_t page = (address >> UNWIND_PAGE_SHIFT) - t->first_page;
	uint32_t at = address & ((1 << UNWIND_PAGE_SHIFT) - 1), low = 0, n;
	const uint32_t *rows;

	if (page >= t->page_count)
		return RULE_NONE;
	rows = t->rows + t->pages[page].first;
	n = t->pages[page].count;
	/* rows[low] is at or below the address: the first one opens the page. */
	while (n > 1) {
		uint32_t half = n / 2;

		if ((rows[low + half] & 0xffff) <= at)
			low += half;
		n -= half;
	}
	return t->rules[rows[low] >> 16];
}

static bool rules_valid(const struct unwind_table *t)
{
	if (t->rule_count > UNWIND_MAX_RULES)
		return false;
	for (uint32_t i = 0; i < t->rule_count; i++) {
		uint64_t rule = t->rules[i];

		if (RULE_CFA(rule) > RULE_CFA_MAX || RULE_RBP(rule) > RULE_RBP_MAX)
			return false;
	}
	return !t->rule_count || t->rules[0] == RULE_NONE;
}

static bool page_valid(const struct unwind_table *t, const struct unwind_page *page)
{
	for (uint32_t i = 0; i < page->count; i++) {
		uint32_t row = t->rows[page->first + i];
		uint32_t at = row & 0xffff;

		if (at >> UNWIND_PAGE_SHIFT || row >> 16 >= t->rule_count)
			return false;
		if (i ? at <= (t->rows[page->first + i - 1] & 0xffff) : at != 0)
			return false;
	}
	return true;
}

bool unwind_valid(const struct unwind_table *t)
{
	const uint64_t page_end = 1ULL << (47 - UNWIND_PAGE_SHIFT);
	uint32_t row = 0;

	if (t->row_count > UNWIND_MAX_ROWS || t->page_count > t->row_count || t->first_page > page_end ||
	    t->page_count > page_end - t->first_page || !rules_valid(t))
		return false;
	if ((t->page_count && (!t->pages || !t->rows)) || (t->rule_count && !t->rules))
		return false;
	/* The runs of pages follow each other, so checking them all takes linear time. */
	for (uint32_t i = 0; i < t->page_count; i++) {
		const struct unwind_page *page = &t->pages[i];

		if (page->first != row || !page->count || page->count > t->row_count - row ||
		    !page_valid(t, page))
			return false;
		row += page->count;
	}
	return row == t->row_count;
}

/* arm64: siginfo lies at sp, then the ucontext. */
static enum unwind_result step_signal_arm64(struct unwind_regs *regs, unwind_read_fn *read, void *context)
{
	uint64_t at = regs->r[UNWIND_RSP] + RULE_ARM64_SIGNAL_REGS;
	struct unwind_regs next = { .leaf = true, .link = true, .pc_mask = regs->pc_mask };

	if (!read(context, at + 8 * ARM64_FP, &next.r[UNWIND_RBP]) || !read(context, at + 8 * ARM64_LR, &next.r[UNWIND_LR]) ||
	    !read(context, at + 8 * ARM64_SP, &next.r[UNWIND_RSP]) || !read(context, at + 8 * (ARM64_SP + 1), &next.r[UNWIND_RIP]))
		return UNWIND_BAD_MEMORY;
	*regs = next;
	return UNWIND_MORE;
}

/* x86-64: the ucontext lies at rsp; its registers begin 40 bytes in, in this order. */
static enum unwind_result step_signal(struct unwind_regs *regs, unwind_read_fn *read, void *context)
{
	static const uint8_t order[UNWIND_REGS] = {
		8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16
	};
	struct unwind_regs next = { .leaf = true, .fs_base = regs->fs_base };

	for (unsigned i = 0; i < UNWIND_REGS; i++)
		if (!read(context, regs->r[UNWIND_RSP] + 40 + 8 * i, &next.r[order[i]]))
			return UNWIND_BAD_MEMORY;
	*regs = next;
	return UNWIND_MORE;
}

static bool rule_needs_rbp(uint64_t rule)
{
	return RULE_CFA(rule) == RULE_CFA_RBP || RULE_CFA(rule) == RULE_CFA_DEREF_RBP ||
	       RULE_CFA(rule) == RULE_FRAME_POINTER || RULE_RBP(rule) == RULE_RBP_RBP;
}

/* The CFA, the caller's rsp. */
static enum unwind_result find_cfa(const struct unwind_regs *regs, uint64_t rule, unwind_read_fn *read,
				   void *context, uint64_t *cfa)
{
	uint64_t rsp = regs->r[UNWIND_RSP], rbp = regs->r[UNWIND_RBP], offset = RULE_CFA_OFFSET(rule);
	bool rising = false;

	if (rbp == RULE_LOST_RBP && rule_needs_rbp(rule))
		return UNWIND_BAD_RULE;
	switch (RULE_CFA(rule)) {
	case RULE_CFA_RSP:
		*cfa = rsp + offset;
		rising = true;
		break;
	case RULE_CFA_PLT:
		*cfa = rsp + 8 + (((regs->r[UNWIND_RIP] - !regs->leaf) & 15) >= 11 ? 8 : 0);
		rising = true;
		break;
	case RULE_CFA_RBP:
		*cfa = rbp + offset;
		break;
	case RULE_CFA_REG:
		if (RULE_REG(rule) >= UNWIND_RIP ||
		    (!regs->leaf && (RULE_REG(rule) != UNWIND_RBX || regs->r[UNWIND_RBX] == RULE_LOST_RBX)))
			return UNWIND_BAD_RULE;
		*cfa = regs->r[RULE_REG(rule)] + offset;
		break;
	case RULE_CFA_DEREF_RSP:
	case RULE_CFA_DEREF_RBP:
		if (!read(context, (RULE_CFA(rule) == RULE_CFA_DEREF_RSP ? rsp : rbp) + offset, cfa))
			return UNWIND_BAD_MEMORY;
		*cfa += RULE_REG(rule) * 8;
		break;
	case RULE_FRAME_POINTER:
		if (!rbp)
			return UNWIND_DONE;
		if (rbp & 7)
			return UNWIND_BAD_MEMORY;
		if (rbp < rsp)
			return UNWIND_NOT_RISING;
		*cfa = rbp + 16;
		rising = true;
		break;
	case RULE_NONE:
		return UNWIND_NO_RULE;
	case RULE_END:
		return UNWIND_DONE;
	default:
		return UNWIND_BAD_RULE;
	}
	/* Elsewhere the stack may have been switched, and a lower address is no loop. */
	return rising && *cfa <= rsp ? UNWIND_NOT_RISING : UNWIND_MORE;
}

/* The caller's rbp. */
static bool find_rbp(const struct unwind_regs *regs, uint64_t rule, uint64_t cfa, unwind_read_fn *read,
		     void *context, uint64_t *rbp)
{
	*rbp = regs->r[UNWIND_RBP];
	if (RULE_CFA(rule) == RULE_FRAME_POINTER)
		return read(context, *rbp, rbp);
	switch (RULE_RBP(rule)) {
	case RULE_RBP_CFA:
		return read(context, cfa + RULE_RBP_OFFSET(rule), rbp);
	case RULE_RBP_RBP:
		return read(context, *rbp + RULE_RBP_OFFSET(rule), rbp);
	case RULE_RBP_LOST:
		*rbp = RULE_LOST_RBP;
		return true;
	default:
		return true;
	}
}

static void go_to(struct unwind_regs *regs, uint64_t rip, uint64_t rsp, uint64_t rbp)
{
	*regs = (struct unwind_regs){ .fs_base = regs->fs_base, .link = regs->link, .pc_mask = regs->pc_mask };
	regs->r[UNWIND_RBP] = rbp;
	regs->r[UNWIND_RBX] = RULE_LOST_RBX;
	regs->r[UNWIND_RSP] = rsp;
	regs->r[UNWIND_RIP] = rip;
}

/* From the stack of a thread to that of its goroutine. */
static enum unwind_result step_go(struct unwind_regs *regs, uint64_t rule, unwind_read_fn *read, void *context)
{
	uint64_t rsp = regs->r[UNWIND_RSP] + RULE_CFA_OFFSET(rule), sp, word;

	if (RULE_CFA(rule) == RULE_GO_DEPTH) {
		if (!read(context, rsp, &sp) || !read(context, rsp + 8, &word) ||
		    !read(context, word + RULE_GO_STACK_HI, &word))
			return UNWIND_BAD_MEMORY;
		sp = word - sp;
	} else {
		/* A dump of the stack has neither the register nor this memory. */
		if (!regs->fs_base || !read(context, regs->fs_base + RULE_RBP_OFFSET(rule), &word) ||
		    !read(context, word + RULE_GO_M, &word) ||
		    !read(context, word + RULE_CFA_OFFSET(rule), &word))
			return UNWIND_BAD_MEMORY;
		/* The thread has left the goroutine and looks for another. */
		if (!word)
			return UNWIND_DONE;
		if (!read(context, word + RULE_GO_SCHED, &sp))
			return UNWIND_BAD_MEMORY;
		word += RULE_GO_SCHED + 8;
	}
	sp += 8 * RULE_REG(rule);
	if (!read(context, RULE_REG(rule) ? sp - 8 : word, &word))
		return UNWIND_BAD_MEMORY;
	if (!word)
		return UNWIND_DONE;
	go_to(regs, word, sp, RULE_RBP(rule) == RULE_RBP_SAME ? regs->r[UNWIND_RBP] : RULE_LOST_RBP);
	return UNWIND_MORE;
}

/* The caller's rbx; where it cannot be had it is lost, which ends a stack only where some frame needs it. */
static uint64_t find_rbx(const struct unwind_regs *regs, uint64_t rule, uint64_t cfa, unwind_read_fn *read, void *context)
{
	uint64_t rbx;

	if (RULE_RBX(rule) == RULE_RBX_SAME)
		return regs->r[UNWIND_RBX];
	if (RULE_RBX(rule) < RULE_RBX_CFA || !read(context, cfa - 8 * RULE_RBX(rule), &rbx))
		return RULE_LOST_RBX;
	return rbx;
}

/* vfork() keeps its return address in a register, as parent and child share the stack. */
static enum unwind_result step_register(struct unwind_regs *regs, uint64_t rule)
{
	uint64_t rip = regs->r[RULE_REG(rule)];

	if (!regs->leaf)
		return UNWIND_BAD_RULE;
	go_to(regs, rip, regs->r[UNWIND_RSP] + RULE_CFA_OFFSET(rule), regs->r[UNWIND_RBP]);
	return rip ? UNWIND_MORE : UNWIND_DONE;
}

static uint64_t without_signature(const struct unwind_regs *regs, uint64_t pc)
{
	return pc & (regs->pc_mask ? regs->pc_mask : RULE_ARM64_PC_MASK);
}

/* arm64: RULE_LINK. */
static enum unwind_result step_link(struct unwind_regs *regs, uint64_t rule, unwind_read_fn *read, void *context)
{
	uint64_t sp = regs->r[UNWIND_RSP], fp = regs->r[UNWIND_RBP], pc = regs->r[UNWIND_LR];
	uint64_t base = RULE_REG(rule) == RULE_BASE_FP ? fp : sp, cfa = base + RULE_CFA_OFFSET(rule);
	unsigned link = RULE_LINK_OF(rule), how = RULE_RBP(rule);
	uint64_t place = (how == RULE_RBP_RBP || link == RULE_LINK_BASE ? base : cfa) + RULE_RBP_OFFSET(rule);

	if (RULE_REG(rule) > RULE_BASE_MAX || (RULE_REG(rule) == RULE_BASE_FP && fp == RULE_LOST_RBP) ||
	    (link == RULE_LINK_REGISTER && !regs->leaf))
		return UNWIND_BAD_RULE;
	/* Only a leaf may have no frame. With the frame pointer as base the stack may have been switched. */
	if (RULE_REG(rule) == RULE_BASE_SP && (cfa < sp || (cfa == sp && !regs->leaf)))
		return UNWIND_NOT_RISING;
	if (link >= RULE_LINK_NEAR && !read(context, place + 8 * (link - (uint64_t)RULE_LINK_BESIDE), &pc))
		return UNWIND_BAD_MEMORY;
	if ((link == RULE_LINK_CFA || link == RULE_LINK_BASE) && !read(context, place, &pc))
		return UNWIND_BAD_MEMORY;
	if ((how == RULE_RBP_CFA || how == RULE_RBP_RBP) && !read(context, place, &fp))
		return UNWIND_BAD_MEMORY;
	pc = without_signature(regs, pc);
	if (!pc)
		return UNWIND_DONE;
	go_to(regs, pc, cfa, how == RULE_RBP_LOST ? RULE_LOST_RBP : fp);
	return UNWIND_MORE;
}

enum unwind_result unwind_step(struct unwind_regs *regs, uint64_t rule, unwind_read_fn *read, void *context)
{
	enum unwind_result result;
	uint64_t cfa, rip, rbp, rbx;

	if (RULE_CFA(rule) == RULE_LINK)
		return step_link(regs, rule, read, context);
	if (RULE_CFA(rule) == RULE_SIGNAL && RULE_REG(rule) == RULE_SIGNAL_ARM64)
		return step_signal_arm64(regs, read, context);
	if (RULE_CFA(rule) == RULE_SIGNAL)
		return step_signal(regs, read, context);
	if (RULE_CFA(rule) == RULE_GO_CURG || RULE_CFA(rule) == RULE_GO_DEPTH)
		return step_go(regs, rule, read, context);
	if (RULE_CFA(rule) == RULE_RA_REG)
		return step_register(regs, rule);
	result = find_cfa(regs, rule, read, context, &cfa);
	if (result != UNWIND_MORE)
		return result;
	if (!read(context, cfa - 8, &rip))
		return UNWIND_BAD_MEMORY;
	if (regs->link) /* RULE_FRAME_POINTER */
		rip = without_signature(regs, rip);
	if (!rip)
		return UNWIND_DONE;
	if (!find_rbp(regs, rule, cfa, read, context, &rbp))
		return UNWIND_BAD_MEMORY;
	rbx = find_rbx(regs, rule, cfa, read, context);
	go_to(regs, rip, cfa, rbp);
	regs->r[UNWIND_RBX] = rbx;
	return UNWIND_MORE;
}

/* e8 (relative), or ff with 2 in the middle bits of its second byte, 2 to 7 bytes long: the same as in guess.bpf.h. */
bool unwind_ends_with_call(unsigned machine, const uint8_t before[8])
{
	if (machine == EM_AARCH64)
		return arm64_ends_with_call(before);
	for (int i = 1; i <= 6; i++)
		if (before[i] == 0xff && (before[i + 1] & 0x38) == 0x10)
			return true;
	return before[3] == 0xe8;
}

/* The link register of a leaf is right where the code is another file's: what the function at hand has called itself is in its
 * own. Else there is the frame record, if there is one. */
static bool guess_link(struct unwind_regs *regs, unwind_read_fn *read, void *read_context, unwind_called_fn *called, void *called_context)
{
	enum { FAR = 1 << 20 };
	uint64_t sp = regs->r[UNWIND_RSP], fp = regs->r[UNWIND_RBP], lr = without_signature(regs, regs->r[UNWIND_LR]), saved, ra;

	if (regs->leaf && lr - regs->r[UNWIND_RIP] + FAR > 2 * FAR && called(called_context, lr)) {
		go_to(regs, lr, sp, fp);
		return true;
	}
	if (fp < sp || fp & 7 || !read(read_context, fp, &saved) || !read(read_context, fp + 8, &ra))
		return false;
	ra = without_signature(regs, ra);
	if (!called(called_context, ra))
		return false;
	go_to(regs, ra, fp + 16, saved);
	return true;
}

bool unwind_guess(struct unwind_regs *regs, unwind_read_fn *read, void *read_context, unwind_called_fn *called,
		  void *called_context)
{
	uint64_t sp = regs->r[UNWIND_RSP], bp = regs->r[UNWIND_RBP], saved, ra;

	if (regs->link)
		return guess_link(regs, read, read_context, called, called_context);
	if (regs->leaf && read(read_context, sp, &ra) && called(called_context, ra)) {
		go_to(regs, ra, sp + 8, bp);
		return true;
	}
	if (bp < sp || bp & 7 || !read(read_context, bp, &saved) || !read(read_context, bp + 8, &ra) || !called(called_context, ra))
		return false;
	go_to(regs, ra, bp + 16, saved);
	return true;
}

bool unwind_read_dump(void *dump, uint64_t address, uint64_t *ret)
{
	struct unwind_dump *d = dump;

	if (address < d->sp || d->size < 8 || address - d->sp > d->size - 8) {
		d->beyond = address >= d->sp;
		return false;
	}
	memcpy(ret, d->bytes + (address - d->sp), 8);
	return true;
}

int unwind_perf_register(unsigned machine, unsigned bit)
{
	/* Between rip and r8 there are flags and segments. */
	static const int8_t dwarf[] = { 0, 3, 2, 1, 4, 5, UNWIND_RBP, UNWIND_RSP, UNWIND_RIP, -1, -1, -1, -1, -1, -1, -1,
					8, 9, 10, 11, 12, 13, 14, 15 };

	if (machine == EM_AARCH64)
		return bit == ARM64_FP ? UNWIND_RBP : bit == ARM64_LR ? UNWIND_LR : bit == ARM64_SP ? UNWIND_RSP :
		       bit == ARM64_SP + 1 ? UNWIND_RIP : -1;
	return bit < ARRAY_LEN(dwarf) ? dwarf[bit] : -1;
}
