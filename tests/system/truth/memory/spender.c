/*
 * spender - allocates at a known rate and keeps nothing: big_spender() three times as much as small_spender().
 *
 *	truth-spender ROUNDS [SECONDS]
 *
 * A round is four times 640 bytes: 103 of them are about 64 KiB, so that jemalloc looks at each of the four in
 * turn. Says how many bytes that were, and the CPU time. With SECONDS it goes on in the same way for so long,
 * with short sleeps between.
 */
#include <unistd.h>

#include "../truth.h"

NOINLINE static void spend(size_t n)
{
	void *volatile p = malloc(n);

	*(volatile char *)p = 1;
	free(p);
}

NOINLINE static void big_spender(void)
{
	for (int i = 0; i < 3; i++)
		spend(640);
	__asm__ volatile("" ::: "memory");
}

NOINLINE static void small_spender(void)
{
	spend(640);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	uint64_t rounds = argument(argc, argv, 1, 100000), n = 0;
	double seconds = argument(argc, argv, 2, 0), start = seconds_of(CLOCK_MONOTONIC);
	double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);

	say_ready();
	do {
		for (uint64_t i = 0; i < rounds; i++) {
			big_spender();
			small_spender();
		}
		n += rounds;
		if (seconds)
			usleep(1000);
	} while (seconds_of(CLOCK_MONOTONIC) - start < seconds);
	printf("bytes %llu\ncpu %.6f\n", (unsigned long long)n * 2560, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	return 0;
}
