/*
 * thinning.h - how a recording that was thinned to keep its budget says so, in words.
 *
 * The collector's name and a number are in the capture: KEY_THIN_OF, a point where it changed.
 */
#pragma once

#include <stdint.h>

struct buf;

/* "1 in 8 of the usual stacks of short waits" */
void thinning_words(struct buf *b, const char *collector, uint64_t one_in);
/* Points by which 95 % of the shares by stack of that many independent samples are wrong at most; 100 for none. */
double thinning_error_points(uint64_t sampled);
