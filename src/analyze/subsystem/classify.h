/*
 * classify.h - the subsystem of each stack of a profile.
 *
 * A stack belongs to its innermost function that a pattern knows. Weak patterns (memory copies, the runtime,
 * the kernel) decide only where no other one does, and where all functions of the program are known to be
 * such: a stack with a function that nobody knows, and without one that decides, is "other".
 * docs/decisions/0015-subsystems.md says why.
 *
 *	struct classifier c;
 *	classifier_init(&c, p, &table);
 *	puts(classifier_name(&c, sample->stack));
 *	classifier_done(&c);
 *
 * Each function is matched once, and each stack takes what its caller has: the cost is that of the profile's
 * distinct functions and stacks, not of its samples. The table and the profile must outlive it; stacks that
 * are added later are looked at when they are asked for.
 */
#pragma once

#include <stdint.h>

#include "analyze/subsystem/subsystems.h"

struct profile;

struct classified {
	uint64_t all;      /* a bit for each subsystem on the stack, with its own */
	uint8_t subsystem; /* of the stack itself */
	uint16_t label;    /* the innermost opcode or precompile, 0 = none */
};

struct classifier {
	const struct profile *p;
	struct subsystems *table;
	/* The rest is private. */
	uint8_t kernel;                      /* subsystem of stacks of the kernel alone */
	VEC(struct subsystem_use) functions; /* by function */
	VEC(struct classifier_node) nodes;   /* by stack */
};

void classifier_init(struct classifier *c, const struct profile *p, struct subsystems *table);
void classifier_done(struct classifier *c);

struct classified classifier_of(struct classifier *c, uint32_t stack);
const char *classifier_name(struct classifier *c, uint32_t stack);
/* What a function of a program is of by itself. */
struct subsystem_use classifier_of_function(struct classifier *c, uint32_t function);
