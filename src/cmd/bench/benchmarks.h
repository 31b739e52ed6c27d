/*
 * benchmarks.h - the runs of a bench as marks of the recording that was made of it.
 *
 * The runs are made in a process of their own, which is what is recorded; it writes where each run and phase
 * lies on the wall clock into a file in memory, which both have open, and the recorder puts them into the
 * profile when it is done.
 */
#pragma once

#include <stdint.h>

#include "bench/runlog.h"

struct benchrun_result;
struct profile;
struct runs;

/* The file; negative errno. */
int benchmarks_open(void);
/* A run and its phases, in the process that made it. */
void benchmarks_add(int fd, uint32_t command, uint64_t round, const struct benchrun_result *m,
		    const struct runlog *l);
/* All of them into p, in the recorder. Names of commands and phases are the same there. */
void benchmarks_take(int fd, const struct runs *r, const struct runlog *l, struct profile *p);
