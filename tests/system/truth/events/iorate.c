/*
 * iorate.c [calls] - two threads that make that many one-byte calls each, on eight files from eight
 * places in turn: more kinds of calls than are added up at a time. Says how many bytes each file got.
 */
#include "../truth.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { FILES = 8 };
static long calls;
static int fds[FILES];

#define PLACE(n)                                                        \
	static NOINLINE void rate_##n(char *c)                          \
	{                                                               \
		if (write(fds[n], c, 1) != 1 || pread(fds[n], c, 1, 0) != 1) \
			_exit(1);                                       \
		__asm__ volatile("");                                   \
	}
PLACE(0) PLACE(1) PLACE(2) PLACE(3) PLACE(4) PLACE(5) PLACE(6) PLACE(7)

static void (*const places[FILES])(char *) = { rate_0, rate_1, rate_2, rate_3, rate_4, rate_5, rate_6, rate_7 };

static void *work(void *unused)
{
	char c = 'x';

	for (long i = 0; i < calls; i++)
		places[i % FILES](&c);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	double start;

	calls = argument(argc, argv, 1, 100000);
	for (int i = 0; i < FILES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "rate-%d", i);
		fds[i] = open(name, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0644);
	}
	usleep(300000);
	start = seconds_of(CLOCK_MONOTONIC);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("calls %ld\nseconds %.3f\n", 4 * calls, seconds_of(CLOCK_MONOTONIC) - start);
	return 0;
}
