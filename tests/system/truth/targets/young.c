/*
 * young.c [milliseconds=3] [rounds=0] - lives for a moment: two thirds of its CPU time in young_long, one in young_short.
 *
 * With rounds it starts itself so often, in turn as programs do it: fork and exec, vfork and exec, exec from another
 * thread than the first, and fork alone. With -1 rounds it does nothing but call a function of a library.
 */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../truth.h"

static volatile uint64_t sink;
static char *self[3];

static NOINLINE void young_long(double end)
{
	while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < end)
		sink += spin(20000);
}

static NOINLINE void young_short(double end)
{
	while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < end)
		sink += spin(20001);
}

static NOINLINE void live(double seconds)
{
	double start = seconds_of(CLOCK_THREAD_CPUTIME_ID);

	young_long(start + seconds * 2 / 3);
	young_short(start + seconds);
}

static NOINLINE void young_calls(double end)
{
	double last = 0;

	while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 1000; i++)
			last += seconds_of(CLOCK_MONOTONIC);
	sink = last;
}

static void *exec_self(void *unused)
{
	execv("/proc/self/exe", self);
	_exit(1);
	return unused;
}

static void exec_from_a_thread(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, exec_self, NULL))
		pthread_join(thread, NULL);
	_exit(1);
}

/* By itself: what a function with vfork() keeps in variables may be lost. */
static NOINLINE pid_t start_by_vfork(void)
{
	pid_t pid = vfork();

	if (!pid) {
		execv("/proc/self/exe", self);
		_exit(1);
	}
	return pid;
}

static NOINLINE pid_t start_by_fork(int how, double seconds)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (how == 0)
		exec_self(NULL);
	if (how == 1)
		exec_from_a_thread();
	live(seconds);
	_exit(0);
}

int main(int argc, char **argv)
{
	double seconds = argument(argc, argv, 1, 3) / 1000;
	int rounds = argument(argc, argv, 2, 0);

	self[0] = argv[0];
	self[1] = argc > 1 ? argv[1] : NULL;
	if (rounds < 0)
		young_calls(seconds_of(CLOCK_THREAD_CPUTIME_ID) + seconds);
	if (!rounds)
		live(seconds);
	for (int i = 0; i < rounds; i++) {
		pid_t pid = i % 4 == 3 ? start_by_vfork() : start_by_fork(i % 4, seconds);

		if (pid < 0)
			return 1;
		waitpid(pid, NULL, 0);
	}
	return 0;
}
