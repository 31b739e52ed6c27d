/* heaplib.c - a library that is loaded while the heap is recorded, and allocates. */
#include <stdlib.h>

void *library_keep(size_t n);

__attribute__((noinline)) void *library_keep(size_t n)
{
	char *object = malloc(n);

	*(volatile char *)object = 1;
	return object;
}
