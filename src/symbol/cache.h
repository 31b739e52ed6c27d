/*
 * cache.h - resolved symbols, below ${XDG_CACHE_HOME:-~/.cache}/gasflame.
 *
 * One flat folder, of the user behind sudo where there is one, mode 0700; a
 * folder that belongs to another user is not used. Files appear whole (written
 * aside, then renamed), a damaged one is ignored and replaced, and the oldest
 * are removed when all of them exceed a gigabyte; files used by this run stay.
 *
 *	HEX-FILE-USER.names   resolved addresses of the file with that build ID
 *	HEX-FILE-USER.plain   its debug information, decompressed
 *	HEX.debuginfo         as a debuginfod server sent it
 *
 * A file chooses its own build ID. So FILE is its device and inode, and names
 * are stored with the identity of the files that they were made from (source.h),
 * none of which may have changed; and USER is the owner of the process, so that
 * one user's program cannot supply names for another's.
 */
#pragma once

#include <stdint.h>

#include "elf/packedsymbols.h"
#include "symbol/source.h"

struct cache;

/* NULL where no folder can be used. */
struct cache *cache_open(void);
/* The folder alone, made if it was not there: a descriptor, or -1. */
int cache_open_folder(void);
void cache_close(struct cache *c); /* drops the oldest files; NULL is fine */

/* The sources of the names: the module's file, its debug file, the dwz supplement. */
enum { CACHE_SOURCES = 3 };

/* Resolved addresses, sorted. level says how much the files contain (find.h). */
struct cache_names {
	char *data;
	struct packedsymbols names;
	uint32_t level;
	struct source sources[CACHE_SOURCES];
};
int cache_read_names(struct cache *c, const char *name, struct cache_names *ret); /* -ENOENT: none */
void cache_names_done(struct cache_names *n);
int cache_write_names(struct cache *c, const char *name, uint32_t level, const struct source *sources,
		      const struct packedsymbols_builder *b);

/* A whole file, for reading, or -errno. */
int cache_open_file(struct cache *c, const char *name);
/* A new file, for reading and writing, under a name that cache_keep_file makes final. */
struct cache_new {
	int fd;
	char name[64];
};
int cache_create_file(struct cache *c, struct cache_new *ret);
int cache_keep_file(struct cache *c, struct cache_new *f, const char *name); /* f->fd stays open */
void cache_drop_file(struct cache *c, struct cache_new *f);                  /* f->fd stays open */
uint64_t cache_free_bytes(const struct cache *c); /* on its disk */
void cache_remove_file(struct cache *c, const char *name);
