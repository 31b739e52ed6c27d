/*
 * surcharge.h - what a run of a BPF program costs beyond the time that the kernel's statistics show.
 *
 * The statistics are taken inside: the way from the event to the program and back, and most of reading the clock twice, are
 * not in them. An empty program measures that, on events that we cause ourselves, in some milliseconds of each start:
 *
 *	tracepoint  a signal that is ignored (signal_generate), with the empty program and without
 *	call        a system call of ours, before our programs are attached to sys_enter and sys_exit and after: the kernel
 *	            leaves its short path for all calls of all processes when anything is
 *	clock       a loop of ours, with ticks of a clock and without: interrupt, timer, perf event
 *	fault       page faults of ours, with a perf event and without
 *	uprobe      is not measured: probing a function takes longer than the rest together; a typical figure
 *
 * Our loops are warm and the target's caches are not ours: what our programs displace there is in no figure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How a program is reached. */
enum surcharge_way {
	SURCHARGE_NONE, SURCHARGE_TRACEPOINT, SURCHARGE_CALL, SURCHARGE_CLOCK, SURCHARGE_FAULT, SURCHARGE_UPROBE, SURCHARGE_WAYS
};

struct surcharge {
	double ns[SURCHARGE_WAYS];     /* a run */
	bool measured[SURCHARGE_WAYS]; /* here, at this start; else a typical figure */
	double call_ns;                /* a system call before anything was attached */
	double seen_ns;                /* of an empty program, by the statistics */
};

extern const char *const surcharge_names[SURCHARGE_WAYS];

/* By the name of the program's section, "raw_tp/sched_switch". */
enum surcharge_way surcharge_way_of(const char *section, const char *program);
/* Before our programs are attached. */
void surcharge_begin(struct surcharge *s);
/* Once they are: measures the ways that are wanted, where the kernel lets us. */
void surcharge_measure(struct surcharge *s, const bool *wanted);
