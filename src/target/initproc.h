/*
 * initproc.h - the process that a group of them is about.
 *
 * In a container the first process is often none of the program's: `docker run --init` puts a small one before it that
 * does nothing but wait for children. Such wrappers are seen through.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct proc_ids;

/* tini, docker-init, dumb-init, catatonit and the like, by its name (comm). */
bool initproc_is_wrapper(const char *name);
/* Finds the main process of pids; first is where to begin, 0 = with the oldest whose parent is not among
 * them. The main process moves to the front of pids; processes that are gone are removed. 0 = all are
 * gone. */
pid_t initproc_main(struct proc_ids *pids, pid_t first);
