/*
 * fxstacks.h - the tables of a Firefox profile that its stacks are in: strings, functions, frames, stacks, libraries, categories.
 *
 * The profiler groups by function: calls of one function at several addresses are frames of one function. A frame with inlined
 * calls is as many frames of one address. A row that waited has a frame below its leaf that names the cause, with the category
 * of that cause: categories are what the profiler paints.
 */
#pragma once

#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "export/samplerows.h"

struct export_job;
struct json;

enum { FX_OTHER, FX_USER, FX_KERNEL, FX_DETAIL, FX_CAUSES /* and one for each cause */ };

struct fx_func {
	uint32_t name, file; /* strings; file 0 = not known */
	uint32_t lib;        /* 1 + index, 0 = none */
};

struct fx_frame {
	uint64_t address;    /* 0 = not known */
	uint32_t func, line, depth, category;
};

struct fxstacks {
	const struct export_job *job;
	struct strtab strings;
	/* The rest is private. */
	struct stackcalls calls;
	struct map func_index, stack_index, source_index;
	VEC(struct fx_func) funcs;
	VEC(struct fx_frame) frames;
	VEC(uint32_t) sources;                 /* strings */
	VEC(uint32_t) libs;                    /* modules of the profile */
	struct map lib_index;                  /* module to 1 + index of libs */
	uint32_t *first;                       /* by frame of the profile: 1 + where its frames begin in lists */
	VEC(uint32_t) lists;                   /* a number, and so many frames, the leaf first */
	VEC(uint32_t) stack_frame, stack_prefix; /* prefix: 1 + index, 0 = none */
	uint32_t *stacks;                      /* by stack of the profile: 1 + index, 0 = not made yet */
	VEC(uint32_t) chain;
	uint32_t causes[CAUSE_COUNT];          /* 1 + frame */
};

void fxstacks_init(struct fxstacks *f, const struct export_job *job);
void fxstacks_done(struct fxstacks *f);
/* 1 + index of the stack of a row; 0 = it is empty. */
uint32_t fxstacks_of(struct fxstacks *f, const struct samplerow *row);
/* "categories" of the meta information, "libs", and the members of "shared". */
void fxstacks_put_categories(struct json *j);
void fxstacks_put_libs(const struct fxstacks *f, struct json *j);
void fxstacks_put_tables(struct fxstacks *f, struct json *j);
