/*
 * cache.h - what was found before, below ${XDG_CACHE_HOME:-~/.cache}/gasflame.
 *
 * One flat folder, of the user behind sudo where there is one, mode 0700; a
 * folder that belongs to someone else is not used. Files appear whole (written
 * aside, then renamed), a damaged one is ignored and replaced, and the oldest
 * go when all of them pass a gigabyte; those used by this run stay.
 *
 *	HEX-FILE-USER.names   resolved addresses of the file with that build-id
 *	HEX-FILE-USER.plain   its debug information, decompressed
 *	HEX.debuginfo         as a debuginfod server sent it
 *
 * A build-id is what a file says of itself. So FILE is its device and inode, and
 * names are stored with all that tells the files apart that they were made from
 * (source.h), none of which may have changed; and USER is whose process it was,
 * so that nothing that one user's program left is shown for another's.
 */
#pragma once

#include <stdint.h>

#include "elf/names.h"
#include "symbol/source.h"

struct cache;
struct err;

/* NULL where no folder can be used. */
struct cache *cache_open(void);
/* The folder alone, made if it was not there: a descriptor, or -1. */
int cache_open_folder(void);
void cache_close(struct cache *c); /* drops the oldest files; NULL is fine */

/* What they were made from: the module's file, its debug file, what dwz shared. */
enum { CACHE_SOURCES = 3 };

/* Resolved addresses, sorted. level says what the files can tell (find.h). */
struct cache_names {
	char *data;
	struct names names;
	uint32_t level;
	struct source sources[CACHE_SOURCES];
};
int cache_read_names(struct cache *c, const char *name, struct cache_names *ret); /* -ENOENT: none */
void cache_names_done(struct cache_names *n);
int cache_write_names(struct cache *c, const char *name, uint32_t level, const struct source *sources,
		      const struct names_builder *b);

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
