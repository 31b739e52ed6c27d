/*
 * jitfiles.h - the perf maps and jitdumps of recorded processes, held open.
 *
 * A run time may write its map minutes after the recording began (jcmd), at its very end, or in the
 * /tmp of a container that is gone by the time frames are named. So, while a process lives, its folders
 * (/tmp, TMPDIR, .NET's own setting) and its files are opened as soon as they are seen, and kept.
 *
 * /tmp is everybody's: a map counts only if the user of the process or root wrote it, and a link in its
 * place is not followed. A dump is opened through the process's own mapping of it.
 *
 *	f = jitfiles_new();
 *	while (recording) jitfiles_look(f, p);      about once a second
 *	x = jitfiles_of(f, p, process);             also of a process that was never looked at
 *	jitfiles_free(f);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct profile;

enum { JITFILES_FOLDERS = 3 };

/* A folder that a map may be in. */
struct jitfiles_folder {
	int folder;       /* O_PATH */
	char *path;       /* of the map, as the process sees it */
	int map;          /* -1: none was seen */
	uint64_t inode, size, changed_ns; /* of map, when it was last looked at */
	bool refused;     /* there is one, of another user */
};

struct jitfiles_dump {
	int fd;
	char *path;
	uint64_t device, inode, size;
};

struct jitfiles_process {
	uint32_t process;     /* of the profile */
	pid_t pid;            /* 0: it has ended */
	uint64_t start_ticks;
	pid_t number;         /* in names of files: its pid as its own namespace counts */
	uid_t uid, euid;
	bool owner_known;
	struct jitfiles_folder folders[JITFILES_FOLDERS];
	unsigned folder_count;
	VEC(struct jitfiles_dump) dumps;
};

struct jitfiles;
struct jitfiles *jitfiles_new(void);
void jitfiles_free(struct jitfiles *f);
/* Opens what is new. Returns true if a file of any process is new or has grown since the last call. */
bool jitfiles_look(struct jitfiles *f, const struct profile *p);
/* The files of a process, looked at once more; NULL: nothing is known of it. Belongs to f, until the next call. */
const struct jitfiles_process *jitfiles_of(struct jitfiles *f, const struct profile *p, uint32_t process);
/* A dump that a process mapped, which was opened when it did; fd stays the caller's. */
void jitfiles_add_dump(struct jitfiles *f, const struct profile *p, uint32_t process, const char *path, int fd);

/* Is it the name of a dump (.../jit-123.dump)? Returns the number in it, 0 = no. */
pid_t jitfiles_dump_number(const char *path);
