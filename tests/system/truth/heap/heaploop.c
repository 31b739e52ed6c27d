/*
 * heaploop.c PAIRS [ROUNDS [DEPTH [THREADS]]] - nothing but malloc and free of 64 bytes: says what a pair took, in nanoseconds of
 * CPU time, after each round of so many. No ROUNDS, or 0: until it is killed. DEPTH: so many frames more on the stack.
 * THREADS: so many do the same meanwhile; the first one measures.
 */
#include <pthread.h>

#include "../truth.h"

NOINLINE static void loop(long pairs)
{
	for (long i = 0; i < pairs; i++) {
		void *object = malloc(64);

		__asm__ volatile("" : "+r"(object) : : "memory");
		free(object);
	}
}

NOINLINE static void deeper(long depth, long pairs)
{
	if (depth > 0)
		deeper(depth - 1, pairs);
	else
		loop(pairs);
	__asm__ volatile("" : : : "memory"); /* no tail call */
}

static void *loop_forever(void *pairs)
{
	for (;;)
		loop(*(const long *)pairs);
	return NULL;
}

int main(int argc, char **argv)
{
	long pairs = (long)argument(argc, argv, 1, 1e6), rounds = (long)argument(argc, argv, 2, 0);
	long depth = (long)argument(argc, argv, 3, 0), threads = (long)argument(argc, argv, 4, 1);
	pthread_t other;

	setvbuf(stdout, NULL, _IOLBF, 0);
	loop(pairs / 10 + 1);
	for (long i = 1; i < threads; i++)
		if (pthread_create(&other, NULL, loop_forever, &pairs))
			return 1;
	say_ready();
	for (long i = 0; !rounds || i < rounds; i++) {
		double begin = seconds_of(CLOCK_THREAD_CPUTIME_ID);

		deeper(depth, pairs);
		printf("%.3f\n", (seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin) * 1e9 / pairs);
	}
	return 0;
}
