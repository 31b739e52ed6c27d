/*
 * fakeje.c - an allocator that has the names of a jemalloc, and was built without statistics.
 *
 * With LURE=FILE in the environment it says that it profiles; asked for a dump it makes a link to that file, to have
 * whoever asked read it.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	const char *lure = getenv("LURE");

	if (lure && (!strcmp(name, "config.prof") || !strcmp(name, "opt.prof"))) {
		*(bool *)old = true;
		return 0;
	}
	if (lure && !strcmp(name, "prof.dump"))
		return symlink(lure, *(const char **)new) ? EIO : 0;
	if (strcmp(name, "config.stats") || !old_size || *old_size != sizeof(bool) || new || new_size)
		return ENOENT;
	*(bool *)old = false;
	return 0;
}
