/*
 * coderows.h - rows for code without CFI, read from its instructions (flow.h): static builds without unwind tables,
 * hand-written assembly.
 *
 * They carry RULE_DERIVED: the unwinder believes them only where a call stands before the return address that they lead to,
 * and stacks with such frames are counted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct elf;
struct flow;
struct rows;
struct rows_rules;

/* Fills the gaps of rows. base is the address of offset 0, limit the first offset past the code. */
void coderows_fill(struct elf *elf, uint64_t base, uint32_t limit, struct rows_rules *rules, struct rows *rows);

/* Follows all code of f->gaps. symbols: also from where the symbol tables say that functions begin. */
void coderows_follow(struct elf *elf, struct flow *f, bool symbols);
