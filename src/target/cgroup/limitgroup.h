/*
 * limitgroup.h - cgroups that limit memory, of version 1 or 2: found, read, made, removed.
 *
 * Life of a cgroup that we make: limitgroup_make -> limitgroup_limit -> limitgroup_guard -> limitgroup_enter -> ... ->
 * limitgroup_remove -> limitgroup_done. Version 1 is used where it has the memory controller, below our own cgroup;
 * in version 2 a cgroup with processes can have no limited children, so the new one is a sibling of ours.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

#define LIMITGROUP_UNLIMITED UINT64_MAX

struct limitgroup {
	char *path; /* its folder */
	bool v2;
	bool enabled;    /* the folder above got the memory controller from us */
	int guard;       /* closing it tells the guard that we are gone; -1 = there is none */
	pid_t guard_pid;
};

struct limitgroup_memory {
	uint64_t limit, swap_limit; /* LIMITGROUP_UNLIMITED; of the group or of the nearest above that has less */
	uint64_t usage, peak;       /* peak 0: this kernel does not say */
	uint64_t anon, file, kernel, swap;
	uint64_t hits;              /* times that the limit was met */
	uint64_t oom_kills;
};

/* The memory group that a process is in. */
int limitgroup_of(pid_t pid, struct limitgroup *ret, struct err *err);
/* A new one. -EPERM, -ENOTSUP with what to do. */
int limitgroup_make(const char *name, struct limitgroup *ret, struct err *err);
/* swap_bytes: LIMITGROUP_UNLIMITED leaves it as it is. */
int limitgroup_limit(struct limitgroup *c, uint64_t memory_bytes, uint64_t swap_bytes, struct err *err);
int limitgroup_enter(const struct limitgroup *c, pid_t pid, struct err *err);
/*
 * Starts a child that waits until we end in any way, and then until the cgroup is empty,
 * and removes it: a small process that lives no longer than the cgroup.
 */
int limitgroup_guard(struct limitgroup *c, struct err *err);
/* -EBUSY: there are processes in it; the guard removes it when they have ended. */
int limitgroup_remove(struct limitgroup *c);
size_t limitgroup_processes(const struct limitgroup *c); /* in it */
void limitgroup_done(struct limitgroup *c);

int limitgroup_read(const struct limitgroup *c, struct limitgroup_memory *ret);

/* For tests. The folder of the group path (of /proc/PID/cgroup) according to the text of mountinfo; caller
 * frees. */
char *limitgroup_parse_mount(const char *mountinfo, bool v2, const char *path);
