/*
 * implants.c PID HOW TIMES - puts the heap's hooks into a process and takes them out again, many times.
 *
 * HOW: "cycle" does that to the end each time; "kill" has a child do it, which is killed at a random
 * moment, and puts in order what that leaves; "die" takes the path of a program (heapbad) in place of a PID, and
 * it is the target that is killed: we must end, not crash, and soon. Prints one line: times, the longest stop in
 * microseconds, how many slots there were, and ends with 1 when the process died or a slot was left behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/heap/blob/blob.h"
#include "collect/heap/implant.h"
#include "elf/worker/worker.h"

#include "loaded.h"

static struct worker *worker;
static uint64_t longest_ns;
static int most;

static int fail(const char *what, const struct err *err)
{
	printf("%s: %s\n", what, err->text);
	return 1;
}

/* One whole use. */
static int cycle(pid_t pid, unsigned work_us)
{
	struct err err = { 0 };
	struct implant *i;
	int slots;

	if (implant_open(pid, worker, &i, &err) < 0)
		return fail("open", &err);
	if (implant_stopped_ns(i) > longest_ns)
		longest_ns = implant_stopped_ns(i);
	slots = implant_hook(i, worker, &err);
	if (slots <= 0)
		return fail("hook", &err);
	if (slots > most)
		most = slots;
	if (implant_activate(i, 64 << 10, &err) < 0)
		return fail("activate", &err);
	usleep(work_us);
	if (implant_unhook(i, &err))
		return fail("a slot is left", &err);
	implant_close(i);
	return 0;
}

/* What a dead gasflame left is found and put back. */
static int tidy(pid_t pid)
{
	struct err err = { 0 };
	struct implant *i;
	int r;

	/* Its child may still be at work. */
	for (int tries = 0;; tries++) {
		r = implant_open(pid, NULL, &i, &err);
		if (r != -EBUSY || tries > 1000)
			break;
		usleep(1000);
	}
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return fail("after a kill", &err);
	r = implant_unhook(i, &err);
	implant_close(i);
	return r ? fail("a slot is left", &err) : 0;
}

static int killed(pid_t pid)
{
	pid_t child = fork();
	int r;

	if (!child) {
		worker = worker_new();
		_exit(cycle(pid, 2000));
	}
	usleep(random() % 60000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	r = tidy(pid);
	usleep(1000);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		; /* what it left: its own worker, the child that stops threads */
	return r;
}

/* Waits for a child, but not for ever. -1: it was still there, and is killed. */
static int wait_limited(pid_t child, int seconds)
{
	int status = -1;

	for (int i = 0; i < seconds * 100; i++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return status;
		usleep(10000);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return -1;
}

static int died(const char *program)
{
	pid_t target = loaded_start(program), child;
	int status;

	if (target < 0)
		return fail("cannot start the program", &(struct err){ 0 });
	child = fork();
	if (!child) {
		/* What it says is that the process is gone. */
		if (!freopen("/dev/null", "w", stdout))
			_exit(2);
		worker = worker_new();
		for (int i = 0; i < 100 && !cycle(target, 1000); i++)
			;
		_exit(0);
	}
	usleep(random() % 40000);
	kill(target, SIGKILL);
	status = wait_limited(child, 20);
	waitpid(target, NULL, 0);
	if (status) {
		printf("when the target died we ended with %x\n", status);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	pid_t pid = argc > 1 ? atoi(argv[1]) : 0;
	int times = argc > 3 ? atoi(argv[3]) : 0, status = 0;

	if (times <= 0 || (pid <= 0 && strcmp(argv[2], "die")))
		return 2;
	srandom(getpid());
	/* Children of those that are killed come to us. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int k = 0; k < times && !strcmp(argv[2], "die"); k++) {
		status = died(argv[1]);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (status || k == times - 1) {
			printf("%d times\n", k + 1);
			return status;
		}
	}
	worker = worker_new();
	for (int k = 0; k < times && !status; k++) {
		status = !strcmp(argv[2], "kill") ? killed(pid) : cycle(pid, 500);
		if (!status && kill(pid, 0) < 0) {
			printf("the process died after %d times\n", k + 1);
			status = 1;
		}
	}
	printf("%d times, longest stop %llu us, %d slots\n", times, (unsigned long long)longest_ns / 1000, most);
	worker_free(worker);
	return status;
}
