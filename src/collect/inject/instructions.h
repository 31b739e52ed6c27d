/*
 * instructions.h - the few instructions that ptracecall.c looks for or writes, of each processor. Plain data, the same on every machine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct instructions {
	uint8_t call[4], trap[4];      /* makes a system call; stops the thread */
	uint8_t call_bytes, trap_bytes;
	uint8_t step;                  /* instructions begin at multiples of it */
};

extern const struct instructions instructions_x86, instructions_arm64;

/* Is it a system call that begins with these bytes, as memory has them? */
bool instructions_is_call(const struct instructions *i, uint64_t code);
/* The offset of the first system call; n: there is none. */
size_t instructions_find_call(const struct instructions *i, const uint8_t *code, size_t n);
