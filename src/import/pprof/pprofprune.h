/*
 * pprofprune.h - leaves out the frames that a profile wants left out of its stacks: drop_frames and keep_frames of pprof.
 *
 * As pprof has it: the outermost frame whose function matches the first regex, and not the second one, is left out with all that
 * it called, unless nothing outside of it is left. Of names only what comes before the arguments is compared.
 *
 * The regexes are strangers' and are of another kind than ours: one that is not plain (names, "|", ".", "*", "+", "?", brackets,
 * escaped characters) is not used.
 */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pprofmodel;

struct pprofprune {
	bool used;
	/* The rest is private. */
	const char *drop_text, *keep_text;
	regex_t drop, keep;
	uint8_t *found; /* by location: see enum */
};

/* False: one of the regexes is not plain, and nothing is left out. "" = none; both outlive it. pprofprune_done() in any case. */
bool pprofprune_init(struct pprofprune *prune, const char *drop, const char *keep);
void pprofprune_done(struct pprofprune *prune);
/* Finds the locations that match, and takes inlined calls off those that match in part. False: there are more names than can be
 * compared, and nothing is left out. */
bool pprofprune_find(struct pprofprune *prune, struct pprofmodel *m);
/* Of a stack, the leaf first: how many locations to leave out at its beginning. */
size_t pprofprune_count(const struct pprofprune *prune, const uint32_t *locations, size_t n);
