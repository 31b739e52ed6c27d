/*
 * gotslots.h - where a process calls its allocators: their functions, and the slots that hold the functions' addresses.
 *
 * A compiler that does not know where malloc will be lets the program call through a slot
 * of its global offset table, which the loader fills in; Rust does so also for an
 * allocator that is linked into the program. Slots are found by name where the loader's
 * instructions name them, and by the address that they hold.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct err;
struct worker;

struct gotslots_function {
	uint64_t address;
	uint32_t name;   /* into allocator_names */
	uint32_t module; /* 0 is the program itself; the order is that of the mappings */
};

struct gotslots_slot {
	uint64_t address, value; /* in the process */
	uint32_t function;       /* into functions */
};

struct gotslots {
	VEC(struct gotslots_function) functions;
	VEC(struct gotslots_slot) slots;
	bool direct; /* the program has an allocator linked in, and no slot for it: its own calls cannot be seen */
	char allocators[128]; /* "jemalloc (_rjem_), glibc malloc": those that are called through slots */
};

/* Reads only. No slot: an empty list and 0. */
int gotslots_find(pid_t pid, struct worker *w, struct gotslots *ret, struct err *err);
void gotslots_done(struct gotslots *s);
