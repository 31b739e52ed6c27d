/*
 * symbolfile.h - what is known of one ELF file: what it says of itself, by the child that reads it, and the debug files
 * that were found for it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "elf/buildfacts.h"
#include "elf/symbols.h"
#include "symbol/find.h"

struct buf;
struct cache;
struct err;
struct json;
struct worker;

/* How to look; all are borrowed. */
struct symbolfile_search {
	struct worker *worker;
	struct cache *cache;      /* may be NULL */
	struct find_index *index; /* of --symbols */
	bool fetch;               /* ask the servers of DEBUGINFOD_URLS; false afterwards when they do not answer */
};

struct symbolfile {
	char *path;
	uint64_t bytes;
	struct symbols_info info;
	struct buildfacts facts;
	uint64_t functions, covered_bytes, text_bytes; /* by the unwind information */
	uint32_t functions_from, overlapping;          /* as in struct functions */
	enum find_level level;    /* with what was found */
	char *debug, *alt;        /* paths of the files that were found, NULL = none */
	char other[640];          /* a sentence about another build that fits, "" = none */
	char why[512];            /* a sentence about what could not be used, "" = none */
	bool fetched;             /* servers were asked */
	VEC(char *) looked;       /* "path: what became of it" */
};

/* fd is the file itself and stays the caller's; pid: a process that maps it, 0 = none. */
int symbolfile_look(struct symbolfile_search *s, int fd, pid_t pid, const char *path, struct symbolfile *ret,
		    struct err *err);
void symbolfile_done(struct symbolfile *f);
void symbolfile_print(const struct symbolfile *f, struct buf *out);
void symbolfile_json(const struct symbolfile *f, struct json *j);
/* What the names are from, in a few words: "symbol table, lines and inlined calls". */
const char *symbolfile_names(enum find_level level);
