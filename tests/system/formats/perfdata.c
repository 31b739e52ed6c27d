/*
 * perfdata.c - a program for perf record: three functions that burn CPU time under each other, one that faults pages, and one
 * that sleeps. Nothing is inlined, so that each function is a symbol.
 *
 * perfdata ROUNDS SLEEPS: so many rounds of work, and so many naps of 20 ms.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define PLAIN __attribute__((noinline, noclone, optimize("no-omit-frame-pointer", "no-optimize-sibling-calls")))

volatile uint64_t sink;

PLAIN void pd_leaf(unsigned n)
{
	uint64_t x = n;

	for (unsigned i = 0; i < n; i++)
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
	sink += x;
}

PLAIN void pd_middle(unsigned n)
{
	pd_leaf(n);
	for (unsigned i = 0; i < n; i++)
		sink += i;
}

PLAIN void pd_outer(unsigned n)
{
	pd_middle(n);
	for (unsigned i = 0; i < n / 2; i++)
		sink ^= i;
}

PLAIN void pd_faults(unsigned pages)
{
	volatile char *p = mmap(NULL, pages * 4096UL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (unsigned i = 0; i < pages; i++)
		p[i * 4096UL] = 1;
	munmap((void *)p, pages * 4096UL);
}

PLAIN void pd_naps(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? atoi(argv[1]) : 1, naps = argc > 2 ? atoi(argv[2]) : 0;

	for (unsigned i = 0; i < rounds; i++) {
		pd_outer(2000000);
		pd_faults(64);
	}
	pd_naps(naps);
	return 0;
}
