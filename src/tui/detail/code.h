/*
 * code.h - the inside of a function: its hot lines, and its instructions.
 *
 * Lines are those of the frames (from DWARF, else unknown). Instructions are addresses with their weight;
 * the caller provides their text, if it can read the file, and it is shown only where its addresses fit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct model;
struct table;

struct code_instruction {
	uint64_t address;
	uint32_t size;
	char *text;
};

/* The instructions of one function of a module, by address. */
struct code_text {
	uint32_t module; /* of the profile, PROFILE_NONE = there is no text */
	VEC(struct code_instruction) list;
	char why[256];   /* no text: why */
};
void code_text_init(struct code_text *t);
void code_text_done(struct code_text *t);

/* Both make the table. 100 % is all that is selected. */
void code_lines(struct table *t, struct model *m, const char *name, const char *module);
void code_instructions(struct table *t, struct model *m, const char *name, const char *module,
		       const struct code_text *text);
/* The hottest address of a function, to find its code by; false: there is none. */
bool code_hottest(struct model *m, const char *name, const char *module, uint32_t *ret_module,
		  uint64_t *ret_address);
