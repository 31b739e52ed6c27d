/*
 * start.h - what the commands that record have in common before they start: whom, and with which limits.
 */
#pragma once

#include <stdbool.h>

#include "target/proc.h"

struct err;
struct option_list;

struct start {
	struct proc_ids pids;
	char *label;  /* for the file name */
	char *target; /* as the user named it */
};

/* The processes of -p and of the operands. */
int start_find(struct start *s, const struct option_list *pids, char **names, int count, struct err *err);
void start_done(struct start *s);

void start_raise_limits(void);
/* Before others, or as before; the latter only after the former. */
void start_hurry(bool on);
