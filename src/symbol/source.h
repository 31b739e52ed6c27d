/*
 * source.h - identifies the files that names were made from: cached names are valid only for the same
 * files.
 *
 * A file chooses its own build ID, so its owner can forge it. A file is the same when its device,
 * inode, size, owner and both times are: the owner of a file cannot set the time of the last change of
 * its inode.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum source_where {
	SOURCE_NONE,   /* there was no such file */
	SOURCE_MAIN,   /* the module's own, wherever it is */
	SOURCE_TARGET, /* path, as the process sees it */
	SOURCE_HOST,   /* path */
	SOURCE_SERVER, /* from a server that the user named, by build-id */
	SOURCE_LOST,   /* the file cannot be identified again */
};

/* As the cache stores it. */
struct source {
	uint32_t where, uid;
	uint64_t device, inode, size, modified_ns, changed_ns;
	char path[512];
};
_Static_assert(sizeof(struct source) == 48 + 512, "no padding");

struct source source_of(enum source_where where, int fd, const char *path);
/* Is the file still there, and the same? pid: for SOURCE_TARGET, 0 = none. */
bool source_holds(const struct source *s, pid_t pid);
bool source_same(const struct source *a, const struct source *b);
