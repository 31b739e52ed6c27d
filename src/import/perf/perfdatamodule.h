/*
 * perfdatamodule.h - the files that addresses of perf.data belong to: modules of the profile, the files on this machine, their
 * unwind tables.
 *
 * A file is looked for where the recording says (below the root that the user named), among --symbols, and in perf's own
 * cache of builds. It is taken only if its build-id is the recorded one; where the recording has none, only if it is older than
 * the recording. Files are opened when the first address in them is asked for, and read by the unprivileged child.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "elf/worker/worker.h"

struct import_options;
struct kallsyms;
struct perfdatafacts;
struct profile;

struct perfdatamodule {
	uint32_t id; /* of the profile */
	int fd;      /* -1: it is not here */
	bool opened, table_read, layout_read;
	struct worker_layout layout;
	struct unwind_table table; /* page_count 0: there is none */
};

struct perfdatamodules {
	/* Set by the caller. */
	struct profile *p;
	const struct import_options *options;
	const struct perfdatafacts *facts;
	uint64_t recorded_wall_ns; /* 0 = not known */
	unsigned machine;          /* EM_* of the recorded machine */
	/* Private. */
	struct worker *worker;
	VEC(struct perfdatamodule) list;
	struct map index;
	struct kallsyms *symbols; /* of the recorded kernel; NULL: there are none */
	uint64_t symbols_start;   /* where it begins in them */
	bool symbols_read;
	bool kernel_proven; /* by its build-id */
	int kernel_known; /* 0: not asked yet, 1: it is this machine's, -1: it is not, or nobody knows */
};

void perfdatamodules_done(struct perfdatamodules *m);

/* By the path of a mapping, and its build-id where the record has one (size 0: none). process: whose, for code without a file. */
uint32_t perfdatamodules_find(struct perfdatamodules *m, const char *path, const uint8_t *build_id, uint8_t size, uint32_t process);
/* "[ext4]" or "[kernel]", of a path. */
uint32_t perfdatamodules_kernel(struct perfdatamodules *m, const char *path);
/* What to subtract from an address of a mapping to get one of its module. */
uint64_t perfdatamodules_bias(struct perfdatamodules *m, uint32_t module, uint64_t start, uint64_t file_offset);
/* The unwind rule at an address of a module. */
uint64_t perfdatamodules_rule(struct perfdatamodules *m, uint32_t module, uint64_t address);
/* Does an instruction that calls stand before this address? False where that cannot be known. */
bool perfdatamodules_follows_call(struct perfdatamodules *m, uint32_t module, uint64_t address);
/* Is the recorded kernel the one that runs here, so that its symbols are right? */
bool perfdatamodules_kernel_is_ours(struct perfdatamodules *m);
/* Names a frame of the recorded kernel by the list of its symbols that perf keeps in ~/.debug. The kernel may lie elsewhere
 * since: only distances from its beginning count, and modules, which lie anywhere, have no names here. False: not known. */
bool perfdatamodules_name_kernel(struct perfdatamodules *m, uint32_t frame);
