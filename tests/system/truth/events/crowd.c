/*
 * crowd THREADS [SECONDS] - threads that do a little of everything that a collector looks at, as fast as they can:
 * allocate and free, read, touch fresh pages, wait. Each round is one call of crowd_round().
 *
 * More threads than CPUs preempt each other all the time, also within the kernel where it allows that: for the programs
 * that probes run (tools/test-kernels). At the end it says how many rounds that were.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../truth.h"

enum { THREADS_MAX = 1024, PAGES = 4, READ_EACH = 16, FAULT_EACH = 64, NAP_EACH = 256 };

static volatile bool over;
static volatile uint64_t rounds[THREADS_MAX];
static int zero = -1;

NOINLINE static void crowd_allocate(uint64_t seed)
{
	void *volatile p = malloc(64 + seed % 4096);

	*(volatile char *)p = 1;
	free(p);
	__asm__ volatile("" ::: "memory");
}

NOINLINE static void crowd_read(void)
{
	char bytes[64];

	if (read(zero, bytes, sizeof(bytes)) < 0)
		abort();
	__asm__ volatile("" ::: "memory");
}

NOINLINE static void crowd_fault(void)
{
	char *p = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	for (int i = 0; i < PAGES; i++)
		*(volatile char *)(p + i * 4096) = 1;
	munmap(p, PAGES * 4096);
}

/* Begins with pushes, which kernels emulate. */
NOINLINE static uint64_t crowd_round(uint64_t n, uint64_t seed)
{
	crowd_allocate(seed);
	if (n % READ_EACH == 0)
		crowd_read();
	if (n % FAULT_EACH == 0)
		crowd_fault();
	if (n % NAP_EACH == 0)
		usleep(100);
	return seed * 6364136223846793005ULL + n;
}

static void *run(void *arg)
{
	uint64_t which = (uintptr_t)arg, seed = which + 1;

	while (!over) {
		seed = crowd_round(rounds[which], seed >> 1);
		rounds[which]++;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t threads = argument(argc, argv, 1, 8), seconds = argument(argc, argv, 2, 10), sum = 0;
	pthread_t ids[THREADS_MAX];

	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	zero = open("/dev/zero", O_RDONLY);
	for (uint64_t i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, run, (void *)(uintptr_t)i))
			return 1;
	say_ready();
	sleep(seconds);
	over = true;
	for (uint64_t i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		sum += rounds[i];
	}
	printf("rounds %llu\n", (unsigned long long)sum);
	return 0;
}
