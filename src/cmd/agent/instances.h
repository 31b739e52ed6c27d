/*
 * instances.h - the targets of an agent as they are now: for each one a row of the board, and a recorder while it runs.
 *
 * A section of the configuration without a wildcard is one instance, whether it runs or not; one with a wildcard is as many as match, and they come and go.
 * An instance whose name stands for a process gets a recorder; one that ends is started again when its target is there again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct agentconf;
struct agentconf_target;
struct board;
struct board_target;
struct kallsyms;

struct instance {
	struct board_target *row;
	const struct agentconf_target *conf; /* of the current configuration; NULL where it is unwanted */
	char *target;        /* as `record` takes it: "container:reth-a" */
	char *title;         /* its own name: "reth-a" */
	pid_t pid;           /* of its recorder, 0 = none */
	uint64_t next_ns;    /* CLOCK_MONOTONIC: when to look for it again */
	uint64_t gone_ns;    /* when it ended */
	unsigned failures;   /* of recorders, in a row */
	unsigned level;      /* what is left out to keep the budget */
	bool listed;         /* of a wildcard: it was there at the last look */
	bool unwanted;       /* the configuration has it no more: it goes when its recorder has ended */
	/* The cost of its recorder in CPU ns: at the last look, and where the current measurement of its rate began. */
	uint64_t cost_ns, from_ns, from_mono_ns;
	double rate;         /* of one CPU, 0 to 1; -1 = not known yet */
	uint64_t started_ns; /* of the recorder */
};

struct instances {
	struct board *board;
	struct kallsyms *kernel; /* borrowed; for all recorders. NULL: none */
	unsigned (*first_level)(void *context, const struct instance *x); /* at which a recorder begins that leaves out nothing yet */
	void *context;
	VEC(struct instance) list;
};

/* For a configuration that was read: those that it has no more become unwanted, and recorders with other settings are started anew. */
void instances_configure(struct instances *all, const struct agentconf *old, const struct agentconf *conf);
/* Looks for targets, and starts recorders for those that are there. Returns when it wants to be called again, CLOCK_MONOTONIC. */
uint64_t instances_look(struct instances *all, const struct agentconf *conf);
/* A child has ended; false: it was none of these. */
bool instances_ended(struct instances *all, pid_t pid, int status);
/* Ends all recorders: they write their last windows. _left: how many run yet. */
void instances_stop(struct instances *all);
size_t instances_left(const struct instances *all);
void instances_done(struct instances *all);

/* The recorder is to begin anew, at another level or with empty tables. */
void instances_again(struct instance *x);
