/*
 * loaded.h - a target that allocates all the time: truth-heapbad with two threads of load.
 */
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Starts the program and waits until it works; it ends with us. -1: it cannot be started. */
static inline pid_t loaded_start(const char *program)
{
	int ends[2];
	char ready;
	pid_t pid;

	if (pipe(ends) < 0)
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execl(program, program, "load", "2", NULL);
		_exit(127);
	}
	close(ends[1]);
	if (read(ends[0], &ready, 1) != 1)
		pid = -1;
	close(ends[0]);
	return pid;
}
