/* vdsoburn.c [seconds=5] - asks for the time in a loop: most samples are inside the vdso. */
#include "../truth.h"

static volatile double sink;

static NOINLINE void ask_time(double end)
{
	while (seconds_of(CLOCK_MONOTONIC) < end)
		sink += 1;
}

int main(int argc, char **argv)
{
	double end = seconds_of(CLOCK_MONOTONIC) + argument(argc, argv, 1, 5);
	say_ready();
	ask_time(end);
	return 0;
}
