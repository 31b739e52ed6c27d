/*
 * memwatch.h - the memory of processes over time, as series of a profile.
 *
 * Each look is a point of each series. Gauges, in bytes:
 *
 *	mem.rss, mem.pss, mem.anon, mem.swap, mem.page tables, mem.peak, mem.virtual, mem.shared pages,
 *mem.locked, mem.huge pages, mem.hugetlb, mem.lazy free mem.part.heap, .anonymous, .files, .shared, .stacks,
 *.data, .other   which add up to mem.rss at that moment mem.file:PATH                  of mem.part.files, the
 *largest cgroup.memory.usage, .limit, .anon, .file, .kernel, .swap, .peak jemalloc.allocated, .active,
 *.metadata, .resident, .mapped, .retained
 *
 * Counts: mem.processes, mem.threads, mem.stacks; cgroup.memory.limit hits, .oom kills (since it was made).
 *What has grown since the look before: mem.faults.minor, mem.faults.major, machine.reclaimed,
 *cgroup.memory.reclaimed (bytes), machine.reclaim stalls, and those of pressure.h. A series that would only
 *say 0 is not made.
 *
 * To walk all mappings costs time, in which the target waits if it maps something: it is done as seldom as
 *needed to stay below 1 % of the time. Points of mem.rss between walks are the kernel's counters, some pages
 *off per CPU.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct memwatch;
struct profile;

/* pressure: also what pressure.h has. Children of the processes count, too. */
struct memwatch *memwatch_new(struct profile *p, const pid_t *pids, size_t n, uint64_t start_mono_ns,
			      bool pressure);
/* Others from now on: those before have ended. */
void memwatch_watch(struct memwatch *w, const pid_t *pids, size_t n);
void memwatch_free(struct memwatch *w); /* NULL is fine */

enum memwatch_how { MEMWATCH_CHEAP, MEMWATCH_BUDGET, MEMWATCH_WALK };
/* Adds a point to each series. Returns how many of the processes are alive. */
size_t memwatch_look(struct memwatch *w, uint64_t now_mono_ns, enum memwatch_how how);
/* jemalloc's statistics from a node's metrics. */
int memwatch_metrics(struct memwatch *w, const char *url, uint64_t now_mono_ns, struct err *err);
