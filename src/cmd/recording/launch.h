/*
 * launch.h - the program that `run` starts, held back until it is recorded.
 *
 * Life: launch_start (it waits just before its exec) -> launch_go -> launch_poll
 * or launch_wait -> launch_done. A program that is not let go ends with us.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct err;

struct launch {
	pid_t pid;
	int gate;   /* closing it without a byte lets the child give up */
	int failed; /* says why exec did not work */
	int status; /* as of waitpid */
	bool ended;
	int output;   /* with listen: the program's output; -1 = none. Its taker sets it to -1 */
	pid_t copier; /* passes its output on to ours; it lives as long as a process has it open */
};

/* The file that argv[0] will be executed from, found as execvp does: absolute, without links. Caller frees; NULL with err if there is none. */
char *launch_find(const char *program, struct err *err);
/* listen: a copier passes the program's output on to ours, and also to l->output. */
int launch_start(struct launch *l, char **argv, bool listen, struct err *err);
/* The same for a function of ours, which the child calls; its result is the exit code. */
int launch_start_call(struct launch *l, int (*call)(void *context), void *context, struct err *err);
int launch_go(struct launch *l, struct err *err);
bool launch_poll(struct launch *l);  /* has it ended? */
void launch_wait(struct launch *l);  /* also, a moment, for the last of its output */
int launch_exit_code(const struct launch *l); /* 128 + signal where one killed it */
void launch_done(struct launch *l);
