/*
 * confine.h - a process that reads strangers' files takes away its own rights before it reads the first byte.
 *
 * Afterwards it has no capability but those named, and cannot get any; it opens files for reading only, but
 * below the folders named; it starts no program but itself; it has no network but what is named; it cannot
 * look into other processes, load anything into the kernel, or change owners and rights of files.
 *
 * Where the kernel has no Landlock the file system stays as it is for this user; the rest holds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

enum { CONFINE_FOLDERS = 16 };

struct confine {
	uint64_t capabilities;               /* that stay, RIGHTS_BIT() each */
	const char *writes[CONFINE_FOLDERS]; /* folders in which files are made, changed and removed */
	size_t write_count;
	const char *removes[CONFINE_FOLDERS]; /* folders in which files are only removed */
	size_t remove_count;
	bool listen;  /* for connections from others */
	bool connect; /* to others */
};

/* Is there Landlock? */
bool confine_has_landlock(void);
/* Before the first thread starts. ret_held, which may be NULL, gets what holds now, in words. 0, or a negative
 * errno with a sentence: then nothing must be read. */
int confine_enter(const struct confine *c, struct buf *ret_held, struct err *err);
