/*
 * top.h - the tables: what each function, module and thread costs.
 *
 * self: samples in which it was the innermost; total: samples in which it was
 * anywhere on the stack, recursion counted once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/tree/calltree.h"
#include "base/vec.h"

struct top_row {
	const char *name;   /* function; module's path; thread. Lives as long as the table */
	const char *module; /* functions: path of the module, else "" */
	enum ident_kind kind;
	uint32_t id;        /* threads: tid */
	uint32_t process;   /* threads: pid, 0 = unknown */
	struct weight self, total; /* threads: self is total */
};

enum top_order { TOP_BY_SELF, TOP_BY_TOTAL };

struct top {
	struct calltree tree; /* merged over threads; owns the names */
	VEC(struct top_row) functions, modules, threads; /* largest first */
	struct weight all;
};

void top_build(struct top *t, const struct profile *p, const struct selection *s, bool no_inline,
	       enum top_order order);
void top_done(struct top *t);
