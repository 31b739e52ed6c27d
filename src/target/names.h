/*
 * names.h - processes by what they go by: a name (comm, the base name of the program, of the first word of the command
 * line, of a script), or a pattern of the command line. For resolve.c.
 *
 * gasflame itself and its ancestors are none of them.
 */
#pragma once

#include <sys/types.h>

#include "base/vec.h"
#include "target/proc.h"

struct err;

/* What a process goes by. */
struct candidate {
	pid_t pid;
	char comm[32];
	char *command, *program; /* program: base name of exe, "" if unreadable */
	char *script;            /* base name of the first argument that is not an option, "" if none */
	char *first;             /* base name of the first word of the command line */
};

struct candidates {
	VEC(struct candidate) list;
};

int candidates_read(struct candidates *ret);
void candidates_done(struct candidates *c);

/* These append to ret. */
void candidates_named(const struct candidates *all, const char *name, struct proc_ids *ret);
/* An extended regular expression; -EINVAL with why it is none. */
int candidates_pattern(const struct candidates *all, const char *pattern, struct proc_ids *ret, struct err *err);

/* The names nearest to one that nothing goes by: "; there is a, b". more are names of other things, NULL-terminated.
 */
void candidates_nearest(const struct candidates *all, const char *name, const char *const *more, char *out, size_t size);

const char *names_base(const char *path); /* its last part */
