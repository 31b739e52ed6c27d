/*
 * processnames.h - finds processes by a name (comm, the base name of the program, of the first word of the command line, of
 * the script that an interpreter runs), or by a pattern of the command line. For resolve.c.
 *
 * An argument is no name: `su postgres` is not postgres. gasflame itself and its ancestors are never found.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/vec.h"
#include "target/proc.h"

struct err;

/* The names of a process. */
struct candidate {
	pid_t pid;
	char comm[32];
	char *command, *program; /* program: base name of exe, "" if unreadable */
	char *script;            /* base name of the script that an interpreter runs, "" if none */
	char *first;             /* base name of the first word of the command line */
	bool carries;            /* its arguments are another program's command line: su, sudo, sh -c */
};

struct candidates {
	VEC(struct candidate) list;
};

int candidates_read(struct candidates *ret);
void candidates_done(struct candidates *c);

/* These append to ret. */
void candidates_named(const struct candidates *all, const char *name, struct proc_ids *ret);
/* An extended regular expression; -EINVAL with why it is none. With ret_carrier, processes that carry another's command
 * line are left out; *ret_carrier is set to one of them, if any matched. */
int candidates_pattern(const struct candidates *all, const char *pattern, struct proc_ids *ret, pid_t *ret_carrier,
		       struct err *err);

/* Lists the names nearest to one that matched nothing: "; there is a, b". more are names of other things,
 * NULL-terminated. */
void candidates_nearest(const struct candidates *all, const char *name, const char *const *more, char *out, size_t size);

const char *processnames_base(const char *path); /* its last part */
/* Returns the base name of the script in the command line of an interpreter; "" where program is none or
 * the script is missing. *ret_code: there is code in its place, as after sh -c. The caller frees it. */
char *processnames_script(const char *program, const char *command, bool *ret_code);
