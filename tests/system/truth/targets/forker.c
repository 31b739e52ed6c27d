/* forker.c [seconds] - children and threads that work and go, one after the other. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../truth.h"

static volatile uint64_t sink;

static NOINLINE void child_burn(void)
{
	double end = seconds_of(CLOCK_MONOTONIC) + 0.15;
	while (seconds_of(CLOCK_MONOTONIC) < end)
		sink += spin(100000);
}

static NOINLINE void thread_burn(void)
{
	double end = seconds_of(CLOCK_MONOTONIC) + 0.15;
	while (seconds_of(CLOCK_MONOTONIC) < end)
		sink += spin(100001);
}

static void *thread_main(void *arg)
{
	pthread_setname_np(pthread_self(), "passing");
	thread_burn();
	return arg;
}

int main(int argc, char **argv)
{
	double end = seconds_of(CLOCK_MONOTONIC) + argument(argc, argv, 1, 5);
	int children = 0;
	say_ready();
	while (seconds_of(CLOCK_MONOTONIC) < end) {
		pid_t child = fork();
		if (child == 0) {
			child_burn();
			_exit(0);
		}
		children++;
		pthread_t thread;
		if (pthread_create(&thread, NULL, thread_main, NULL) == 0)
			pthread_join(thread, NULL);
		waitpid(child, NULL, 0);
	}
	printf("children %d\n", children);
	return 0;
}
