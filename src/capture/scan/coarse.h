/*
 * coarse.h - a profile with few stacks, for a first picture.
 *
 * The heaviest nodes of the tree of stacks stay, by their largest share of any event. What was measured below a node that
 * does not stay belongs to a note "[left out]" below its nearest caller that does. Sums by event and thread are the same as
 * before, and so is each box of a flame graph that is wide enough to be seen. Times are lost.
 */
#pragma once

#include <stddef.h>

struct profile;

/* Replaces the samples of p by such sums. */
void coarse_make(struct profile *p, size_t nodes);
