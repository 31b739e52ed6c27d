/*
 * heap.h - what the parts of `gasflame heap` share.
 */
#pragma once

#include <sys/types.h>

struct err;
struct heapdumps;
struct heapdumps_options;
struct profile;
struct symbolize_options;

/* Dumps as a profile with names. o.keep is not the caller's. The caller frees the profile. */
int heap_make(struct heapdumps *d, struct heapdumps_options o, const struct symbolize_options *names,
	      struct profile **ret, struct err *err);

/* The dumps that jemalloc of a process wrote by itself, below its own root; prefix as jemalloc has it. */
int heap_collect(struct heapdumps *d, pid_t pid, const char *prefix, struct err *err);

int heap_dump(int argc, char **argv);
int heap_stats(int argc, char **argv);
int heap_detach(int argc, char **argv);
