/*
 * words.h - patterns of function names that are plain words, and many of them matched at once.
 *
 * A word is text that occurs in a name and begins and ends at the edge of an identifier: "keccak256" matches
 * "alloy_primitives::utils::keccak256", not "keccak256_cached". In it
 *
 *	*	stands for any text; at the end the word need not end at an edge: "mdbx_*"
 *	^	at the beginning: the name begins here (after "<" and "&" of Rust's paths)
 *	$	at the end: the name ends here
 *	{}	stands for a part of an identifier, and is what the match is called: "core/vm.op{}$"
 *
 * Names are made plain first: generic arguments, parameter lists and what compilers append are removed.
 * "<A as B<C>>::f<D>" is matched as "<A as B>::f": a function is not taken for one of its type parameters.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct buf;
struct err;

enum { WORDS_NAME_MAX = 4096 }; /* bytes of a name that are looked at */

/* Numbers of words, in their order. */
struct words_bucket {
	uint32_t *v;
	size_t n, capacity;
};

struct words {
	VEC(struct word) list;
	struct words_bucket by_byte[256]; /* words that begin with this byte */
};

struct words_match {
	uint32_t id;     /* as given to words_add() */
	size_t from, to; /* of {} in the plain name; equal: there is none */
};

/* Replaces what out holds by the plain form of a name. */
void words_plain(const char *name, struct buf *out);

/* Adds a word, with an id that a match returns; of several that match the first one added counts. -EINVAL
 * with a sentence. Zeroed words are empty. */
int words_add(struct words *w, const char *text, uint32_t id, struct err *err);
void words_done(struct words *w);

/* Finds the first word that matches a plain name. */
bool words_find(const struct words *w, const char *plain, struct words_match *ret);
