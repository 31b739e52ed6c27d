/*
 * namecache.h - resolved symbols in the cache folder (base/file/cache.h).
 *
 * A file chooses its own build ID. So FILE in the name of an entry is its device
 * and inode, and names are stored with the identity of the files that they were
 * made from (source.h), none of which may have changed; and USER is the owner of
 * the process, so that one user's program cannot supply names for another's. A
 * damaged entry is ignored and removed.
 */
#pragma once

#include <stdint.h>

#include "elf/packedsymbols.h"
#include "symbol/source.h"

struct cache;

/* The sources of the names: the module's file, its debug file, the dwz supplement. */
enum { CACHE_SOURCES = 3 };

/* Resolved addresses, sorted. level says how much the files contain (find.h). */
struct namecache {
	char *data;
	struct packedsymbols names;
	uint32_t level;
	struct source sources[CACHE_SOURCES];
};
int namecache_read(struct cache *c, const char *name, struct namecache *ret); /* -ENOENT: none */
void namecache_done(struct namecache *n);
int namecache_write(struct cache *c, const char *name, uint32_t level, const struct source *sources,
		      const struct packedsymbols_builder *b);
