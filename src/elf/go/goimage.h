/*
 * goimage.h - the words of a loaded ELF file as the dynamic linker leaves them, at load address 0.
 *
 * The pointers in the data of a PIE are often zero in the file and only in its relocations, which are read from
 * PT_DYNAMIC: section headers may be gone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct elf;
struct elf_segment;

struct goimage_relocation {
	uint64_t address, value;
};

struct goimage {
	const struct elf *elf; /* the caller's */
	VEC(struct goimage_relocation) relocations; /* sorted by address; only those without a symbol */
};

void goimage_init(struct goimage *image, const struct elf *elf);
void goimage_done(struct goimage *image);

/* The bytes that the file holds of a segment; false when they lie outside the file, or are mostly a hole. */
bool goimage_segment(const struct goimage *image, const struct elf_segment *s, const uint8_t **ret, size_t *ret_n);
/* The bytes of the file from an address to the end of its segment; NULL when the file has none there. */
const uint8_t *goimage_at(const struct goimage *image, uint64_t address, size_t *ret_n);
/* Reads the 8 bytes at an address, relocated. */
bool goimage_word(const struct goimage *image, uint64_t address, uint64_t *ret);
