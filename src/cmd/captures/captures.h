/*
 * captures.h - the captures below a folder, for ls, clean and the default of other commands (newest.h).
 *
 * Folders are walked by descriptor and symbolic links are never followed, so the walk stays below the
 * given folder even while others rename things. A capture is recognized by its content, not by its
 * name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

#define CAPTURES_FOLDER "profiling"

struct captures_entry {
	int folder;        /* descriptor of its folder, valid during the call */
	const char *name;  /* in the folder */
	const char *path;  /* for people, and to open: root/.../name */
	uid_t owner;
	dev_t device;      /* with inode: the very file that was found to be a capture */
	ino_t inode;
	uint64_t bytes;    /* with its journal */
	uint64_t mtime_ns; /* of the file or its journal, whichever is later */
};

/* Something other than 0 ends the walk and is returned. */
typedef int captures_fn(void *context, const struct captures_entry *e);
/* Called after a folder below the root was walked, when fn had any entry in it or below it. */
typedef void captures_left_fn(void *context, int parent, const char *name, const char *path);

enum captures_how {
	CAPTURES_FOLLOW = 1, /* root may be a symbolic link; without this it is -ELOOP */
	CAPTURES_FLAT = 2,   /* not the folders below root */
};

/* how: of enum captures_how. left may be NULL. */
int captures_walk(const char *root, unsigned how, captures_fn *fn, captures_left_fn *left, void *context,
		  struct err *err);
/* The captures of this folder and of all below profiling/, where record writes: those that a command without a file
 * chooses from. A folder that cannot be read has none. */
void captures_walk_here(captures_fn *fn, void *context);
/* Does a recorder, another process, have this capture open? */
bool captures_in_use(const struct captures_entry *e);
