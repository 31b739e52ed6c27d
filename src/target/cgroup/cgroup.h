/*
 * cgroup.h - cgroups that limit memory, of version 1 or 2: found, read, made, removed.
 *
 * Life of a cgroup that we make: cgroup_make -> cgroup_limit -> cgroup_guard -> cgroup_enter -> ... ->
 * cgroup_remove -> cgroup_done. Version 1 is used where it has the memory controller, below our own cgroup;
 * in version 2 a cgroup with processes can have no limited children, so the new one is a sibling of ours.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

#define CGROUP_UNLIMITED UINT64_MAX

struct cgroup {
	char *path; /* its folder */
	bool v2;
	bool enabled;    /* the folder above got the memory controller from us */
	int guard;       /* closing it tells the guard that we are gone; -1 = there is none */
	pid_t guard_pid;
};

struct cgroup_memory {
	uint64_t limit, swap_limit; /* CGROUP_UNLIMITED; of the group or of the nearest above that has less */
	uint64_t usage, peak;       /* peak 0: this kernel does not say */
	uint64_t anon, file, kernel, swap;
	uint64_t hits;              /* times that the limit was met */
	uint64_t oom_kills;
};

/* The memory group that a process is in. */
int cgroup_of(pid_t pid, struct cgroup *ret, struct err *err);
/* A new one. -EPERM, -ENOTSUP with what to do. */
int cgroup_make(const char *name, struct cgroup *ret, struct err *err);
/* swap_bytes: CGROUP_UNLIMITED leaves it as it is. */
int cgroup_limit(struct cgroup *c, uint64_t memory_bytes, uint64_t swap_bytes, struct err *err);
int cgroup_enter(const struct cgroup *c, pid_t pid, struct err *err);
/*
 * Starts a child that waits until we end in any way, and then until the cgroup is empty,
 * and removes it: a small process that lives no longer than the cgroup.
 */
int cgroup_guard(struct cgroup *c, struct err *err);
/* -EBUSY: there are processes in it; the guard removes it when they have ended. */
int cgroup_remove(struct cgroup *c);
size_t cgroup_processes(const struct cgroup *c); /* in it */
void cgroup_done(struct cgroup *c);

int cgroup_read(const struct cgroup *c, struct cgroup_memory *ret);

/* For tests. The folder of the group path (of /proc/PID/cgroup) according to the text of mountinfo; caller
 * frees. */
char *cgroup_parse_mount(const char *mountinfo, bool v2, const char *path);
