/*
 * symtab.h - the functions of the ELF symbol tables, sorted, found by address.
 *
 * Taken from .symtab of the file or else of its debug file; where neither has
 * one, from .dynsym, the MiniDebugInfo and the table of Go's runtime. PLT stubs, which no table names, are
 * called "symbol@plt".
 *
 * Of several names for one address the table takes: a function before a bare
 * label, one with a size before one without, global before local before weak,
 * fewer leading underscores, the shorter, the first in the alphabet.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct elf;
struct elf_section;
struct symbols_files;
struct symtab;

struct symtab *symtab_new(const struct symbols_files *files);
void symtab_free(struct symtab *t);
/* Returns the name of the function at address; NULL when it lies in none. Lives as long as the table and
 * files. */
const char *symtab_find(const struct symtab *t, uint64_t address);
/* Finds the start and end of that function; false when the address lies in none that a table names. */
bool symtab_range(const struct symtab *t, uint64_t address, uint64_t *ret_start, uint64_t *ret_end);

/* Counts the functions in the named table of one file, without sorting them. */
uint64_t symtab_count_functions(struct elf *elf, const char *section);
/* Calls see for every name that the named table defines until see returns false. */
typedef bool symtab_see_fn(void *context, const char *name, uint64_t address);
void symtab_each_name(struct elf *elf, const char *section, symtab_see_fn *see, void *context);
/* The same for functions, with their sizes. */
typedef bool symtab_see_function_fn(void *context, const char *name, uint64_t address, uint64_t size);
void symtab_each_function(struct elf *elf, const char *section, symtab_see_function_fn *see, void *context);

/* --- plt.c --- */

struct plt_stub {
	uint64_t address, end;
	const char *name; /* in the arena */
};
/* Returns the name of symbol index of the table that belongs to relocation section s; NULL = it has none. */
const char *plt_symbol_name(const struct elf *elf, const struct elf_section *s, uint64_t index);
/* Lists the stubs of a file, sorted; caller frees *ret. name_of gives the function at an address, for
 * IRELATIVE. */
typedef const char *plt_name_fn(void *context, uint64_t address);
size_t plt_read(struct elf *elf, struct arena *arena, plt_name_fn *name_of, void *context,
		struct plt_stub **ret);

/* --- debugdata.c --- */

/* Unpacks the ELF image in .gnu_debugdata; caller frees *ret. 0 or a negative errno. */
int debugdata_unpack(const struct elf *elf, uint8_t **ret, size_t *ret_n);
