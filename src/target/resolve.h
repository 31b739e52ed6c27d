/*
 * resolve.h - finds the processes that a TARGET names. Every command that takes a target calls it.
 *
 * The first match wins, in this order: a bare number is a pid; else a container by its name or a prefix of
 * its id; a pod of Kubernetes, NAMESPACE/POD[/CONTAINER]; a systemd unit, with or without ".service"; a
 * process name (comm or base name of its program, or of the script that an interpreter runs); a pattern
 * (extended regular expression) of its command line, except of the command that su, sudo or sh -c run. A
 * prefix, "container:reth", asks for one kind only: pid, container, pod, unit, name, cmd; cmd: includes su
 * and the others.
 *
 * A container, pod or unit is all of the processes in its cgroup, the main one first; a name matches all
 * processes of that name, but two containers of one name are a choice that the user must make: -ENOTUNIQ with
 * how to name each. Nothing found, or not running: -ESRCH with the nearest names. gasflame itself and its
 * ancestors are never found by name (an ancestor may be given by its pid). Calling it again after a restart
 * gives the new processes.
 */
#pragma once

#include "target/container/container.h"
#include "target/proc.h"

struct buf;
struct err;

enum target_kind {
	TARGET_PID,
	TARGET_CONTAINER,
	TARGET_POD,
	TARGET_UNIT,
	TARGET_NAME,
	TARGET_COMMAND,
	TARGET_KINDS,
};

struct target_found {
	enum target_kind kind;
	struct proc_ids pids;         /* main_pid is the first of them */
	pid_t main_pid;               /* --init wrappers are seen through */
	pid_t inner_pid;              /* the same as its own pid namespace sees it */
	char name[32];                /* comm of the main process */
	char wrapper[32];             /* comm of the wrapper above it, "" = none */
	struct containers containers; /* those named; for a pid or a name, those of the processes */
	char *unit;                   /* of the main process, NULL = none */
	char *cgroup;                 /* its path as in /proc/PID/cgroup, NULL = none but the root's */
	struct container_notes notes; /* sources that failed, for the command to report */
};

int target_find(const char *name, struct target_found *ret, struct err *err);
void target_found_done(struct target_found *f);
/* The processes only. */
int target_resolve(const char *name, struct proc_ids *ret, struct err *err);

/* A word for file names: the container's, unit's or process's name, or the pattern with odd characters replaced;
 * f may be NULL. Caller frees. */
char *target_label(const char *name, const struct target_found *f);
/* For titles: as the user named it, with the process name if it is a pid. Caller frees. */
char *target_title(const char *name, const struct target_found *f);
/* "container reth-a (docker, image tiny:1), pid 7 inside, 4242 here, below docker-init"; name as the user
 * typed it: "9 processes named postgres: 4249, 4250, ...". Safe for a terminal. */
void target_describe(const char *name, const struct target_found *f, struct buf *out);
/* The processes without --init wrappers. */
void target_without_wrappers(const struct target_found *f, struct proc_ids *ret);
