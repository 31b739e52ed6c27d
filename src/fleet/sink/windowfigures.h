/*
 * windowfigures.h - the figures of a target, added up over its windows, as metrics.c shows them.
 */
#pragma once

#include "analyze/wait/cause.h"

struct sink_window;

enum { WINDOWFIGURES_STATES = CAUSE_COUNT + 1 /* missing time */, WINDOWFIGURES_PARTS = 7, WINDOWFIGURES_BUCKETS = 11 };

/* The upper ends of the buckets of block times, in seconds; the last is infinite. */
extern const double windowfigures_le[WINDOWFIGURES_BUCKETS];

/* All are doubles, which the table of metrics.c counts on. NAN: was never recorded. */
struct windowfigures {
	double state[WINDOWFIGURES_STATES]; /* seconds, by enum cause, and what is missing */
	double recorded, cpu;               /* seconds */
	double part[WINDOWFIGURES_PARTS];   /* bytes, as the next three: the last of a window */
	double resident, used, limit;
	double block_le[WINDOWFIGURES_BUCKETS], block_sum; /* blocks of each bucket, not those below it; seconds */
	double blocks, gas, transactions;
	double samples, lost;
	double complete;                    /* 0 to 1, of the last window */
	double end;                         /* seconds since 1970 */
};

void windowfigures_init(struct windowfigures *f);
void windowfigures_add(struct windowfigures *f, const struct sink_window *w);
/* The values of the labels "state" and "part". */
const char *windowfigures_state(size_t i);
const char *windowfigures_part(size_t i);
