/*
 * taskfiles.h - the programs and libraries with tokio in them: their types of tasks, and probes where these are spawned.
 *
 * A file is looked at once, whichever process has mapped it. A probe is on the file: other processes that run the same one
 * pass it, too, and are not recorded.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/vec.h"
#include "elf/tokio/tokio.h"

struct proc_mapping;
struct session;
struct taskstate;
struct uprobes;

struct taskfile {
	uint64_t device, inode;
	int fd;                       /* open until its probes are attached */
	struct tokio_program program; /* count 0: there is no tokio in it */
	uint32_t *types;              /* of taskstate, for each vtable */
	struct uprobes *probes;
	bool attached;                /* or tried to */
};

/* A place where tasks are spawned. */
struct taskplace {
	uint32_t type;
	uint32_t stack; /* the profile's: the last one that was walked, 0 = none was */
};

struct taskfiles {
	VEC(struct taskfile *) list;
	VEC(struct taskplace) places; /* by cookie */
	size_t used;                  /* files with tokio */
	bool given_up;                /* spawns are too many to be told */
	struct err refused;           /* why a file with tokio could not be used; 0 = there is none */
};

/* The file behind a mapping; NULL: it has no tokio that is known. */
const struct taskfile *taskfiles_get(struct taskfiles *f, struct session *s, struct taskstate *state, pid_t pid,
				     const struct proc_mapping *m);
/* A program that is about to be executed is looked at before, so that it does not get far without hooks. */
void taskfiles_foresee(struct taskfiles *f, struct session *s, struct taskstate *state, const char *path);
/* Puts the probes where they are not yet. Hooks are active before: a spawn that is told is followed by a poll that is. */
void taskfiles_attach(struct taskfiles *f, struct session *s, struct taskstate *state);
void taskfiles_detach(struct taskfiles *f);
void taskfiles_done(struct taskfiles *f);
