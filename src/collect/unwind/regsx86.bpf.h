/*
 * regsx86.bpf.h - the registers of x86-64 as the kernel gives them to programs. regsarm64.bpf.h has the same names.
 *
 *	REGS_IP, REGS_SP, REGS_BP    words of struct pt_regs: program counter, stack and frame pointer
 *	REGS_1ST, REGS_2ND, REGS_3RD arguments of a function
 *	REGS_CALL_1ST                the first argument of a system call, also when it returns
 *	REGS_HEAP_*, REGS_TASK_*     what the hooks of these collectors leave in registers (heap/blob, task/blob)
 *	REGS_GO_*                    the goroutine, and the first and third argument of a Go function
 *	REGS_SYSCALL                 the number of a system call, while it runs and when it returns
 *	REGS_MODE, REGS_IN_USER(w)   a word, and whether it says that a 64-bit program was interrupted, not the kernel
 *	REGS_PLACE, _WORDS           a piece with program counter, stack pointer and mode
 *	UNWIND_FROM                  fills a struct unwind
 *	UNWIND_LEAVE                 goes on at the caller of a function of which nothing has run yet; false: that is not to be found
 */
#pragma once

/* The layout of struct pt_regs on x86-64, in words. It is ABI: signal frames and ptrace show it. */
enum {
	REGS_R15, REGS_R14, REGS_R13, REGS_R12, REGS_BP, REGS_BX, REGS_R11, REGS_R10, REGS_R9, REGS_R8,
	REGS_AX, REGS_CX, REGS_DX, REGS_SI, REGS_DI, REGS_ORIG_AX, REGS_IP, REGS_CS, REGS_FLAGS, REGS_SP,
	REGS_SS, REGS_COUNT,
};
enum {
	REGS_1ST = REGS_DI, REGS_2ND = REGS_SI, REGS_3RD = REGS_DX, REGS_SYSCALL = REGS_ORIG_AX, REGS_MODE = REGS_CS,
	REGS_CALL_1ST = REGS_DI,
	REGS_HEAP_ADDRESS = REGS_AX, REGS_HEAP_BYTES = REGS_DX, REGS_HEAP_INTERVAL = REGS_R9, REGS_HEAP_TICKET = REGS_R9,
	REGS_HEAP_FREED = REGS_DI, REGS_HEAP_WHAT = REGS_AX, REGS_TASK_TICKET = REGS_AX,
	REGS_GO_G = REGS_R14, REGS_GO_1ST = REGS_AX, REGS_GO_3RD = REGS_CX,
	REGS_PLACE = REGS_IP, REGS_PLACE_WORDS = REGS_SP - REGS_IP + 1,
};
#define REGS_IN_USER(mode) (((mode) & 3) == 3)

/* AT(n) reads word n of a struct pt_regs, wherever that is. */
#define UNWIND_FROM(u, AT)                     \
	do {                                   \
		(u)->registers[0] = AT(REGS_AX);   \
		(u)->registers[1] = AT(REGS_DX);   \
		(u)->registers[2] = AT(REGS_CX);   \
		(u)->registers[3] = AT(REGS_BX);   \
		(u)->registers[4] = AT(REGS_SI);   \
		(u)->registers[5] = AT(REGS_DI);   \
		(u)->registers[6] = AT(REGS_BP);   \
		(u)->registers[7] = AT(REGS_SP);   \
		(u)->registers[8] = AT(REGS_R8);   \
		(u)->registers[9] = AT(REGS_R9);   \
		(u)->registers[10] = AT(REGS_R10); \
		(u)->registers[11] = AT(REGS_R11); \
		(u)->registers[12] = AT(REGS_R12); \
		(u)->registers[13] = AT(REGS_R13); \
		(u)->registers[14] = AT(REGS_R14); \
		(u)->registers[15] = AT(REGS_R15); \
		(u)->bp = (u)->registers[6];       \
		(u)->sp = (u)->registers[7];       \
		(u)->pc = AT(REGS_IP);             \
		(u)->leaf = 1;                     \
	} while (0)

#define UNWIND_LEAVE(u)                                                              \
	(!bpf_probe_read_user(&(u)->pc, sizeof((u)->pc), (void *)(u)->sp) &&         \
	 ((u)->sp += 8, (u)->leaf = 0, true))
