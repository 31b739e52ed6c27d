/*
 * dynamic.h - a file without a section table, seen as if it had the sections that the loader uses.
 *
 * A section table is for linkers and debuggers, and some releases have none. PT_DYNAMIC still says
 * where the dynamic symbols, their strings and the relocations are: a view of the file has them as
 * .dynsym, .dynstr, .rela.plt and .rela.dyn, and the executable segments as sections called
 * DYNAMIC_CODE, since nothing says where the PLT is.
 */
#pragma once

#include <stdbool.h>

struct elf;

#define DYNAMIC_CODE ".code"

/* Makes a view, which shares all but its sections with elf; false where elf has a section table, or no dynamic symbols. The
 * caller calls dynamic_done(), and not elf_free(). */
bool dynamic_view(const struct elf *elf, struct elf *ret);
void dynamic_done(struct elf *view);
