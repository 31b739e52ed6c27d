/*
 * resolve.h - what the user named, as processes.
 *
 * A bare number is a pid; else a process name (comm or base name of its
 * program), else a pattern (extended regular expression) of its command line.
 * gasflame itself and its ancestors are never found by name (an ancestor may be
 * meant by its pid). A script's name in the command line counts. Nothing found
 * is -ESRCH with the nearest names in err.
 */
#pragma once

#include "target/proc.h"

struct err;

int target_resolve(const char *name, struct proc_ids *ret, struct err *err);
/* A word for file names: the process's name, or the pattern with odd characters replaced. Caller frees. */
char *target_label(const char *name, const struct proc_ids *pids);
