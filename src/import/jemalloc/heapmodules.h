/*
 * heapmodules.h - finds and checks the files that a heap dump's addresses belong to, and keeps them open for
 * symbolizing.
 *
 * A dump has paths, as its process saw them, and mostly no build IDs. A file that is newer than the dump, was
 * deleted by then, or is of another build is not the one that ran.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct heapdump;
struct heapdumps_options;
struct proc_mapping;
struct profile;
struct worker;

struct heapmodules {
	const struct heapdumps_options *options;
	struct worker *worker;
	struct profile *p;
	/* The rest is private. */
	struct map modules; /* process of code without a file, and string of the path, to module + 1 */
	VEC(int) fds;       /* of modules, -1 = none was found */
};

/* The module of a mapping of the dump. */
uint32_t heapmodules_find(struct heapmodules *m, const struct heapdump *dump, const struct proc_mapping *map,
			  uint32_t process);
/* Address in the process less address in the file. of_file: the dump has addresses of files. */
uint64_t heapmodules_bias(struct heapmodules *m, const struct proc_mapping *map, uint32_t module,
			  bool of_file);
bool heapmodules_found(const struct heapmodules *m, uint32_t module);
/* Files are handed over to options.keep, or closed. */
void heapmodules_done(struct heapmodules *m, bool hand_over);
