/*
 * cache.h - the cache folder, ${XDG_CACHE_HOME:-~/.cache}/gasflame: files that can be made again.
 *
 * One flat folder, of the user behind sudo where there is one, mode 0700; a
 * folder that belongs to another user is not used. Files appear whole (written
 * aside, then renamed), and the oldest are removed when all of them exceed a
 * gigabyte; files used by this run stay.
 *
 *	HEX-FILE-USER.names   resolved addresses (symbol/namecache.h)
 *	HEX-FILE-USER.plain   decompressed debug information
 *	HEX.debuginfo         as a debuginfod server sent it
 *	FILE.table            an unwind table (collect/process/tablecache.h)
 *
 * The user behind sudo can write any bytes into these files: whoever reads one
 * checks it as it would check a file of the target.
 */
#pragma once

#include <stdint.h>

struct cache;

/* NULL where no folder can be used. */
struct cache *cache_open(void);
/* The folder alone, made if it was not there: a descriptor, or -1. */
int cache_open_folder(void);
void cache_close(struct cache *c); /* drops the oldest files if this run made some; NULL is fine */

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
