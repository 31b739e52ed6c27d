/*
 * unpack.h - a file's symbols and debug information, written anew with every section plain.
 *
 * Unpacking half a gigabyte takes seconds, looking up a few thousand addresses
 * in it does not. So the cache keeps a plain copy. Sections keep their index,
 * name and address; those that names and lines never need lose their bytes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct elf;
struct err;

/* Has it compressed debug sections? *ret_bytes is the size that unpack_write gives the file. */
bool unpack_measure(const struct elf *elf, uint64_t *ret_bytes);
/* fd is empty and open for reading and writing. */
int unpack_write(const struct elf *elf, int fd, struct err *err);
