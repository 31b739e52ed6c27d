/*
 * split.c [seconds] - burns so much CPU time in three functions of its own, 60, 30 and 10 % of it, and prints what the
 * thread's own CPU clock says of each. A turn of each is long beside the time between two samples: they are few beside
 * the samples in it.
 */
#include "../truth.h"

static volatile uint64_t sink;
static double burnt[3];

static NOINLINE uint64_t burn_sixty(uint64_t steps)
{
	return spin(steps);
}

static NOINLINE uint64_t burn_thirty(uint64_t steps)
{
	return spin(steps + 1) + 1;
}

static NOINLINE uint64_t burn_ten(uint64_t steps)
{
	return spin(steps + 2) * 3;
}

static NOINLINE double burn_part(int part, uint64_t steps)
{
	double start = seconds_of(CLOCK_THREAD_CPUTIME_ID);

	sink += part == 0 ? burn_sixty(steps) : part == 1 ? burn_thirty(steps) : burn_ten(steps);
	return seconds_of(CLOCK_THREAD_CPUTIME_ID) - start;
}

int main(int argc, char **argv)
{
	double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + argument(argc, argv, 1, 1.5);
	double per_ms = 2000000 / (burn_part(0, 2000000) * 1000);

	say_ready();
	while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < end) {
		burnt[0] += burn_part(0, (uint64_t)(60 * per_ms));
		burnt[1] += burn_part(1, (uint64_t)(30 * per_ms));
		burnt[2] += burn_part(2, (uint64_t)(10 * per_ms));
	}
	double sum = burnt[0] + burnt[1] + burnt[2];
	printf("burn_sixty %.2f\nburn_thirty %.2f\nburn_ten %.2f\n", burnt[0] / sum * 100, burnt[1] / sum * 100,
	       burnt[2] / sum * 100);
	return 0;
}
