/*
 * statcount.h - counters of running threads, or of a program from its exec to its end.
 *
 * Life: statcount_open, statcount_targets or statcount_command -> statcount_read -> statcount_done.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench/counterline.h"
#include "base/vec.h"
#include "target/trace/counters.h"

struct err;
struct launch;
struct runlog;
struct targets;

struct counted {
	pid_t pid, tid;
	char name[32];
	struct counters counters;
	struct counter_value values[COUNTERS]; /* once read */
};

struct statcount {
	VEC(struct counted) threads; /* for a command one entry, which includes its children */
	struct counter_value total[COUNTERS];
	struct counterline line; /* of a command with phases */
	uint64_t time_ns;
	bool gone; /* the targets, before the time was over */
};

/* Opens all threads of these processes, including threads that they start later. */
int statcount_open(struct statcount *c, const struct targets *who, struct err *err);
/* Waits for so long, for Ctrl-C, or until they are gone. */
void statcount_targets(struct statcount *c, const struct targets *who, uint64_t duration_ns);
/* Starts a program and waits for its end. Where log has phases it gets the program's output, and times of
 * CLOCK_MONOTONIC, as the line has. */
int statcount_command(struct statcount *c, struct launch *l, char **argv, struct runlog *log, struct err *err);
void statcount_read(struct statcount *c);
void statcount_done(struct statcount *c);
