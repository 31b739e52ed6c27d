/*
 * cgroupmemory.h - the state of the memory controller for a process's cgroup, in version 2 or 1.
 *
 * A limit of any ancestor up to the root applies: the smallest is hit first.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define CGROUPMEMORY_NO_LIMIT UINT64_MAX

struct cgroupmemory {
	char *path;  /* of the folder; NULL: none, or the root, which has no limits */
	int version; /* 1 or 2 */
	uint64_t usage_bytes, peak_bytes;  /* peak 0: not known */
	uint64_t limit_bytes,
		swap_limit_bytes; /* CGROUPMEMORY_NO_LIMIT: none; swap: of version 1 memory and swap together */
	uint64_t high_bytes;               /* from there on it is slowed down (2) */
	uint64_t swap_bytes;
	uint64_t anon_bytes, file_bytes, shmem_bytes, kernel_bytes; /* of usage; file has shmem in it */
	/* Since it was made. */
	uint64_t limit_hits, high_hits, ooms, oom_kills;
	uint64_t scanned_pages, reclaimed_pages; /* version 2 only: else 0 */
	uint64_t refaults; /* pages that were taken back and wanted again */
};

/* -ENOENT: it has none of its own. */
int cgroupmemory_read(pid_t pid, struct cgroupmemory *ret);
/* The same of a folder; the limits of folders above it, up to root, count, too. */
int cgroupmemory_read_folder(const char *root, const char *path, int version, struct cgroupmemory *ret);
void cgroupmemory_done(struct cgroupmemory *g);

/* Pages that the kernel has taken back on the whole machine, and how often a thread had to do that itself. */
struct cgroupmemory_machine {
	uint64_t reclaimed_pages, stalls;
};
int cgroupmemory_machine(struct cgroupmemory_machine *ret);
