/*
 * tokioint.h - what the parts of this room share while one file is read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "elf/tokio/tokio.h"
#include "elf/unwind/functions.h"
#include "elf/unwind/instruction.h"

struct elf;
struct err;
struct symtab;

/* The functions of a table, in its order, and the numbers after them. */
enum { SLOT_POLL, SLOT_SCHEDULE, SLOT_DEALLOC, SLOT_READ_OUTPUT, SLOT_DROP_JOIN, SLOT_DROP_ABORT, SLOT_SHUTDOWN, SLOTS };
enum { WORD_TRAILER = SLOTS, WORD_SCHEDULER, WORD_ID, WORDS };

/* A table of this shape, before and after its functions were looked at. */
struct table {
	uint64_t address;
	uint64_t functions[SLOTS];
	uint64_t trailer, scheduler, id; /* offsets in a task */
};
struct tables {
	struct table *v;
	size_t n, capacity;
};

/* A word that holds the address of code. */
struct image_pointer {
	uint64_t address, value;
};
struct image_pointers {
	struct image_pointer *v; /* by address, each once */
	size_t n, capacity;
};

struct tokio_file {
	struct elf *elf;
	struct symtab *symtab;
	struct functions functions;
	bool sparse; /* most functions are unknown: it was built without unwind tables */
	struct image_pointers pointers;
	uint64_t steps; /* bytes of code that may still be decoded */
};

/* --- image.c: the words and strings of the file as the loader leaves them in memory --- */

void image_pointers(const struct elf *elf, struct image_pointers *ret);
/* Reads a word that no relocation changes; false if the file has none there. */
bool image_word(const struct elf *elf, uint64_t address, uint64_t *ret);
/* Says whether the file speaks of tokio; writes its version into ret, "" if it does not say it. */
bool image_version(const struct elf *elf, char ret[32]);

/* --- shape.c: tables of the right shape whose functions do what they should --- */

/* Returns a negative errno if there is no table that can be relied on; err says why. */
int shape_find(struct tokio_file *f, const char *version, struct tables *ret, size_t *ret_left_out, struct err *err);

/* --- code.c: the instructions of functions --- */

/* Finds the function that starts at an address. Where most are unknown, any place that looks like a start is one. */
bool code_function(const struct tokio_file *f, uint64_t address, struct functions_range *ret);
/* Called for each instruction of a function; false ends the walk. */
typedef bool code_see_fn(void *context, uint64_t address, const uint8_t *bytes, const struct instruction *i);
void code_walk(struct tokio_file *f, const struct functions_range *function, code_see_fn *see, void *context);
/* Where a function calls or jumps to outside of itself, each once, in the order of its code. */
struct code_calls {
	uint64_t *v;
	size_t n, capacity;
};
void code_calls(struct tokio_file *f, uint64_t function, struct code_calls *ret);

/* --- spawn.c: the code that takes the address of a table --- */

/* Fills in the spawns of vtables, which are sorted by address. */
void spawn_find(struct tokio_file *f, struct tokio_vtable *vtables, size_t n);

/* --- name.c: what to call each type --- */

/* Fills in name, named and kind of vtables; tables[i] belongs to vtables[i], whose spawns are known. */
void name_types(struct tokio_file *f, const struct table *tables, struct tokio_vtable *vtables, size_t n);
