/*
 * memwatch.h - the memory of processes over time, as series of a profile.
 *
 * Each look adds a point to each series: keys mem.*, cgroup.memory.*, machine.* and jemalloc.* of profile/keys.def,
 * and those of pressure.h. A series that would only say 0 is not made.
 *
 * A walk over all mappings costs time in which the target waits if it maps something. Walks take less than 1 % of the
 * time; points of mem.rss between them are the kernel's counters, which are off by some pages for each CPU.
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
