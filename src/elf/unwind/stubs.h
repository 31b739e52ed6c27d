/*
 * stubs.h - rows for code that has no CFI but whose shape is known: PLT entries and the entry point.
 */
#pragma once

#include <stdint.h>

struct elf;
struct rows;
struct rows_rules;

/* Rows for what the sections say; base is the address of offset 0, limit the first offset past it. */
void stubs_plt(const struct elf *elf, uint64_t base, uint32_t limit, struct rows_rules *rules,
	       struct rows *rows);
/* The entry point has no caller. Nothing is added where rows cover it already. */
void stubs_entry(const struct elf *elf, uint64_t base, uint32_t limit, struct rows_rules *rules,
		 struct rows *rows);
