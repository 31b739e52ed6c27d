/*
 * iorate.c [calls] - two threads that make that many one-byte calls each, on eight files from eight
 * places in turn: many kinds of calls at a time. Then as many reads at one place with two stacks, which
 * differ beyond the words near the stack pointer. Says how many calls it made, and how many with each stack.
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

static NOINLINE void mixed_leaf(void)
{
	char room[256], c;

	__asm__ volatile("" : : "r"(room) : "memory"); /* return addresses are far from the stack pointer */
	if (pread(fds[0], &c, 1, 0) != 1)
		_exit(1);
	__asm__ volatile("");
}

static NOINLINE void mixed_often(void)
{
	mixed_leaf();
	__asm__ volatile("");
}

static NOINLINE void mixed_seldom(void)
{
	mixed_leaf();
	__asm__ volatile("nop"); /* else the compiler makes one function of the two */
}

/* Three of four calls come from mixed_often(), in no order. How many did. */
static long mix(void)
{
	unsigned state = 1;
	long often = 0;

	for (long i = 0; i < calls; i++) {
		state = state * 1103515245 + 12345;
		if (state >> 28 & 3) {
			mixed_often();
			often++;
		} else {
			mixed_seldom();
		}
	}
	return often;
}

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
	long often;

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
	often = mix();
	printf("calls %ld\nseconds %.3f\nmixed %ld %ld\n", 5 * calls, seconds_of(CLOCK_MONOTONIC) - start, often, calls);
	return 0;
}
