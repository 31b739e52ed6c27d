/*
 * cgrouppath.h - the container or unit that a process belongs to, from the paths of its cgroups.
 *
 *	4:memory:/docker/3f9c...                             a container of Docker
 *	0::/system.slice/docker-3f9c....scope                the same with systemd
 *	0::/kubepods.slice/.../cri-containerd-3f9c....scope  of containerd, in a pod
 *	1:name=systemd:/system.slice/reth.service            a unit
 *
 * The kernel writes these paths, and a process without privileges cannot leave its cgroup: an engine's claim
 * about a process is believed only where the container's id is in its path. Pure functions but cgrouppath_read()
 * and cgrouppath_of().
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "target/proc.h"

struct cgrouppath {
	char *path;         /* of the cgroup that the rest is from; NULL = in no cgroup but the root */
	char *container;    /* its id, of 64 hexadecimal digits; the outermost, where one runs in another; NULL */
	const char *engine; /* constant: "docker", "podman", "containerd", "cri-o"; "" = unknown */
	char *unit;         /* "reth.service": the innermost outside of a container; NULL */
	char *unit_path;    /* its path, which tells units of one name apart; NULL */
};

/* From the text of /proc/PID/cgroup. */
void cgrouppath_parse(const char *text, struct cgrouppath *ret);
/* Returns whether an id, which need not be hexadecimal, is a part of any path there. */
bool cgrouppath_has(const char *text, const char *id);
void cgrouppath_done(struct cgrouppath *g);

/* -ESRCH: it is gone. */
int cgrouppath_read(pid_t pid, struct cgrouppath *ret);
/* The text itself; caller frees. NULL: it is gone. */
char *cgrouppath_text(pid_t pid);
/* All processes in the container with that id, ourselves left out, in no order. */
int cgrouppath_of(const char *id, struct proc_ids *ret);
