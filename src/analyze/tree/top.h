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
	const char *program; /* threads: name of the process, "" = unknown */
	uint32_t threads, processes; /* threads: how many this row stands for; 0 = one */
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
/* Makes one row of the threads that have the same name, in processes of the same name, where there are more of them than
 * that: a shell that starts thousands of programs has thousands of threads. */
void top_sum_threads(struct top *t, uint32_t more_than, enum top_order order);
