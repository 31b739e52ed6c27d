/*
 * blockruns.h - a recording as measured runs: what each block, or each run of a bench, spent on what.
 *
 * Of blocks the figures are those of their paths (blocks.h), so that they sum to the wall time. Of the runs of
 * `bench --record` they are the sums over all threads of the run, in thread-seconds. Both also have what was
 * allocated and faulted in that time, where it was recorded.
 */
#pragma once

struct causes;
struct err;
struct profile;
struct runs;

/* name: of the recording, where its marks do not say what was run. -ENODATA: neither blocks nor runs are in it. */
int blockruns_make(const struct profile *p, struct causes *c, const char *name, struct runs *ret, struct err *err);
