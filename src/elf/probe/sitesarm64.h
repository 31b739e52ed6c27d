/*
 * sitesarm64.h - the part of probesites.h that reads instructions of arm64. All are words of 32 bits: no disassembler is needed.
 *
 * - in: the first instruction that the kernel emulates: a branch, adrp. It runs once in each call if no branch leads to it or to what is
 *   before it. How much lower the stack pointer is there is known (`depth`), and x30 still has the address to return to. Where there is
 *   no such instruction it is the first one: the kernel single-steps a copy of it, in a page of its own, where a CPU sample that comes
 *   meanwhile finds no stack.
 * - out: each ret, and each tail call: all kernels emulate these.
 *
 * Of calls within each other only the outermost counts, and one that was left by a panic never returns. Whether an older call is
 * still under way is seen where the function has saved x30: `link`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct elf;
struct probesites;

/* Returns whether kernels from 5.15 on take a uprobe at the instruction: they emulate it, or single-step a copy of it. */
bool sitesarm64_accepted(uint32_t word);
/* Reads the code of one function and its cold part; may_be_future: also where the state of a future is. */
void sitesarm64_read(const struct elf *elf, struct probesites *d, uint64_t cold, uint64_t cold_size, bool may_be_future);
