/* burnlib.c - a share of the CPU that is burnt in a shared library. */
#include "../truth.h"

uint64_t library_burn(uint64_t steps);

NOINLINE uint64_t library_burn(uint64_t steps)
{
	return spin(steps);
}
