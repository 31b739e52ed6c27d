/*
 * heapdumps.c - a heap that is known, for a jemalloc that is preloaded and profiles.
 *
 *	heapdumps THREADS [DUMPS]
 *
 * holds_cache has 20 MB from the beginning on, grows_leak 10 MB more for each of DUMPS, which the program
 *asks jemalloc for itself. One method of two types is named as Rust names it: each holds 4 MB. Then THREADS
 * threads allocate and free until it is killed.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

enum { MEGA = 1 << 20, PIECE = 64 << 10 };

void *first_make(size_t n) __asm__("_ZN40_$LT$zoo..Ant$u20$as$u20$zoo..Animal$GT$4make17h0123456789abcdefE");
void *second_make(size_t n) __asm__("_ZN40_$LT$zoo..Bee$u20$as$u20$zoo..Animal$GT$4make17h1123456789abcdefE");
void *holds_cache(size_t n);
void *grows_leak(size_t n);

static void *volatile last;

KEEP void *first_make(size_t n) { return last = memset(malloc(n), 1, n); }
KEEP void *second_make(size_t n) { return last = memset(malloc(n), 2, n); }
KEEP void *holds_cache(size_t n) { return last = memset(malloc(n), 3, n); }
KEEP void *grows_leak(size_t n) { return last = memset(malloc(n), 4, n); }

static void fill(void *(*make)(size_t), size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PIECE)
		make(PIECE);
}

static void *churn(void *context)
{
	unsigned x = (unsigned)(size_t)context;

	for (;;) {
		void *volatile p = malloc((x = x * 1103515245 + 12345) >> 20);

		free(p);
		if (!(x >> 24))
			usleep(100);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int (*control)(const char *, void *, size_t *, void *, size_t) = dlsym(RTLD_DEFAULT, "mallctl");
	pthread_t thread;

	fill(holds_cache, 20 * MEGA);
	fill(first_make, 4 * MEGA);
	fill(second_make, 4 * MEGA);
	for (int i = 0; i < (argc > 2 ? atoi(argv[2]) : 0) && control; i++) {
		fill(grows_leak, 10 * MEGA);
		control("prof.dump", NULL, NULL, NULL, 0);
		usleep(20000);
	}
	for (size_t i = 0; argc > 1 && i < (size_t)atoi(argv[1]); i++)
		pthread_create(&thread, NULL, churn, (void *)(i + 1));
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
