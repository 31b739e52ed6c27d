/*
 * ownfunction.h - the function of the program that a stack is attributed to: its call
 * site.
 *
 * A wait ends in the C library and the kernel, below the locks and runtimes that
 * every program uses. A person can change the innermost function that is none of
 * these: the program's own code, or a library that is not known here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/tree/ident.h"

#define OWNFUNCTION_NONE UINT32_MAX

/* Returns the identity of that function, of a stripped program a named one close above it; where there is none, of the most telling library function, of the
 * kernel's, or the marker in place of the stack. OWNFUNCTION_NONE: an empty stack. */
uint32_t ownfunction_of_stack(struct idents *t, uint32_t stack);

/* Returns whether the function is of the language's libraries, a runtime or the C library. */
bool ownfunction_is_library(const char *name, const char *module);

/* Returns whether the function is an allocator's: malloc, free, their callees, operator new. */
bool ownfunction_is_allocator(const char *name, const char *module);

/* "fdatasync", "pread": the file operation at the end of the program's side of the stack; NULL = none. */
const char *ownfunction_operation(const struct profile *p, uint32_t stack);
