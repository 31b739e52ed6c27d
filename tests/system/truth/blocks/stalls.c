/*
 * stalls.c - a chain of blocks, one of which stalls when it is told to.
 *
 *	truth-stalls MILLISECONDS
 *
 * prints a line a block, some ten a second, as a node does. After SIGUSR1 the next block takes so long: half of it burns in
 * stalled_root(), the other half waits in stalled_commit().
 */
#include "../truth.h"

#include <signal.h>

static volatile sig_atomic_t wanted;

static void on_signal(int signal)
{
	wanted = 1;
}

static void rest(double ms)
{
	struct timespec t = { (time_t)(ms / 1e3), (long)((ms - 1e3 * (long)(ms / 1e3)) * 1e6) };

	nanosleep(&t, NULL);
}

NOINLINE static void burn(double ms)
{
	double until = seconds_of(CLOCK_THREAD_CPUTIME_ID) + ms / 1e3;

	while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < until)
		spin(10007);
}

NOINLINE static void stalled_root(double ms)
{
	burn(ms);
	__asm__ volatile("" ::: "memory");
}

NOINLINE static void stalled_commit(double ms)
{
	rest(ms);
	__asm__ volatile("" ::: "memory");
}

NOINLINE static void execute_block(void)
{
	burn(10);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	uint64_t ms = argument(argc, argv, 1, 800);

	signal(SIGUSR1, on_signal);
	setvbuf(stdout, NULL, _IOLBF, 0);
	say_ready();
	for (uint64_t number = 1;; number++) {
		double start = seconds_of(CLOCK_MONOTONIC);

		execute_block();
		if (wanted) {
			wanted = 0;
			stalled_root(ms / 2.0);
			stalled_commit(ms / 2.0);
			puts("stalled");
		}
		printf("INFO Block added to canonical chain number=%llu hash=0x%064llx txs=3 gas_used=1.50Mgas elapsed=%.3fms\n",
		       (unsigned long long)number, (unsigned long long)number, 1e3 * (seconds_of(CLOCK_MONOTONIC) - start));
		rest(80);
	}
}
