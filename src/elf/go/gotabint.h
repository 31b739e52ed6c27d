/*
 * gotabint.h - the inside of gotab.h, for the files of this folder.
 *
 * The parts of a table each run from their offset to the end of the table: the linker writes them one after
 * the other, but nothing relies on it.
 */
#pragma once

#include "elf/go/goimage.h"
#include "elf/go/gotab.h"

enum { GOTAB_NAME_LIMIT = 64 << 10 }; /* a longer string is not taken for a name or a path */

struct gotab_part {
	const uint8_t *data;
	size_t size;
	uint64_t offset; /* from the header */
};

struct gotab {
	struct goimage image;
	enum gotab_version version;
	bool named;           /* a section says that this is the table */
	uint32_t quantum;     /* the size of the smallest instruction */
	uint64_t address;     /* of the header */
	const uint8_t *data;  /* the header */
	size_t size;          /* to the end of the section, or of the segment where there is none */
	struct gotab_part names, units, files, values, functions;
	uint64_t file_count;
	uint64_t *entries;    /* the address of each function, and the end of the last; ascending */
	size_t count;
	uint64_t text;        /* what the entries are relative to, from Go 1.18 on */
	uint64_t funcdata;    /* what the offsets of funcdata are relative to, from Go 1.18 on; 0 = unknown */
	unsigned tree_pcdata, tree_funcdata; /* indexes of the inline tree among a function's pcdata and funcdata */
};

/* The string at an offset of a part; "" when it does not end within it, or is too long. */
const char *gotab_string(const struct gotab_part *part, uint64_t offset);

/* --- gofind.c --- */

/* Calls try for each place where a table may be, the likely ones first, until it returns true. named: a section says
 * so; elsewhere it may also be the table of another program that this one carries as data. */
typedef bool gofind_try_fn(void *context, const uint8_t *data, size_t size, uint64_t address, bool named);
bool gofind_each(const struct goimage *image, gofind_try_fn *try, void *context);
/* Returns whether a header of a table may begin here: magic number, instruction and pointer sizes. */
bool gofind_is_header(const uint8_t *data, size_t size);

/* --- goline.c --- */

/* Finds out which pcdata and funcdata are the inline tree. */
void goline_choose(struct gotab *t);

/* --- gomodule.c --- */

/* Finds runtime.firstmoduledata by its pointers to the parts of the table and takes t->text and t->funcdata
 * from it, where the version has them. */
bool gomodule_find(struct gotab *t);
