/*
 * unwind.h - unwind tables made of .eh_frame, and an unwinder in user space that uses them.
 *
 * A table maps an ELF virtual address to a rule (rule.h) in two steps: a page
 * of 4 KiB gives a run of rows, and the last row at or below the address gives
 * the rule, which holds up to the next row. Every page opens with a row at its
 * own first byte, so a look-up never leaves its page:
 *
 *	row = (address & 0xfff) | rule_index << 16
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "elf/unwind/rule.h"

struct elf;
struct err;

enum { UNWIND_PAGE_SHIFT = 12, UNWIND_MAX_RULES = 65536, UNWIND_MAX_ROWS = 1 << 26 };

struct unwind_page {
	uint32_t first, count; /* rows[first .. first + count) */
};

struct unwind_table {
	uint64_t first_page; /* address >> 12 of pages[0] */
	uint32_t page_count, row_count, rule_count;
	struct unwind_page *pages;
	uint32_t *rows;
	uint64_t *rules; /* rules[0] is RULE_NONE */
	/* Rows of .eh_frame that are RULE_UNSUPPORTED here. */
	uint32_t unsupported;
};

/* Builds the table of a file from .eh_frame (where that says nothing: Go's .gopclntab, then .debug_frame), the PLT
 * sections and the entry point. A file without any gives 0 pages and success. */
int unwind_build(struct elf *elf, struct unwind_table *ret, struct err *err);
/* Finds .eh_frame, by its header where the section table was stripped, or .debug_frame; ret is ready for ehframe_read(). */
struct ehframe;
bool unwind_find_section(struct elf *elf, bool debug_frame, struct ehframe *ret);
/* Returns whether the table is safe to load: sorted, in range, every page opened by a row. For tables from
 * the child. */
bool unwind_valid(const struct unwind_table *t);
uint64_t unwind_find(const struct unwind_table *t, uint64_t address); /* Returns the rule. */
void unwind_done(struct unwind_table *t);

/* --- one step in user space, the same as in the BPF program --- */

/* x86-64: DWARF numbers: 0 rax 1 rdx 2 rcx 3 rbx 4 rsi 5 rdi 6 rbp 7 rsp 8-15 r8-r15 16 rip. arm64: x29, sp and pc in the places of
 * rbp, rsp and rip, and x30 (UNWIND_LR); nothing else leads to a caller. */
enum { UNWIND_RBX = 3, UNWIND_RBP = 6, UNWIND_RSP = 7, UNWIND_LR = 15, UNWIND_RIP = 16, UNWIND_REGS = 17 };

struct unwind_regs {
	uint64_t r[UNWIND_REGS];
	bool leaf; /* all registers are known and rip is exact, not a return address; else rip, rsp, and of rbp and rbx what
		    * rules say (RULE_LOST_RBP, RULE_LOST_RBX) */
	uint64_t fs_base; /* of the thread, in all of its frames; 0 = unknown */
	bool link;        /* of a machine with a link register (arm64) */
	uint64_t pc_mask; /* arm64: the bits of a return address that are no signature; 0 = RULE_ARM64_PC_MASK */
};

enum unwind_result {
	UNWIND_MORE,            /* regs now describe the caller */
	UNWIND_DONE,            /* that was the outermost frame */
	UNWIND_NO_RULE,         /* no row covers the address */
	UNWIND_BAD_RULE,        /* RULE_UNSUPPORTED, or a register that is not known here */
	UNWIND_BAD_MEMORY,      /* the stack could not be read there */
	UNWIND_NOT_RISING,      /* the stack pointer did not move up: a loop */
};

/* Reads 8 bytes of the target's memory; false if they are not there. */
typedef bool unwind_read_fn(void *context, uint64_t address, uint64_t *ret);

/* Takes one step. The caller has looked up the rule for regs->r[RIP] (minus 1 unless leaf). */
enum unwind_result unwind_step(struct unwind_regs *regs, uint64_t rule, unwind_read_fn *read,
			       void *context);

/* Does a call end right before an address of code for this machine (EM_*)? before: the 8 bytes there. */
bool unwind_ends_with_call(unsigned machine, const uint8_t before[8]);
/* Does code at an address return from a call? */
typedef bool unwind_called_fn(void *context, uint64_t address);
/* Where no row covers the address: the caller is on top of the stack, or behind the frame pointer, if code there has just called.
 * The stack is not searched. False: regs are as they were. */
bool unwind_guess(struct unwind_regs *regs, unwind_read_fn *read, void *read_context, unwind_called_fn *called,
		  void *called_context);

/* --- samples of perf events --- */

/* The copy of the top of a stack. */
struct unwind_dump {
	uint64_t sp, size;
	const uint8_t *bytes;
	bool beyond; /* something above its end was asked for */
};

bool unwind_read_dump(void *dump, uint64_t address, uint64_t *ret); /* an unwind_read_fn */

/* The place in unwind_regs of the register that has a bit in the kernel's mask (PERF_REG_X86_AX, PERF_REG_ARM64_X0 are bit 0), -1: it has
 * none. machine: EM_*. */
enum { UNWIND_PERF_BITS = 33 };
int unwind_perf_register(unsigned machine, unsigned bit);

/* EM_* of the machine that this program is built for: of live targets. */
#ifdef __aarch64__
enum { UNWIND_HOST = 183 };
#else
enum { UNWIND_HOST = 62 };
#endif
