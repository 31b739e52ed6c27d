/*
 * shares.c [seconds] - burns 60 % of its CPU in an inlined function, 30 % in a shared library and
 * 10 % below 100 levels of recursion, for so long or until SIGTERM, and prints what the thread's own CPU clock says of each.
 */
#include <signal.h>

#include "../truth.h"

uint64_t library_burn(uint64_t steps);

static volatile uint64_t sink;
static volatile sig_atomic_t ended;
static double burnt[3];

static void on_end(int signo)
{
	(void)signo;
	ended = 1;
}

static inline __attribute__((always_inline)) uint64_t inlined_burn(uint64_t steps)
{
	uint64_t x = steps | 1;
	for (uint64_t i = 0; i < steps; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

static NOINLINE uint64_t around_inlined(uint64_t steps)
{
	return inlined_burn(steps) + 1;
}

static NOINLINE uint64_t bottom_burn(uint64_t steps)
{
	return spin(steps);
}

static NOINLINE uint64_t recurse(int levels, uint64_t steps)
{
	if (levels == 1)
		return bottom_burn(steps) + 1;
	uint64_t below = recurse(levels - 1, steps);
	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

/* One part, and what it truly took. The clock is read twice for each 1 to 6 ms. */
static NOINLINE void burn_part(int part, uint64_t steps)
{
	double start = seconds_of(CLOCK_THREAD_CPUTIME_ID);
	switch (part) {
	case 0: sink += around_inlined(steps); break;
	case 1: sink += library_burn(steps); break;
	default: sink += recurse(100, steps);
	}
	burnt[part] += seconds_of(CLOCK_THREAD_CPUTIME_ID) - start;
}

int main(int argc, char **argv)
{
	double end = seconds_of(CLOCK_MONOTONIC) + argument(argc, argv, 1, 5);
	double start = seconds_of(CLOCK_THREAD_CPUTIME_ID);
	sink += bottom_burn(20000000);
	double per_ms = 20000000 / ((seconds_of(CLOCK_THREAD_CPUTIME_ID) - start) * 1000);
	signal(SIGTERM, on_end);
	say_ready();
	while (seconds_of(CLOCK_MONOTONIC) < end && !ended) {
		burn_part(0, (uint64_t)(6 * per_ms));
		burn_part(1, (uint64_t)(3 * per_ms));
		burn_part(2, (uint64_t)(1 * per_ms));
	}
	double sum = burnt[0] + burnt[1] + burnt[2];
	printf("inlined_burn %.2f\nlibrary_burn %.2f\nbottom_burn %.2f\n", burnt[0] / sum * 100,
	       burnt[1] / sum * 100, burnt[2] / sum * 100);
	return 0;
}
