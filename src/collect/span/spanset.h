/*
 * spanset.h - which functions are to be marked: what the user named, and what is known of clients.
 *
 * A pattern is a part of a function's readable name. The spans of a main one are blocks, those of the others are marks
 * of their own kind, named after the function. A client's name stands for its known functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct err;

struct spanset_pattern {
	const char *text; /* the user's, or a constant */
	bool block;       /* its spans are blocks */
	bool optional;    /* nobody asked for it by name: it need not be there */
	bool told;        /* it was found, or that it is not there was said */
	uint32_t functions; /* that are probed */
};

struct spanset {
	VEC(struct spanset_pattern) patterns;
};

/* names: of --mark-function, the first is the main one; guess: without any, those of all known clients will do. */
int spanset_make(struct spanset *set, const char *const *names, size_t n, bool guess, struct err *err);
/* Makes the name of a function's mark: "do_mine_block" of
 * "anvil::…::Backend<N>::do_mine_block::{{closure}}". Into out, which is returned. */
char *spanset_short_name(const char *name, char *out, size_t size);
void spanset_done(struct spanset *set);
