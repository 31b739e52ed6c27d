/*
 * late.c - a library that is loaded in the middle of the run, as plugins are.
 */
#include <stdint.h>

uint64_t late_work(uint64_t n);

uint64_t late_work(uint64_t n)
{
	uint64_t x = n | 1;
	for (int i = 0; i < 20000; i++)
		x = x * 6364136223846793005ull + (x >> 33);
	return x;
}
