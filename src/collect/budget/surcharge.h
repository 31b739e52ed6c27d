/*
 * surcharge.h - what a run of a BPF program costs beyond the time that the kernel's statistics show.
 *
 * They are taken inside: the way from the tracepoint to the program and back, and most of the reading of the clock, are
 * not in them. An empty program at a tracepoint that we pass ourselves measures that, once, in about a millisecond.
 */
#pragma once

#include <stdint.h>

/* How a program is reached. */
enum surcharge_way { SURCHARGE_NONE, SURCHARGE_TRACEPOINT, SURCHARGE_CLOCK, SURCHARGE_FAULT, SURCHARGE_UPROBE, SURCHARGE_WAYS };

struct surcharge {
	double ns[SURCHARGE_WAYS]; /* a run */
};

/* By the name of the program's section, "raw_tp/sched_switch". */
enum surcharge_way surcharge_way_of(const char *section, const char *program);
/* Measures tracepoints where the kernel lets us, with the statistics as they are; the others are typical figures. */
void surcharge_measure(struct surcharge *s);
