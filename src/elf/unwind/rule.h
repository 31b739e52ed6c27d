/*
 * rule.h - one row's unwind rule in 64 bits, shared with the BPF unwinder.
 *
 *	bits 0-3    how the CFA (the caller's stack pointer) is found
 *	bits 4-7    a DWARF register (RULE_CFA_REG, RULE_RA_REG), or an addend / 8 (RULE_CFA_DEREF_*, RULE_GO_*)
 *	bits 8-10   how the caller's rbp is found
 *	bit 11      the row was read from the code, not from a table (RULE_DERIVED)
 *	bits 12-15  how the caller's rbx is found (enum rule_rbx), in files that need it
 *	bits 16-31  signed offset for rbp
 *	bits 32-63  signed offset for the CFA
 *
 * The return address stands at CFA - 8 (x86-64), but for RULE_GO_CURG with addend 0 and RULE_RA_REG. Where a call leaves it in a
 * register (arm64) all rows but RULE_END and RULE_FRAME_POINTER are RULE_LINK: see below.
 * A row that does not fit is RULE_UNSUPPORTED and counted where it cuts a stack.
 *
 * The RULE_GO_* kinds lead from the stack of a thread to that of its goroutine (gorows.h).
 */
#pragma once

#ifndef __bpf__
#include <stdint.h>
#endif

enum rule_cfa {
	RULE_NONE = 0,          /* no table covers this address */
	RULE_END = 1,           /* the return address is undefined: outermost frame */
	RULE_CFA_RSP = 2,       /* rsp + offset */
	RULE_CFA_RBP = 3,       /* rbp + offset */
	RULE_CFA_REG = 4,       /* another register + offset: known at the leaf only, but for rbx */
	RULE_CFA_PLT = 5,       /* rsp + 8, + 8 more when (pc & 15) >= 11 */
	RULE_CFA_DEREF_RSP = 6, /* *(rsp + offset) + addend */
	RULE_CFA_DEREF_RBP = 7, /* *(rbp + offset) + addend */
	RULE_SIGNAL = 8,        /* rsp points to the ucontext of a signal frame */
	RULE_UNSUPPORTED = 9,   /* a table row that these rules cannot express */
	RULE_FRAME_POINTER = 10, /* no table at all: rbp points to {caller's rbp, return address} */
	/*
	 * *(curg + RULE_GO_SCHED) + addend, where curg = *(m + offset), m = *(g + RULE_GO_M), and g is the word
	 * at the thread's FS base + the offset for rbp. Addend 0: the return address is the next word of curg.
	 */
	RULE_GO_CURG = 11,
	/* *(g + RULE_GO_STACK_HI) - *(rsp + offset) + addend, where g = *(rsp + offset + 8) */
	RULE_GO_DEPTH = 12,
	RULE_RA_REG = 13,       /* rsp + offset, and the return address is in a register: at the leaf only (vfork) */
	RULE_LINK = 14,         /* arm64: a register + offset, and the return address where bits 12-15 say */
	RULE_CFA_MAX = 14,
};

/*
 * RULE_LINK: bits 4-7 are the register that the CFA is counted from, bits 12-15 where the return address is, counted from the
 * place that the offset for rbp (here the frame pointer, x29) names. RULE_RBP_RBP: that offset is counted from the register of bits
 * 4-7, not from the CFA, as the frame may be larger than the offset can say.
 */
enum rule_base { RULE_BASE_SP = 0, RULE_BASE_FP = 1, RULE_BASE_MAX = 1 };

enum rule_link {
	RULE_LINK_REGISTER = 0, /* not saved: in the link register, at the leaf only */
	RULE_LINK_CFA = 1,      /* at CFA + offset; the frame pointer is untouched or lost */
	RULE_LINK_BASE = 2,     /* at the register + offset, likewise */
	RULE_LINK_NEAR = 3,     /* from here on: at the frame pointer's place + 8 * (n - RULE_LINK_BESIDE) */
	RULE_LINK_BESIDE = 8,
	RULE_LINK_MAX = 15,
};

/* RULE_SIGNAL: bits 4-7 say how the kernel has laid out the frame. */
enum rule_signal { RULE_SIGNAL_X86 = 0, RULE_SIGNAL_ARM64 = 1 };

/* arm64: from the stack pointer to the registers x0-x30, sp and pc in the frame of a signal: siginfo, ucontext, fault_address. */
enum { RULE_ARM64_SIGNAL_REGS = 128 + 176 + 8 };

/* arm64: a signed return address has its signature above the address. This is so for the largest addresses of a process. */
#define RULE_ARM64_PC_MASK 0xffffffffffffULL

/* Fields of Go's struct g that have stood there since Go 1.5: m, sched (sp, then pc) and stack.hi. */
enum { RULE_GO_STACK_HI = 8, RULE_GO_M = 48, RULE_GO_SCHED = 56 };

enum rule_rbp {
	RULE_RBP_SAME = 0,   /* untouched */
	RULE_RBP_CFA = 1,    /* *(CFA + offset) */
	RULE_RBP_RBP = 2,    /* *(rbp + offset) */
	RULE_RBP_LOST = 3,   /* undefined */
	RULE_RBP_MAX = 3,
};

/*
 * rbx is carried from frame to frame only where a file has functions whose CFA is rbx + offset and that call others: the
 * loader's _dl_runtime_resolve, which realigns its stack. From RULE_RBX_CFA on: at CFA - 8 * n.
 */
enum rule_rbx {
	RULE_RBX_LOST = 0, /* not known */
	RULE_RBX_SAME = 1, /* untouched */
	RULE_RBX_CFA = 2,
	RULE_RBX_MAX = 15,
};

static inline uint64_t rule_make(enum rule_cfa cfa, unsigned reg, int64_t cfa_offset,
				 enum rule_rbp rbp, int64_t rbp_offset)
{
	return (uint64_t)cfa | (uint64_t)(reg & 15) << 4 | (uint64_t)rbp << 8 |
	       (uint64_t)(uint16_t)rbp_offset << 16 | (uint64_t)(uint32_t)cfa_offset << 32;
}

static inline uint64_t rule_make_link(enum rule_base base, int64_t cfa_offset, enum rule_rbp fp, int64_t offset, unsigned link)
{
	return rule_make(RULE_LINK, base, cfa_offset, fp, offset) | (uint64_t)(link & 15) << 12;
}

/* The unwinder checks what such a row leads to, and counts it. */
#define RULE_DERIVED 0x800ULL

/* Stands for the caller's rbp after RULE_RBP_LOST: no frame can be there. */
#define RULE_LOST_RBP 1ULL

#define RULE_LOST_RBX 1ULL

#define RULE_CFA(r) ((unsigned)((r) & 15))
#define RULE_REG(r) ((unsigned)((r) >> 4 & 15))
#define RULE_RBP(r) ((unsigned)((r) >> 8 & 7))
#define RULE_RBX(r) ((unsigned)((r) >> 12 & 15))
#define RULE_RBX_BITS 0xf000ULL
#define RULE_LINK_OF(r) RULE_RBX(r)
#define RULE_RBP_OFFSET(r) ((int64_t)(int16_t)((r) >> 16))
#define RULE_CFA_OFFSET(r) ((int64_t)(int32_t)((r) >> 32))
