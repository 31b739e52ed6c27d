/*
 * disassemble.h - the instructions of a function, as text. Runs in the unprivileged child: the bytes are
 * untrusted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;
struct symbols_files;

/* Returns whether this build has a disassembler. */
bool disassemble_there(void);
/*
 * Appends the instructions of the function around address, by address: for each a struct disassemble_entry
 * and its text. If no symbol gives the function's start, disassembly starts at address.
 */
int disassemble_function(const struct symbols_files *files, uint64_t address, struct buf *out,
			 struct err *err);

struct disassemble_entry {
	uint64_t address;
	uint32_t size;
	uint32_t text_size; /* bytes that follow, without a NUL */
};
