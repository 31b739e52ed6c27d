/*
 * blockruns.h - a recording as measured runs: the time of each block, or each run of a bench, by cause.
 *
 * For blocks the figures are those of their paths (blocks.h), so that they sum to the wall time. For the runs
 * of `bench --record` they are the sums over all threads of the run, in thread-seconds. Both also have the
 * bytes allocated and the faults in that time, where they were recorded, and the time of each subsystem where the
 * program is a node.
 */
#pragma once

struct causes;
struct classifier;
struct err;
struct profile;
struct runs;

/* name: of the recording, where its marks do not name a command. subsystems: NULL = none are figures. -ENODATA: it has
 * neither blocks nor runs. */
int blockruns_make(const struct profile *p, struct causes *c, struct classifier *subsystems, const char *name,
		   struct runs *ret, struct err *err);
