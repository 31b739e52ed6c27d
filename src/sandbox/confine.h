/*
 * confine.h - a process that reads untrusted files drops its own rights before it reads the first byte.
 *
 * Afterwards it has only the capabilities named, and cannot get others; it opens files for reading only,
 * except below the folders named; it executes no program but itself; it has no network but the ports named;
 * it cannot read other processes, load anything into the kernel, or change owners and modes of files.
 *
 * Where the kernel has no Landlock, file access stays as it is for this user; the other limits hold.
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
	bool moves; /* files are moved and linked from one of their folders to another. Before Linux 5.19 Landlock cannot allow that, and is left out */
	const char *removes[CONFINE_FOLDERS]; /* folders in which files are only removed */
	size_t remove_count;
	bool listen;  /* for connections from others */
	bool connect; /* to others */
	bool terminal; /* its modes are changed */
};

/* Returns whether the kernel has Landlock. */
bool confine_has_landlock(void);
/* Call it before the first thread starts. ret_held, which may be NULL, gets the limits in force, in words.
 * 0, or a negative errno with a sentence: then nothing must be read. */
int confine_enter(const struct confine *c, struct buf *ret_held, struct err *err);
