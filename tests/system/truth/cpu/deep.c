/* deep.c [levels=120] [seconds=5] [percent=100] - burns at the bottom of a recursion, for so much of the time. */
#include "../truth.h"

static double percent;

static NOINLINE uint64_t deep_burn(double end)
{
	uint64_t x = 0;
	while (seconds_of(CLOCK_MONOTONIC) < end) {
		x += spin(200000);
		rest_of(percent);
	}
	return x;
}

static NOINLINE uint64_t deep_level(int levels, double end)
{
	/* Frames of different sizes, so that no lucky guess walks them. */
	volatile char room[64];
	room[levels & 63] = 1;
	uint64_t below = levels == 1 ? deep_burn(end) : deep_level(levels - 1, end);
	return below + (uint64_t)room[levels & 63];
}

int main(int argc, char **argv)
{
	int levels = (int)argument(argc, argv, 1, 120);
	percent = argument(argc, argv, 3, 100);
	say_ready();
	double end = seconds_of(CLOCK_MONOTONIC) + argument(argc, argv, 2, 5);
	printf("levels %d %llu\n", levels, (unsigned long long)deep_level(levels, end) & 0);
	return 0;
}
