/*
 * codefiles.h - the files that have code in a process, each once, for collectors that put probes on files.
 *
 * A probe is on the file, so a file that two processes share, or that is mapped twice, is looked at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct err;

struct codefile {
	uint64_t device, inode;
};

struct codefiles {
	VEC(struct codefile) seen;
	bool hurry; /* the recording goes on meanwhile: what is not looked at within a moment comes next time */
};

/* Time limit of one file in a hurry: for worker_set_timeout(). */
#define CODEFILES_HURRY_NS 3000000000ULL

/* fd is the callee's during the call only. Negative: stop, which is returned. */
typedef int codefiles_fn(void *context, int fd, const char *path, struct err *err);

/* Takes 10 s at most, whatever the files are, or 0.5 s in a hurry, and what the last one takes. */
int codefiles_of_process(struct codefiles *c, pid_t pid, codefiles_fn *fn, void *context, struct err *err);
/* A program that is about to be executed; 0 when it cannot be read: exec will say why. */
int codefiles_of_program(struct codefiles *c, const char *path, codefiles_fn *fn, void *context, struct err *err);
void codefiles_done(struct codefiles *c);
