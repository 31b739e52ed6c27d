/*
 * oomwatch.h - a cgroup on its way to its limit, into the profile: series, and what the kernel says at a
 * kill.
 *
 * Life: new -> look (as often as one likes; it looks ten times a second) -> finish -> free. What it
 * writes is said in analyze/memory/oom.h, which reads it.
 */
#pragma once

#include <stdint.h>

struct limitgroup;
struct limitgroup_memory;
struct oomwatch;
struct profile;

/* Borrows both. */
struct oomwatch *oomwatch_new(struct profile *p, const struct limitgroup *c);
void oomwatch_look(struct oomwatch *w, uint64_t time_ns);
/* The last look, marks and counters; before: the group as it was when nothing had happened yet. */
void oomwatch_finish(struct oomwatch *w, const struct limitgroup_memory *before, uint64_t time_ns);
void oomwatch_free(struct oomwatch *w);

/* For tests: a record of /dev/kmsg; what it says about kills in the cgroup is kept. */
void oomwatch_line(struct oomwatch *w, const char *record);
