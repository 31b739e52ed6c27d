/*
 * stacksums.h - rows added up by their stacks, and stacks as lists of numbered functions: what call graphs are made of.
 *
 *	struct stacksums s;
 *	r = stacksums_make(&s, job, &err);
 *	for (size_t i = 0; i < s.list.n; i++) {
 *		stacksums_places(&s, i);
 *		use(s.places.v, s.places.n, stacksums_values(&s, i));	// the leaf first; there is at least one
 *	}
 *	stacksums_done(&s);
 *
 * A function is a name in a module, as in all tables. Samples without a stack are of a function "[no stack]".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "export/samplerows.h"

struct stackfunction {
	const char *name, *module; /* "" = none */
	uint32_t file;             /* of the place of it that was seen first with one; a string of files, 0 = none is known */
	enum ident_kind kind;
};

struct stackplace {
	uint32_t function;
	uint32_t file; /* string of files, 0 = not known */
	uint32_t line; /* 0 = not known */
};

struct stacksum {
	uint32_t stack;
	uint64_t count;
};

struct stacksums {
	VEC(uint32_t) events; /* of the profile, those that have rows */
	VEC(struct stacksum) list;
	VEC(struct stackfunction) functions; /* those of stacks that were looked at */
	VEC(struct stackplace) places;       /* of the stack that was looked at last */
	struct strtab files;
	/* The rest is private. */
	VEC(uint64_t) values;
	struct stackcalls calls;
	struct strtab names;
	struct map links;
};

/* stacksums_done() in any case. -ENODATA: nothing is selected. */
int stacksums_make(struct stacksums *s, const struct export_job *job, struct err *err);
void stacksums_done(struct stacksums *s);
void stacksums_places(struct stacksums *s, size_t i);
/* As many as events. */
static inline const uint64_t *stacksums_values(const struct stacksums *s, size_t i)
{
	return &s->values.v[i * s->events.n];
}
