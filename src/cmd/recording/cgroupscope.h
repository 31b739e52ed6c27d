/*
 * cgroupscope.h - the cgroups whose new processes belong to the target: a container's, a unit's. A process
 * started by `docker exec` is no child of any process in the container.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/vec.h"

struct proc_ids;

struct cgroupscope {
	VEC(char *) list; /* folders; owned */
};

/* Finds the cgroups of containers and units of which the names stand for all processes. */
void cgroupscope_find(const struct proc_ids *pids, char *const *names, size_t name_count, struct cgroupscope *ret);
/* Returns whether name is a pid, which names only that process. */
bool cgroupscope_is_pid(const char *name);
void cgroupscope_done(struct cgroupscope *j);
