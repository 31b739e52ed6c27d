/*
 * heapclass.c - a heap whose slabs are nearly empty: of 100,000 objects of 320 bytes each 16th stays. Says what its jemalloc
 * counts of that class, "class SIZE OBJECTS SLABS", and goes on allocating something else until it is killed.
 *
 * With FAKE it calls the allocator of fakeje.c, which has no statistics.
 */
#include <unistd.h>

#include "../truth.h"

enum { OBJECTS = 100000, BYTES = 320, EACH = 16 };

#ifdef FAKE
void *je_malloc(size_t size);
void je_free(void *object);
#define malloc je_malloc
#define free   je_free
#endif

int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size) __attribute__((weak));

static void *kept[OBJECTS];

static size_t get(const char *form, unsigned i)
{
	char name[64];
	size_t value = 0, size = sizeof(value);

	snprintf(name, sizeof(name), form, i);
	if (mallctl(name, &value, &size, NULL, 0))
		_exit(4);
	return value;
}

static void say_class(void)
{
	uint64_t epoch = 1;
	unsigned bins = 0;
	size_t size = sizeof(bins);

	/* What the thread keeps for itself would be given back at some later moment. */
	if (!mallctl || mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) ||
	    mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch)) || mallctl("arenas.nbins", &bins, &size, NULL, 0))
		return;
	for (unsigned i = 0; i < bins; i++)
		if (get("arenas.bin.%u.size", i) == BYTES)
			printf("class %d %zu %zu\n", BYTES, get("stats.arenas.4096.bins.%u.curregs", i),
			       get("stats.arenas.4096.bins.%u.curslabs", i));
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	for (int i = 0; i < OBJECTS; i++)
		kept[i] = malloc(BYTES);
	for (int i = 0; i < OBJECTS; i++)
		if (i % EACH) {
			free(kept[i]);
			kept[i] = NULL;
		}
	say_class();
	say_ready();
	for (;;) {
		void *volatile object = malloc(4000);

		free(object);
		usleep(200);
	}
}
