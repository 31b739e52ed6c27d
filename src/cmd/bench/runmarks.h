/*
 * runmarks.h - the runs of a bench as marks of its recording.
 *
 * The runs are made in a process of their own, which is recorded; it writes the wall-clock times of each run
 * and phase into a file in memory, which both have open, and the recorder puts them into the profile at the
 * end.
 */
#pragma once

#include <stdint.h>

#include "bench/runlog.h"

struct benchrun_result;
struct profile;
struct runs;

/* The file; negative errno. */
int runmarks_open(void);
/* A run and its phases, in the process that made it. */
void runmarks_add(int fd, uint32_t command, uint64_t round, const struct benchrun_result *m,
		  const struct runlog *l);
/* All of them into p, in the recorder. Names of commands and phases are the same there. */
void runmarks_take(int fd, const struct runs *r, const struct runlog *l, struct profile *p);
