/*
 * plaincopy.h - writes a copy of a file's symbols and debug information with every section
 * uncompressed.
 *
 * Unpacking half a gigabyte takes seconds; looking up a few thousand addresses in it does
 * not. So the cache keeps an uncompressed copy. Sections keep their index, name and
 * address; sections that symbolizing never needs lose their bytes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct elf;
struct err;

/* Returns whether the file has compressed debug sections. *ret_bytes is the size that plaincopy_write gives
 * the copy. */
bool plaincopy_measure(const struct elf *elf, uint64_t *ret_bytes);
/* Writes the copy to fd, which is empty and open for reading and writing. */
int plaincopy_write(const struct elf *elf, int fd, struct err *err);
