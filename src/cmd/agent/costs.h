/*
 * costs.h - what an agent costs, and what is left out to keep its budget.
 *
 * CPU time is that of all its processes and of their BPF programs, by the kernel. What a recorder's start costs, the first seconds, is counted but
 * decides nothing: leaving something out would not have saved it. What waits cost is foreseen from how often threads of the machine are switched, so
 * that a recorder does not begin with what it would have to leave out. Memory is the proportional set size of all processes: pages that they share count once.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct agentconf;
struct board;
struct instance;
struct instances;

enum { COSTS_PAST = 18 }; /* looks: three minutes */

struct costs {
	uint64_t looked_ns;      /* CLOCK_MONOTONIC, of the last look; 0 = none yet */
	uint64_t memory_ns;      /* of the last look at memory */
	uint64_t others_ns;      /* CPU time of the agent itself and of the process that delivers, at the last look */
	double others_rate;
	uint64_t changed_ns;     /* when a level was changed last */
	uint64_t patience_ns;    /* how long all must be well before something is recorded again */
	uint64_t ended_ns;       /* CPU time of processes that have ended */
	uint64_t switches, switches_ns; /* of the machine since its boot, and when they were counted; CLOCK_MONOTONIC, 0 = never */
	double switches_hz;
	struct { uint64_t mono_ns, cost_ns; } past[COSTS_PAST]; /* all that was used, at the last looks; a ring */
	size_t looks;
};

/* Every ten seconds or so. */
void costs_look(struct costs *c, struct instances *all, const struct agentconf *conf, struct board *board, pid_t sender);
/* The level at which a recorder begins: that leaves room for those that run. The first call takes half a second. */
unsigned costs_first_level(struct costs *c, const struct instances *all, const struct agentconf *conf, const struct instance *x);
/* A child was reaped: its CPU time. */
void costs_ended(struct costs *c, uint64_t cpu_ns);
