/* forker.c [rounds=10] - in each round a child and a thread take a tenth of a second of CPU time each, and go. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../truth.h"

static volatile uint64_t sink;

static NOINLINE void child_burn(void)
{
	while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < 0.1)
		sink += spin(100000);
}

static NOINLINE void thread_burn(void)
{
	while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < 0.1)
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
	int rounds = (int)argument(argc, argv, 1, 10);

	say_ready();
	for (int i = 0; i < rounds; i++) {
		pid_t child = fork();
		if (child == 0) {
			child_burn();
			_exit(0);
		}
		pthread_t thread;
		if (pthread_create(&thread, NULL, thread_main, NULL) == 0)
			pthread_join(thread, NULL);
		waitpid(child, NULL, 0);
	}
	return 0;
}
