/*
 * markerfind.h - the marker files of a process, opened safely.
 *
 * Writers map the file once, executable, so that a profiler hears of it, and keep it open. So a new file is known by the
 * record of its mapping, and one that was there before by the process's descriptors. Only a regular file of the process's
 * own user is opened, with no other name: it says nothing that the process could not read.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* fd is the callee's. tid: as we see it; 0 = the whole process, or the thread is gone. */
typedef void markerfind_fn(void *context, pid_t pid, pid_t tid, int fd);

/* All that are open in the process. */
void markerfind_open(pid_t pid, markerfind_fn *fn, void *context);
/* One that it has mapped. */
void markerfind_mapped(pid_t pid, const char *path, markerfind_fn *fn, void *context);
/* What is to be added to times of the process's CLOCK_MONOTONIC so that they are of ours: another time namespace has
 * another zero. */
int64_t markerfind_clock(pid_t pid);
