/*
 * functions.h - where the functions of a file start and end, known without a single symbol.
 *
 * Compilers describe each function by one FDE of .eh_frame, which strip does not remove. So a
 * stripped program still says where its functions are, though not what they are called. A part
 * that the compiler split off (.cold) has an FDE of its own and is a function of its own here.
 * A debug file has no bytes of .eh_frame: its sized function symbols are taken instead.
 *
 * Of FDEs that overlap, which no compiler makes, each ends where the next one starts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf;

enum { FUNCTIONS_MAX = 1 << 22 }; /* the largest known browser has a fifth of that */

struct functions_range {
	uint64_t start, end; /* addresses in the file, start < end */
};

enum functions_from { FUNCTIONS_NONE, FUNCTIONS_FDES, FUNCTIONS_SYMBOLS };

struct functions {
	struct functions_range *v; /* sorted, without overlap */
	size_t n, capacity;
	uint32_t from;        /* enum functions_from */
	uint32_t overlapping; /* FDEs that began within another one */
	uint64_t text_bytes;  /* code in the file, by its sections or else its segments */
};

/* Never fails: a file without any of it has no functions. */
void functions_read(struct elf *elf, struct functions *ret);
void functions_done(struct functions *f);
/* The function at an address; NULL = none. */
const struct functions_range *functions_find(const struct functions *f, uint64_t address);
/* Is it sorted and without overlap? For answers of the child. */
bool functions_valid(const struct functions *f);
/* The bytes of all functions. */
uint64_t functions_bytes(const struct functions *f);
/* How many functions of f are in other, too, with the same start and end. */
size_t functions_agree(const struct functions *f, const struct functions *other);
/* Is the function at an address the same in both? */
bool functions_same_at(const struct functions *f, const struct functions *other, uint64_t address);
