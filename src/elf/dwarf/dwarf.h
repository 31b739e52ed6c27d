/*
 * dwarf.h - source lines and inlined calls from DWARF 2 to 5.
 *
 * Reads the sections where they lie (mapped, or unpacked into the scratch file)
 * and keeps little of its own: one small record for each compile unit, and the
 * abbreviations of the units at hand. Nothing is indexed beforehand. The root of
 * each unit says which addresses it covers; only units that cover one of the
 * wanted addresses are read further, once, from front to back.
 *
 * Left out: split DWARF (.dwo, .dwp), type units, macros, variables, types.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct dwarf;
struct symbols_call;
struct symbols_files;

/* NULL when the files have no debug information. */
struct dwarf *dwarf_new(const struct symbols_files *files);
void dwarf_free(struct dwarf *d);

/* As symbols_got_fn, but only called for addresses of which something is known. The last call's linkage
 * and name are both "" when only the source line is known. */
typedef void dwarf_got_fn(void *context, size_t index, struct symbols_call *calls, size_t count);
/* addresses are sorted, without duplicates. */
void dwarf_resolve(struct dwarf *d, const uint64_t *addresses, size_t n, dwarf_got_fn *got, void *context);
