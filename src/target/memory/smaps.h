/*
 * smaps.h - the mappings of a process and how much of each is in memory, as /proc/PID/smaps has it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct smaps_mapping {
	uint64_t start, end;
	char *path;            /* NULL: anonymous, without a name */
	uint32_t device_major, device_minor;
	bool readable, writable, shared;
	bool no_huge;          /* VmFlags "nh": thread stacks have it, since Linux 6.7 */
	bool no_reserve;       /* VmFlags "nr" */
	uint64_t rss_bytes, pss_bytes;
	uint64_t anon_bytes;   /* of rss: pages of its own, in file mappings copies that were written to */
	uint64_t shared_bytes; /* of rss: pages that other processes map, too */
	uint64_t huge_bytes;   /* of rss: in transparent huge pages */
	uint64_t lazyfree_bytes; /* of rss: given back (MADV_FREE), but not taken yet */
	uint64_t hugetlb_bytes;  /* not in rss */
	uint64_t swap_bytes, locked_bytes;
};

struct smaps {
	VEC(struct smaps_mapping) list; /* by address */
};

/* -ESRCH: the process is gone, -EACCES: we may not read it. */
int smaps_read(pid_t pid, struct smaps *ret);
/* Pure parser of the text; lines that do not parse are skipped and counted. */
size_t smaps_parse(const char *text, size_t n, struct smaps *ret);
void smaps_done(struct smaps *s);
/* The mapping that holds the address, NULL = none. */
const struct smaps_mapping *smaps_find(const struct smaps *s, uint64_t address);
