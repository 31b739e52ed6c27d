/*
 * firefoxtables.h - the tables of a Firefox profile that stacks are made of: strings, functions, frames, stacks, libraries.
 *
 * Since version 60 a profile has them once ("shared"), before that each thread has its own; versions 56 to 59 share some. The
 * tables are columns of numbers, which are indexes into other tables; each is checked when it is used. A stack becomes one of
 * the profile when it is asked for. Calls that were inlined (inlineDepth) and the call into which they were are one frame.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "import/web/jsontext.h"

struct webprofile;

struct fxcolumn {
	VEC(int32_t) list; /* -1: null */
};

/* What a category means to us. */
enum fxcategory { FX_USER, FX_KERNEL, FX_CAUSE, FX_NOTE, FX_OTHER };

/* What the whole file has once. */
struct fxfile {
	struct webprofile *w;
	bool own;                      /* gasflame wrote it */
	VEC(uint32_t) modules;         /* by index of "libs" */
	VEC(enum fxcategory) categories;
};

struct fxtables {
	VEC(uint32_t) strings; /* of the profile */
	struct fxcolumn stack_frame, stack_prefix, stack_offset;
	struct fxcolumn frame_func, frame_line, frame_lib, frame_depth, frame_category;
	VEC(uint64_t) frame_address; /* UINT64_MAX: none */
	struct fxcolumn func_name, func_resource, func_file, func_source, func_line;
	struct fxcolumn resource_lib, source_file;
	uint32_t *stacks; /* of the profile, by stack; PROFILE_NONE: not made yet. NULL: none was asked for */
	VEC(int32_t) chain;
};

/* Reads the member that the cursor is at, if it is one of the tables. */
bool fxtables_take(struct fxtables *t, struct fxfile *f, struct jsontext *c);
void fxtables_done(struct fxtables *t);
/* Has it stacks of its own? */
bool fxtables_any(const struct fxtables *t);

/* The stack of the profile; rest: for tables that t has not. -1 is no stack. c fails if the tables make no sense. */
uint32_t fxtables_stack(struct fxtables *t, const struct fxtables *rest, struct fxfile *f, int32_t stack, struct jsontext *c);
