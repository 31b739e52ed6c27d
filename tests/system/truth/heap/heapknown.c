/*
 * heapknown.c - a heap of which all is known, small enough for tools that run a program forty times slower.
 *
 *	allocated  625,010 bytes in 153 calls
 *	temporary  505,010 bytes in 52: freed before the next allocation
 *	peak       600,000 bytes in 101 objects
 *	alive       60,000 bytes in 41 objects at the end
 *
 * It prints nothing, because printing would allocate.
 */
#include <stdlib.h>
#include <string.h>

enum { KEPT = 100, KEPT_BYTES = 1000, FREED = 60, BIG_BYTES = 500000, SMALL = 50, SMALL_BYTES = 100 };

static void *list[KEPT];

__attribute__((noinline, noclone)) static void *keep(size_t n)
{
	void *p = malloc(n);

	memset(p, 1, n);
	return p;
}

__attribute__((noinline, noclone)) static void *outer(size_t n)
{
	void *p = keep(n);

	__asm__ volatile("" : : "r"(p) : "memory");
	return p;
}

__attribute__((noinline, noclone)) static void temporary(void)
{
	void *p = malloc(SMALL_BYTES);

	__asm__ volatile("" : : "r"(p) : "memory");
	free(p);
}

__attribute__((noinline, noclone)) static void *grow(void)
{
	void *volatile p = malloc(10);

	return realloc(p, 20000);
}

int main(void)
{
	void *volatile big, *volatile grown;

	for (int i = 0; i < KEPT; i++)
		list[i] = outer(KEPT_BYTES);
	big = keep(BIG_BYTES);
	free(big);
	for (int i = 0; i < SMALL; i++)
		temporary();
	for (int i = 0; i < FREED; i++)
		free(list[i]);
	grown = grow();
	return grown == list[0];
}
