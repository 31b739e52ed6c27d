/*
 * start.h - shared setup of the commands that record: the targets, and the limits.
 */
#pragma once

#include <stdbool.h>

#include "base/vec.h"
#include "target/resolve.h"

struct err;
struct option_list;

struct start {
	struct proc_ids pids;
	char *label;  /* for the file name */
	char *target; /* as the user named it */
	VEC(struct target_found) found; /* what each name stands for */
};

/* The processes of -p and of the operands. */
int start_find(struct start *s, const struct option_list *pids, char **names, int count, struct err *err);
void start_done(struct start *s);

/* Finds the one process that a name stands for: of a container the one that is no --init wrapper. Where
 * there are several, the message lists them. The caller frees the label; NULL: none is wanted. */
int start_find_one(const char *name, pid_t *ret, char **ret_label, struct err *err);

/* Reports in a line what a name stands for, unless it is a pid, and the sources that failed. */
void start_say(const char *name, const struct target_found *f);

/* Keeps only the rights that are needed from here on (sandbox/privilege.h). output: the file that is being or will
 * be written, NULL = none. hooks: targets are changed (-e heap). */
void start_settle(const char *output, bool hooks);
/* The recording is over. */
void start_settle_more(const char *output);

void start_raise_limits(void);
/* Before others, or as before; the latter only after the former. */
void start_hurry(bool on);
