/*
 * regsarm64.bpf.h - the registers of arm64 as the kernel gives them to programs; see regsx86.bpf.h for the names.
 */
#pragma once

/* The layout of struct user_pt_regs, in words: x0-x30, then these. struct pt_regs begins with it. */
enum {
	REGS_1ST = 0, REGS_2ND = 1, REGS_3RD = 2, REGS_SYSCALL = 8, REGS_BP = 29, REGS_LR = 30, REGS_SP = 31, REGS_IP = 32, REGS_MODE = 33,
	REGS_COUNT = 34,
	REGS_CALL_1ST = 34, /* of struct pt_regs: x0 as it was, before the result came there */
	REGS_HEAP_ADDRESS = 0, REGS_HEAP_BYTES = 1, REGS_HEAP_INTERVAL = 2, REGS_HEAP_TICKET = 2, REGS_HEAP_FREED = 0, REGS_HEAP_WHAT = 9,
	REGS_TASK_TICKET = 0,
	REGS_GO_G = 28, REGS_GO_1ST = 0, REGS_GO_3RD = 2,
	REGS_PLACE = REGS_SP, REGS_PLACE_WORDS = REGS_MODE - REGS_SP + 1,
};
/* EL0, not of a 32-bit program */
#define REGS_IN_USER(mode) (((mode) & 0x1f) == 0)

enum { UNWIND_LR = 15 }; /* where struct unwind_regs has x30 */

/* AT(n) reads word n of a struct pt_regs, wherever that is. Nothing but these leads to the caller. */
#define UNWIND_FROM(u, AT)                               \
	do {                                             \
		(u)->bp = AT(REGS_BP);                   \
		(u)->sp = AT(REGS_SP);                   \
		(u)->pc = AT(REGS_IP);                   \
		(u)->registers[6] = (u)->bp;             \
		(u)->registers[7] = (u)->sp;             \
		(u)->registers[UNWIND_LR] = AT(REGS_LR); \
		(u)->leaf = 1;                           \
	} while (0)

#define UNWIND_LEAVE(u) ((u)->pc = (u)->registers[UNWIND_LR] & pc_mask, (u)->leaf = 0, true)
