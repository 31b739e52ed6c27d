/*
 * resolve.h - what the user named, as processes. Every command that takes a target comes here.
 *
 * In this order, the first that there is: a bare number is a pid; else a container by its name or the beginning of its
 * id; a pod of Kubernetes, NAMESPACE/POD[/CONTAINER]; a unit of systemd, with or without ".service"; a process name (comm
 * or base name of its program, or of the script that an interpreter runs); a pattern (extended regular expression) of its command line,
 * but not of what su, sudo or sh -c are to run. A prefix, "container:reth", asks for one kind only: pid, container, pod,
 * unit, name, cmd; cmd: takes in su and the others.
 *
 * A container, pod or unit is all of the processes in its control group, the main one first; several processes of one
 * name are all meant, but two containers that go by one name are a choice that the user must make: -ENOTUNIQ with how
 * to name each. Nothing found, or not running: -ESRCH with the nearest names. gasflame itself and its ancestors are
 * never found by name (an ancestor may be meant by its pid). Calling it again after a restart gives the new processes.
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
	struct containers containers; /* those that are meant; for a pid or a name, those that the processes are in */
	char *unit;                   /* of the main process, NULL = none */
	char *cgroup;                 /* its path as in /proc/PID/cgroup, NULL = none but the root's */
	struct container_notes notes; /* what did not work meanwhile, for the command to say */
};

int target_find(const char *name, struct target_found *ret, struct err *err);
void target_found_done(struct target_found *f);
/* The processes only. */
int target_resolve(const char *name, struct proc_ids *ret, struct err *err);

/* A word for file names: the container's, unit's or process's name, or the pattern with odd characters replaced;
 * f may be NULL. Caller frees. */
char *target_label(const char *name, const struct target_found *f);
/* For titles: as the user named it, and for a number also what it is. Caller frees. */
char *target_title(const char *name, const struct target_found *f);
/* "container reth-a (docker, image tiny:1), pid 7 inside, 4242 here, below docker-init"; name is what the
 * user typed: "9 processes named postgres: 4249, 4250, ...". Clean for a terminal. */
void target_describe(const char *name, const struct target_found *f, struct buf *out);
/* Those of its processes that are no --init wrappers. */
void target_without_wrappers(const struct target_found *f, struct proc_ids *ret);
