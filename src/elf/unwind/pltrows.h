/*
 * pltrows.h - rows for code without CFI whose instructions are known: PLT entries and the entry point.
 */
#pragma once

#include <stdint.h>

struct elf;
struct rows;
struct rows_rules;

/* Adds rows for the PLT sections; base is the address of offset 0, limit the first offset past it. */
void pltrows_plt(const struct elf *elf, uint64_t base, uint32_t limit, struct rows_rules *rules,
		 struct rows *rows);
/* Adds a row for the entry point, which has no caller, unless rows cover it already. */
void pltrows_entry(const struct elf *elf, uint64_t base, uint32_t limit, struct rows_rules *rules,
		   struct rows *rows);
