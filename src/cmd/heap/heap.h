/*
 * heap.h - shared by the parts of `gasflame heap`.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct command;
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

/* The dump that a node offers at an address. Waits for wait_ns while it makes another's. The caller frees. */
int heap_fetch(const char *url, uint64_t wait_ns, char **ret, size_t *ret_n, struct err *err);

/* The commands of two words. */
extern const struct command command_heap_dump, command_heap_stats, command_heap_detach;
