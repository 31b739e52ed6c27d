/* deep.c [levels=120] [seconds=5] - burns at the bottom of a recursion. */
#include "../truth.h"

static NOINLINE uint64_t deep_burn(double end)
{
	uint64_t x = 0;
	while (seconds_of(CLOCK_MONOTONIC) < end)
		x += spin(200000);
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
	double end = seconds_of(CLOCK_MONOTONIC) + argument(argc, argv, 2, 5);
	say_ready();
	printf("levels %d %llu\n", levels, (unsigned long long)deep_level(levels, end) & 0);
	return 0;
}
