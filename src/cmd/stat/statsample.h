/*
 * statsample.h - counters by function: a recording with -e hw that is kept in memory and no longer than it is needed.
 */
#pragma once

#include <stdint.h>

struct err;
struct launch;
struct profile;
struct runlog;
struct targets;

struct statsample {
	const struct targets *who; /* running processes, or the one of launch */
	struct launch *launch;   /* a program that waits for its exec; pid < 0: none */
	const char *program;     /* its file */
	struct runlog *log;      /* its output is fed to it, and phases in it become marks; NULL = none */
	const char *block_log;   /* a node's log, whose blocks become marks; NULL = none */
	uint64_t hz, duration_ns; /* 0 = until it ends */
};

/* The named profile, which the caller frees. */
int statsample(const struct statsample *o, struct profile **ret, struct err *err);
