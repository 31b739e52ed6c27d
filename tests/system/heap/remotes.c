/*
 * remotes.c PID TIMES SECONDS - stops a thread of a process, has it make a system call, and lets it go on, so many times,
 * or fewer where that takes longer than so many seconds.
 *
 * That is the part of -e heap that happens once for each process, alone. Prints one line: how often that was done,
 * refused and tried in vain, and the first reason for either; ends with 1 when the process is gone.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/inject/ptracecall.h"

int main(int argc, char **argv)
{
	pid_t pid = argc > 1 ? atoi(argv[1]) : 0;
	int times = argc > 2 ? atoi(argv[2]) : 0, done = 0, refused = 0, failed = 0;
	uint64_t until = clock_mono_ns() + (argc > 3 ? atoi(argv[3]) : 0) * 1000000000ULL;
	struct err first = { 0 };

	if (pid <= 0 || times <= 0 || argc != 4)
		return 2;
	for (int i = 0; i < times && clock_mono_ns() < until && kill(pid, 0) == 0; i++) {
		struct err err = { 0 };
		struct ptracecall r;

		if (ptracecall_stop(&r, pid, &err) < 0) {
			refused++;
			if (!first.code)
				first = err;
			continue;
		}
		if (ptracecall_call(&r, SYS_memfd_create, 0, ~0ULL, 0, 0, 0, 0) ==
		    -EINVAL) /* filters dislike it; it changes nothing */
			done++;
		else
			failed++;
		ptracecall_go(&r);
		usleep(200);
	}
	printf("%d times, %d refused, %d in vain %s\n", done, refused, failed, first.text);
	return kill(pid, 0) < 0;
}
