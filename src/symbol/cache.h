/*
 * cache.h - what was found before, below ${XDG_CACHE_HOME:-~/.cache}/gasflame.
 *
 * One flat folder, of the user behind sudo where there is one, mode 0700; a
 * folder that belongs to someone else is not used. Files appear whole (written
 * aside, then renamed), a damaged one is ignored and replaced, and the oldest
 * go when all of them pass a gigabyte; those used by this run stay.
 *
 *	HEX.names       resolved addresses of the binary with that build-id
 *	HEX.plain       its debug information, decompressed
 *	HEX.debuginfo   as a debuginfod server sent it
 *
 * The build-id is the key: whoever gives two different programs one build-id
 * (--build-id=0x...) gets the names of the first.
 */
#pragma once

#include <stdint.h>

#include "elf/names.h"

struct cache;
struct err;

/* NULL where no folder can be used. */
struct cache *cache_open(void);
void cache_close(struct cache *c); /* drops the oldest files; NULL is fine */

/* Resolved addresses, sorted. level says what they were made from (find.h). */
struct cache_names {
	char *data;
	struct names names;
	uint32_t level;
};
int cache_read_names(struct cache *c, const char *name, struct cache_names *ret); /* -ENOENT: none */
void cache_names_done(struct cache_names *n);
int cache_write_names(struct cache *c, const char *name, uint32_t level, const struct names_builder *b);

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
