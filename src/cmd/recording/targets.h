/*
 * targets.h - what the commands that record have in common before they start: the processes that are meant.
 */
#pragma once

#include "base/vec.h"
#include "target/resolve.h"

struct err;
struct option_list;

struct targets {
	struct proc_ids pids;
	char *label;  /* for the file name */
	char *target; /* as the user named it */
	VEC(struct target_found) found; /* what each name stands for */
};

/* The processes of -p and of the operands. */
int targets_find(struct targets *s, const struct option_list *pids, char **names, int count, struct err *err);
void targets_done(struct targets *s);

/* Finds the one process that a name stands for: of a container the one that is no --init wrapper. Where
 * there are several, the message lists them. The caller frees the label; NULL: none is wanted. */
int targets_find_one(const char *name, pid_t *ret, char **ret_label, struct err *err);

/* Reports in a line what a name stands for, unless it is a pid, and the sources that failed. */
void targets_say(const char *name, const struct target_found *f);
