/*
 * arm64.h - rows of arm64 files, made into the same tables as those of x86-64. All rules are RULE_LINK (rule.h).
 *
 * A call leaves the return address in x30, the link register. A function that calls others saves it, most often beside the frame
 * pointer x29: the frame record. Return addresses may be signed (PAC); who walks a stack takes the signature off, so that tables
 * need not know about it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cfi_state;
struct elf;
struct rows;
struct rows_rules;

/* DWARF's numbers. */
enum { ARM64_FP = 29, ARM64_LR = 30, ARM64_SP = 31 };

/* The rule of a state that CFI describes; RULE_UNSUPPORTED if no rule can say it. */
uint64_t arm64_rule(const struct cfi_state *s);
/* The rule within a Go function: frame is what the stack pointer is below that of the caller, saved: the caller's frame pointer
 * lies below the return address. */
uint64_t arm64_go_rule(int32_t frame, bool saved);
/* Where in a Go function x29 is set after the stack pointer first moved (the bytes from there on), in bytes; 0 = not at all. */
size_t arm64_go_frame(const uint8_t *code, size_t n);
/* Fills gaps of rows: the stubs of the PLT. base is the address of offset 0, limit the first offset past the code. */
void arm64_plt(const struct elf *elf, uint64_t base, uint32_t limit, struct rows_rules *rules, struct rows *rows);
/* Fills gaps of rows: code that returns from a signal handler, which the kernel's vdso describes by no CFI. */
void arm64_trampolines(const struct elf *elf, uint64_t base, uint32_t limit, struct rows_rules *rules, struct rows *rows);
/* Is the instruction before an address a call? before: the 8 bytes there. */
bool arm64_ends_with_call(const uint8_t before[8]);
