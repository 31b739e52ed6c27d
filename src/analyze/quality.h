/*
 * quality.h - can this recording be trusted? Figures, plain words, and a verdict.
 *
 * Stacks and names are judged over the selection, as is the number of samples; where
 * it is off-CPU time, weighted by that time: a wait of a second counts more than one
 * of a microsecond. Lost samples and our own cost are those of the whole recording,
 * since it is not known where in it the lost samples are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/select.h"
#include "base/vec.h"

struct buf;
struct profile;

struct quality_reason {
	const char *reason; /* lives as long as the profile */
	uint64_t samples, weight;
};

struct quality {
	uint64_t samples, complete, lost; /* of waits: how many waits; of objects: those sampled */
	uint64_t missed;               /* of calls, events and faults, at most: runs that the kernel skipped, of all programs */
	uint64_t weight, complete_weight; /* the same as samples and complete, or their ns: by_time */
	uint64_t interval;             /* of objects: bytes between samples; 0 or 1 = each was seen */
	uint64_t frames, unnamed;      /* over all stacks of all samples */
	double frame_weight, unnamed_weight; /* the same by weight */
	uint64_t unnamed_leaf_weight;  /* of stacks whose innermost frame has no name */
	bool by_time;
	const char *unnamed_module;    /* the one with the most of them, NULL = none */
	uint64_t duration_ns;
	uint64_t target_cpu_ns;        /* of the whole target, as the kernel accounts it; 0 = unknown */
	uint64_t own_cpu_ns;           /* gasflame and its BPF programs, start and end included */
	double cost_percent;           /* of the recording itself, of the target's CPU time (cost.h); negative = not known */
	bool cost_of_cpu;              /* a part of a tenth of a CPU: the target used less */
	uint64_t guessed, derived;     /* of samples of the CPU, in the whole recording: with a frame whose caller was guessed, or
					  found by reading the code */
	uint64_t error_ns;             /* of waits, in the whole recording: standard error of the time of a stack, at most */
	uint64_t own_samples;          /* of samples of the CPU: those that found one of our BPF programs at work */
	uint64_t unwound_later;        /* samples of the CPU whose stack was kept until it could be unwound */
	uint64_t hz, hz_asked;         /* 0 = unknown */
	bool unwound_elsewhere; /* by another tool, which does not say whether it came to the end: stacks are at best not known to be cut */
	bool series_only;   /* no event with stacks was recorded, only series */
	bool finished;
	VEC(struct quality_reason) reasons; /* why stacks were cut, most first */
	VEC(char *) warnings;               /* sentences: the problem, and what to do */
	bool fit;
};

void quality_measure(struct quality *q, const struct profile *p, const struct selection *s);
void quality_done(struct quality *q);

double quality_complete_percent(const struct quality *q); /* 100 without samples */
double quality_lost_percent(const struct quality *q, const struct selection *s);
double quality_unnamed_percent(const struct quality *q);
double quality_unnamed_leaf_percent(const struct quality *q); /* of the samples, or their time */

/* Returns the noun of what was counted: "samples", "waits", "samples and waits"; n 1 = singular. */
const char *quality_noun(const struct selection *s, uint64_t n);
/* "118,204 samples, 99.9 % complete, 0 lost, 0.3 % of frames without a name; own cost 0.4 % of the target's CPU time;
 * gasflame's own programs: 0.2 % of CPU samples", the last where there are any, as ", 2.1 % with a
 * guessed frame" and ", 30 % unwound by reading code" after "complete";
 * of waits: "2 waits, 99.9 % complete by time (1 cut), ...", and ", standard error of a share up to 0.6 %" after "complete"
 * where that is 0.1 % or more: stacks of short waits are drawn by chance where they are many; of calls, events and faults ", up to 6,195 not
 * seen" after "lost", where the kernel skipped programs */
void quality_line(const struct quality *q, const struct selection *s, struct buf *b);
