/* loaded.c - the library that loader.c loads while it runs. */
#include "../truth.h"

uint64_t loaded_burn(double end);

NOINLINE uint64_t loaded_burn(double end)
{
	uint64_t x = 0;
	while (seconds_of(CLOCK_PROCESS_CPUTIME_ID) < end)
		x += spin(100000);
	return x;
}
