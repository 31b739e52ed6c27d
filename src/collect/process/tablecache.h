/*
 * tablecache.h - unwind tables and layouts of files that were read before, in the cache folder
 * (base/file/cache.h).
 *
 * Making the table of a program of 100 MB takes seconds. An entry is named after
 * the device and the inode of the file, and holds its identity: size, time of the
 * last write, and time of the last change of the inode, which the owner of a file
 * cannot set. A file without a name, as of a memfd, has no entry. The entry of
 * another build of gasflame, which may make other tables, is not used.
 *
 * The folder may belong to the user behind sudo, so that an entry is as little
 * trusted as the unprivileged child: it is checked in the same way before it is
 * used. The worst that a forged one can do is to cut stacks off or to show wrong
 * callers, to the user who forged it.
 *
 * One thread uses it. NULL is a cache that has nothing and keeps nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tablecache;
struct unwind_table;
struct worker_layout;

struct tablecache *tablecache_open(void); /* NULL where there is no folder */
void tablecache_close(struct tablecache *c);

/* A file, as the kernel tells it. */
struct tablecache_file {
	uint64_t device, inode, size, modified_ns, changed_ns;
	uint64_t lasting; /* 1: it can be found again, and was not changed just now */
};
struct tablecache_file tablecache_file(int fd);
/* Of a small file without a name that holds an image of the kernel's own, the vDSO: told by its bytes. */
struct tablecache_file tablecache_image(int fd);

/* Finds what is known of the file. On success the caller calls unwind_done(ret_table). */
bool tablecache_find(struct tablecache *c, const struct tablecache_file *file, struct worker_layout *ret_layout,
		     struct unwind_table *ret_table);
/* Keeps what was read. before: the file, or image, as it was before it was read; one that changed meanwhile is not kept. Errors are
 * not told: the table is made again the next time. */
void tablecache_keep(struct tablecache *c, int fd, const struct tablecache_file *before, const struct worker_layout *layout,
		     const struct unwind_table *table);
