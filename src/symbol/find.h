/*
 * find.h - the files that hold a module's symbols: itself, its debug file, what dwz shared.
 *
 * A path that came from the target is opened only by way of target/open.h. A
 * file is taken when its build-id is the module's; without build-ids a debug
 * file needs the CRC of the link to it, and the module itself a time of change
 * before the recording.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "elf/worker/worker.h"
#include "symbol/source.h"

struct cache;

/* How much the found files contain. */
enum find_level { FIND_NOTHING, FIND_EXPORTS, FIND_SYMBOLS, FIND_LINES };

/* The files of --symbols, each inspected once. */
struct find_entry {
	char *path;
	bool named;     /* by the user, rather than found in a folder */
	bool used;      /* some module has its build-id */
	struct worker_identity id;
};
struct find_index {
	VEC(struct find_entry) files;
	VEC(char *) problems; /* sentences about files that could not be opened */
};
void find_index_build(struct find_index *index, struct worker *w, const char *const *paths);
void find_index_done(struct find_index *index);

struct find {
	/* what to look for */
	struct worker *worker;
	struct cache *cache;       /* may be NULL */
	struct find_index *index;
	pid_t pid;                 /* a process that maps it, 0 = none alive */
	const char *path;          /* as that process sees it */
	const uint8_t *build_id;
	uint8_t build_id_size;
	uint64_t recorded_wall_ns; /* 0 = unknown */
	bool no_dwarf;
	bool debuginfod;           /* ask servers; false afterwards when they do not answer */

	/* the result */
	int main, debug, alt;      /* -1 = none */
	struct source debug_from, alt_from;
	struct symbols_info main_info, debug_info;
	enum find_level level;
	char why[512];             /* a sentence about a refused file, "" = none was refused */
};

/* main may be set already (a kept descriptor) and is then taken over. */
void find_files(struct find *f);
/* Opens the file that find_files would try first for main, without reading it; -1 = none. The caller
 * closes it. */
int find_open_main(const struct find *f);
void find_done(struct find *f);

char *find_hex(char out[41], const uint8_t *build_id, uint8_t size);
