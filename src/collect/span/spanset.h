/*
 * spanset.h - the functions to be marked: those that the user named, and those that are known of clients.
 *
 * A pattern is a part of a function's readable name; a * in it stands for any text. The spans of a main one are blocks,
 * those of the others are marks of their own kind, named after the function. A client's name stands for its known
 * functions. Patterns of one group are alternatives, the best one first: inlining may have removed some.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct err;
struct probesites_info;

struct spanset_pattern {
	const char *text; /* the user's, or a constant */
	uint32_t group;
	bool block;       /* its spans are blocks, if no better one of its group is there */
	bool block_group; /* the same, whatever the user chose for blocks */
	bool instead;     /* it is marked only if no better one of its group is there */
	bool known;       /* of a client, not the user's own words */
	bool optional;    /* nobody asked for it by name: it need not be there */
	uint32_t functions; /* that are probed */
};

struct spanset {
	VEC(struct spanset_pattern) patterns;
	uint32_t groups; /* that were given out */
};

/* The use of the functions that a pattern found. */
enum spanset_use { SPANSET_NOT, SPANSET_MARK, SPANSET_BLOCK };

/* names: of --mark-function, the first is the main one. guess: without any name, the block functions of all known
 * clients are looked for. */
int spanset_make(struct spanset *set, const char *const *names, size_t n, bool guess, struct err *err);
/* info: what a file has; before that, functions counts what others had. */
enum spanset_use spanset_use(const struct spanset *set, const struct probesites_info *info, uint32_t pattern);
/* Returns whether the pattern, or an alternative to it, has been found. */
bool spanset_found(const struct spanset *set, size_t pattern);
/* Makes the name of a function's mark: "do_mine_block" of
 * "anvil::…::Backend<N>::do_mine_block::{{closure}}". Into out, which is returned. */
char *spanset_short_name(const char *name, char *out, size_t size);
/* The same for a function that a pattern found: "Task::run" for "Task*::run", or run alone would be any. */
char *spanset_mark_name(const struct spanset_pattern *p, const char *name, char *out, size_t size);
void spanset_done(struct spanset *set);
