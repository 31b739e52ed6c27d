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
#include "elf/unwind/functions.h"
#include "elf/worker/worker.h"
#include "symbol/source.h"

struct cache;

/* How much the found files contain. */
enum find_level { FIND_NOTHING, FIND_EXPORTS, FIND_SYMBOLS, FIND_LINES };

/* The files of --symbols, each inspected once. */
struct find_entry {
	char *path;
	bool named;     /* by the user, rather than found in a folder */
	bool used;      /* some module has its build-id, or its functions */
	struct worker_identity id;
	struct functions functions; /* read when another build is looked for */
	bool functions_read;
	char *like;       /* the module whose functions agree best with it, NULL = none was compared */
	size_t agree, of; /* so many functions of that module agree */
};
/* A folder of --symbols: debug files below .build-id, the root of an image, or just files. */
struct find_folder {
	char *path;
	bool strange;   /* of another user: links in it may not lead out of it */
	bool walked;    /* its files are in the index */
};
struct find_index {
	struct worker *worker;
	VEC(struct find_entry) files;
	VEC(struct find_folder) folders;
	size_t seen;          /* files that were looked at in folders */
	VEC(char *) problems; /* sentences about files that could not be opened */
};
/* Folders are walked only when a module is not found in them by its build-id or its path. */
void find_index_build(struct find_index *index, struct worker *w, const char *const *paths);
void find_index_walk(struct find_index *index);
/* A file below a folder; a root's own links stay below it. */
int find_folder_open(const struct find_folder *folder, const char *path, int *ret_fd);
void find_index_done(struct find_index *index);

/* Learns where debug files were looked for, and what became of it: "used", "there is no such file". */
typedef void find_looked_fn(void *context, const char *path, const char *what);

struct find {
	/* what to look for */
	struct worker *worker;
	struct cache *cache;       /* may be NULL */
	struct find_index *index;
	pid_t pid;                 /* a process that maps it, 0 = none alive */
	const char *path;          /* as that process sees it */
	const char *root;          /* the host's folder that is / of the path; NULL = / */
	const uint8_t *build_id;
	uint8_t build_id_size;
	uint64_t recorded_wall_ns; /* 0 = unknown */
	find_looked_fn *looked;    /* may be NULL */
	void *looked_context;
	const struct functions *known; /* functions of the module that the capture kept; may be NULL */
	bool no_dwarf;
	bool no_siblings;      /* do not look beside the file: that was in vain before */
	bool siblings_in_vain; /* find_files(): looked beside the file, and nothing was there */
	bool by_identity;      /* find.c's: a file of another build-id is not inspected */
	bool debuginfod;           /* ask servers; false afterwards when they do not answer */

	/* the result */
	int main, debug, alt;      /* -1 = none */
	struct source debug_from, alt_from;
	struct symbols_info main_info, debug_info;
	enum find_level level;
	char why[512];             /* a sentence about a refused file, "" = none was refused */
	struct find_entry *other;  /* debug (or main, where the module's file is gone) is another build: otherbuild.h */
	size_t agree, of;          /* so many functions of the module agree with it */
	const struct functions *functions; /* of the module, once they were asked for */
	struct functions read;     /* what it points to where that is the module's file */
};

/* main may be set already (a kept descriptor) and is then taken over. */
void find_files(struct find *f);
/* Opens the file that find_files would try first for main, without reading it; -1 = none. The caller
 * closes it. */
int find_open_main(const struct find *f);
void find_done(struct find *f);
/* The functions of the module: of its file, else those that the capture kept. Empty where neither is there. */
const struct functions *find_functions(struct find *f);
enum find_level find_level_of(const struct symbols_info *info, bool no_dwarf);

char *find_hex(char out[41], const uint8_t *build_id, uint8_t size);
