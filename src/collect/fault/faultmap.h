/*
 * faultmap.h - what lies at the address of a page fault, as frames below the stack that touched it.
 *
 * The kernel side names files by device and inode; their paths come from /proc/PID/maps, which is read once
 * for each new file, or from /proc/PID/fd if it is not mapped any more. Where the kernel could not tell
 * (before 5.17, or while the mappings were changed), the address is looked up in the former as well.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct faultmap;
struct profile;
struct shared_fault;

/* Begins with what the targets have mapped now. */
struct faultmap *faultmap_new(struct profile *p, const pid_t *pids, size_t n);
void faultmap_free(struct faultmap *m);

/*
 * The stack with one note more, the file or "[heap]", "[stack]", "[anonymous]", "[unknown]"; for a write to a
 * page that was read-only another, "[copy on write]" or "[first write]"; for a major fault on a file another
 * with the part of it, "mdbx.dat at 0x40000-0x80000".
 */
uint32_t faultmap_stack(struct faultmap *m, const struct shared_fault *f, uint32_t stack,
			uint64_t now_mono_ns);
/* Faults whose place the kernel did not say, and those of them that were not found in /proc either. */
uint64_t faultmap_looked_up(const struct faultmap *m);
uint64_t faultmap_unknown(const struct faultmap *m);
