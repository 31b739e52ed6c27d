/*
 * group.h - what a process belongs to, as the paths of its control groups tell it: a container, a unit.
 *
 *	4:memory:/docker/3f9c...                             a container of Docker
 *	0::/system.slice/docker-3f9c....scope                the same with systemd
 *	0::/kubepods.slice/.../cri-containerd-3f9c....scope  of containerd, in a pod
 *	1:name=systemd:/system.slice/reth.service            a unit
 *
 * The kernel writes these paths and nobody can leave his group without rights: whatever an engine says of a
 * process is believed only where the container's id stands here. Pure functions but group_read() and group_of().
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "target/proc.h"

struct group {
	char *path;         /* of the group that told the rest; NULL = in none but the root's */
	char *container;    /* its id, of 64 hexadecimal digits; the outermost, where one runs in another; NULL */
	const char *engine; /* of the container, a constant: "docker", "podman", "containerd", "cri-o", "" = not told */
	char *unit;         /* "reth.service": the innermost outside of a container; NULL */
	char *unit_path;    /* its path, which tells units of one name apart; NULL */
};

/* From the text of /proc/PID/cgroup. */
void group_parse(const char *text, struct group *ret);
/* Is this id, of a form that need not be hexadecimal, a part of any path there? */
bool group_has(const char *text, const char *id);
void group_done(struct group *g);

/* -ESRCH: it is gone. */
int group_read(pid_t pid, struct group *ret);
/* The text itself; caller frees. NULL: it is gone. */
char *group_text(pid_t pid);
/* All processes in the container with that id, ourselves left out, in no order. */
int group_of(const char *id, struct proc_ids *ret);
