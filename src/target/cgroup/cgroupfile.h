/*
 * cgroupfile.h - the small files of a cgroup's folder, and where a process's group is.
 *
 * Folders are of the system, not of a target: they are read as they stand.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* The text of a file; caller frees, NULL = not there. */
char *cgroupfile_read(const char *folder, const char *name);
/* Returns the number in a file; fallback for "max", a negative number or a missing file. */
uint64_t cgroupfile_number(const char *folder, const char *name, uint64_t fallback);
/* The number behind "key " at the start of a line of text, 0 = none. Keys that start with it add up if it ends in "*". */
uint64_t cgroupfile_key(const char *text, const char *key);

/* The path of a controller in the text of /proc/PID/cgroup; "": version 2. Caller frees; NULL = none. */
char *cgroupfile_path(const char *text, const char *controller);

/* A place where a hierarchy may be mounted. */
struct cgroupfile_place {
	const char *root, *controller; /* "" = version 2 */
	int version;
};

/*
 * Calls fn for a process's group in each of the places, ended by one without a root, until it says 0: that is returned.
 * -ENOENT: in none, or it is in the root, which has no limits; -ESRCH: no such process. path begins with a slash.
 */
int cgroupfile_find(pid_t pid, const struct cgroupfile_place *places,
		    int (*fn)(void *context, const struct cgroupfile_place *place, const char *path), void *context);

/* A folder that lists the processes of a process's own group in its cgroup.procs; caller frees, NULL = there is none. */
char *cgroupfile_folder(pid_t pid);
