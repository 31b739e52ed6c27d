/*
 * blockruns.h - a recording as measured runs: the time of each block, or each run of a bench, by cause.
 *
 * For blocks the figures are those of their paths (blocks.h), so that they sum to the wall time. For the runs
 * of `bench --record` they are the sums over all threads of the run, in thread-seconds. Both also have the
 * bytes allocated and the faults in that time, where they were recorded.
 */
#pragma once

struct causes;
struct err;
struct profile;
struct runs;

/* name: of the recording, where its marks do not name a command. -ENODATA: it has neither blocks nor runs. */
int blockruns_make(const struct profile *p, struct causes *c, const char *name, struct runs *ret, struct err *err);
