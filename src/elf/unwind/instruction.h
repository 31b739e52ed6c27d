/*
 * instruction.h - x86-64 instructions, as far as unwinding cares: how long one is, what it does to rsp and rbp, and where
 * it goes. Not a disassembler: the rest of an instruction is only stepped over.
 *
 * The bytes are untrusted; nothing beyond n is read. What is not decoded is length 0: bytes that are no instruction, and
 * the few that no compiler for user space emits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REG_RSP = 4, REG_RBP = 5, REG_R11 = 11, REG_NONE = 16 }; /* as instructions number them */

enum instruction_op {
	OP_OTHER,         /* of no concern, but for what it writes */
	OP_PUSH,          /* of reg, REG_NONE = something else */
	OP_POP,
	OP_ADD,           /* reg += value; reg is rsp or r11 */
	OP_LEA,           /* reg = base + value; base is rsp or rbp */
	OP_MOVE,          /* reg = base; one of the two is rsp or rbp, or r11 with rsp */
	OP_STORE,         /* memory at base + value = reg, 64 bits; base is rsp or rbp, reg is rbp */
	OP_LOAD,          /* reg = memory at base + value, likewise */
	OP_LEAVE,
	OP_CALL,          /* target 0 = indirect */
	OP_JUMP,          /* target 0 = indirect */
	OP_BRANCH,        /* may jump to target */
	OP_RETURN,
	OP_STOP,          /* never goes on: ud2, hlt, int3 */
	OP_CLEAR_RBP,     /* rbp = 0, which marks the outermost frame where the caller's rbp is not saved */
	OP_COMPARE_R11,   /* rsp with r11: the end of a loop that touches each page of a large frame */
};

struct instruction {
	uint8_t length;   /* 0 = not decoded */
	uint8_t op;
	uint8_t reg, base;
	bool writes_rsp, writes_rbp, writes_r11; /* in a way that op does not tell */
	uint16_t uses;    /* general registers that it names, but for those that it pushes: a bit each */
	bool on_stack;    /* it reads or writes memory at rsp + stack */
	int32_t stack;
	bool padding;     /* does nothing: nop, int3 */
	int32_t value;
	uint64_t target;  /* address that it goes to; of OP_OTHER one that it may take: lea relative to rip, mov of a constant */
};

/* Decodes the instruction at address, of which n bytes are there. */
void instruction_decode(const uint8_t *code, size_t n, uint64_t address, struct instruction *ret);
