/*
 * cgroupcpu.h - the CPU quota of a process's cgroup, of version 2 or 1, and how often it was
 * throttled.
 *
 * A quota of any ancestor up to the root applies; the tightest is reported, with the numbers of the
 * cgroup that has it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroupcpu {
	char *path;  /* folder of the process's own group */
	int version; /* 1 or 2 */
	uint64_t quota_us, period_us; /* of each period; quota 0: none */
	/* Since it was made; 0 without a quota. */
	uint64_t periods;           /* in which anything ran */
	uint64_t throttled_periods; /* of these, in which the quota was used up */
	uint64_t throttled_ns;      /* stopped; each CPU counts, however many threads stood there */
};

/* -ENOENT: it has no group that can be seen from here, or is in the root, which has none. */
int cgroupcpu_read(pid_t pid, struct cgroupcpu *ret);
/* The same of a folder below the root of a hierarchy. */
int cgroupcpu_read_folder(const char *root, const char *path, int version, struct cgroupcpu *ret);
/* The process is in a cgroup, but its folder is not visible from here: another cgroup namespace, or no
 * mount. */
bool cgroupcpu_hidden(pid_t pid);
void cgroupcpu_done(struct cgroupcpu *g);
