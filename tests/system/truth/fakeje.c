/*
 * fakeje.c - an allocator that has the names of a jemalloc, and was built without statistics.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void *je_malloc(size_t size);
void je_free(void *object);
int je_mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size);

void *je_malloc(size_t size)
{
	return malloc(size);
}

void je_free(void *object)
{
	free(object);
}

int je_mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size)
{
	if (strcmp(name, "config.stats") || !old_size || *old_size != sizeof(bool) || new || new_size)
		return ENOENT;
	*(bool *)old = false;
	return 0;
}
