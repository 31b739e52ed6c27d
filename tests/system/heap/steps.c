/*
 * steps.c TARGET IMPLANTS HOW FIRST EVERY - ends an attach at each of its system calls, and looks what that leaves.
 *
 * TARGET is the program heapbad, IMPLANTS is implants.c, which puts the heap's hooks into a process and takes them out.
 * It is run again and again, each time with a new target, and killed when it, or a child of it, begins with the
 * FIRST, FIRST + EVERY, ... system call. HOW: "parent" kills only itself, "group" all of its process group, as Ctrl-C
 * and a service manager do. What is left must be a target that nobody holds, that works, whose slots can be put back,
 * and that can be attached to again. Prints one line; ends with 1 when one of these was not so.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/heap/implant.h"
#include "target/proc.h"

#include "loaded.h"

/* As <linux/ptrace.h> has it, which does not go with <sys/ptrace.h>. */
#define GET_SYSCALL_INFO 0x420e
enum { INFO_ENTRY = 1, WORK_MS = 20000 };

static pid_t start_traced(const char *program, pid_t target, const char *how)
{
	char number[16];
	pid_t pid = fork();

	if (pid)
		return pid;
	setpgid(0, 0);
	if (!freopen("/dev/null", "w", stdout) || ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
		_exit(126);
	raise(SIGSTOP);
	snprintf(number, sizeof(number), "%d", target);
	execl(program, program, number, how, "1", NULL);
	_exit(127);
}

static bool is_entry(pid_t pid)
{
	uint8_t info[128] = { 0 };

	return ptrace(GET_SYSCALL_INFO, pid, (void *)sizeof(info), info) > 0 && info[0] == INFO_ENTRY;
}

/* Goes through all of it, and kills at that system call; at: 0 never. How many there were until then. */
static long run(pid_t traced, long at, bool group)
{
	long n = 0;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
		int signal = 0;

		if (!WIFSTOPPED(status))
			continue;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			n += is_entry(pid);
			if (at && n == at) {
				kill(group ? -traced : traced, SIGKILL);
				at = -1; /* the rest goes on */
			}
		} else if (!(status >> 16) && WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
			signal = WSTOPSIG(status);
		}
		ptrace(PTRACE_SETOPTIONS, pid, 0,
		       PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC);
		ptrace(at < 0 ? PTRACE_CONT : PTRACE_SYSCALL, pid, 0, signal);
	}
	return n;
}

/* In a child that has no others than those it traces: it sees the end of the last one. */
static long run_apart(char **argv, pid_t target, long at)
{
	int ends[2];
	long n = -1;
	pid_t child;

	if (pipe(ends) < 0)
		return -1;
	child = fork();
	if (!child) {
		close(ends[0]);
		n = run(start_traced(argv[2], target, "cycle"), at, !strcmp(argv[3], "group"));
		_exit(write(ends[1], &n, sizeof(n)) != sizeof(n));
	}
	close(ends[1]);
	if (read(ends[0], &n, sizeof(n)) != sizeof(n))
		n = -1;
	close(ends[0]);
	waitpid(child, NULL, 0);
	return n;
}

static int fail(const char *what, long at, const struct err *err)
{
	printf("at system call %ld: %s %s\n", at, what, err ? err->text : "");
	return 1;
}

static bool works(pid_t pid)
{
	struct proc_stat before, now;

	if (proc_stat(pid, &before) < 0)
		return false;
	for (int i = 0; i < WORK_MS; i++) {
		if (proc_stat(pid, &now) < 0 || now.state == 'Z')
			return false;
		if (now.cpu_ns > before.cpu_ns)
			return true;
		usleep(1000);
	}
	return false;
}

/* What a dead gasflame left is found and put back. */
static int tidy(pid_t pid, long at)
{
	struct err err = { 0 };
	struct implant *i;
	int r = implant_open(pid, NULL, &i, &err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return fail("cannot open what is left:", at, &err);
	r = implant_unhook(i, &err);
	if (!r)
		r = implant_hooked(i);
	implant_close(i);
	return r ? fail("slots are left:", at, &err) : 0;
}

static int attach_again(const char *implants, pid_t target, long at)
{
	pid_t pid = start_traced(implants, target, "cycle");
	int status = 0;

	if (waitpid(pid, &status, 0) != pid || ptrace(PTRACE_DETACH, pid, 0, 0) < 0 || waitpid(pid, &status, 0) != pid || status)
		return fail("cannot be attached to again", at, NULL);
	return 0;
}

static int try(char **argv, long at, long *ret_calls)
{
	pid_t target = loaded_start(argv[1]);
	int r = 0, status;

	if (target < 0)
		return fail("the target does not start", at, NULL);
	*ret_calls = run_apart(argv, target, at);
	if (*ret_calls < 0 || !works(target))
		r = fail("the target does not go on", at, NULL);
	r = r ?: tidy(target, at);
	r = r ?: attach_again(argv[2], target, at);
	if (!r && !works(target))
		r = fail("the target does not go on after it was attached to again", at, NULL);
	kill(target, SIGKILL);
	waitpid(target, &status, 0);
	return r;
}

int main(int argc, char **argv)
{
	long first = argc > 4 ? atol(argv[4]) : 0, every = argc > 5 ? atol(argv[5]) : 0, all, calls, points = 0;
	uint64_t begin = clock_mono_ns();
	int r;

	if (first < 1 || every < 1)
		return 2;
	r = try(argv, 0, &all);
	for (long at = first; at <= all && !r; at += every) {
		r = try(argv, at, &calls);
		points++;
	}
	printf("%ld of %ld system calls, %.0f s\n", points, all, (clock_mono_ns() - begin) / 1e9);
	return r;
}
