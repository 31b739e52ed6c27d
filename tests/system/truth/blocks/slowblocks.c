/*
 * slowblocks.c - a chain of blocks, of which some have to read cold pages of a mapped database.
 *
 *	truth-slowblocks DATABASE BLOCKS
 *
 * prints a line a block, as a node does, and at its end the numbers of those that were slow, with the mean time
 * that slow and other blocks spent in state_root().
 */
#include "../truth.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PAGE = 4096, BYTES = 128 << 20, EVERY = 8, FEW = 4, STEP = 8 };

static char *database;
static long next_page;
static volatile char seen;

static NOINLINE void state_root(double ms)
{
	double until = seconds_of(CLOCK_MONOTONIC) + ms / 1e3;

	/* Each page is touched once, and the kernel was told not to read ahead: each waits for the disk. */
	for (int i = 0; (ms > 0 && seconds_of(CLOCK_MONOTONIC) < until) || (ms <= 0 && i < FEW); i++) {
		if ((next_page + STEP) * PAGE >= BYTES)
			break;
		seen = database[next_page * PAGE];
		next_page += STEP;
	}
}

static NOINLINE void execute_block(void)
{
	/* CPU time, so that it is the same whatever else the machine does. */
	double until = seconds_of(CLOCK_THREAD_CPUTIME_ID) + 0.004;

	while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < until)
		if (!spin(100000))
			abort();
}

static int make_database(const char *path)
{
	static char block[1 << 20];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0)
		return -1;
	memset(block, 7, sizeof(block));
	for (long n = 0; n < BYTES; n += (long)sizeof(block))
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
			return -1;
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		return -1;
	database = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	return database == MAP_FAILED || madvise(database, BYTES, MADV_RANDOM) ? -1 : 0;
}

int main(int argc, char **argv)
{
	int blocks = (int)argument(argc, argv, 2, 32);
	double spent[2] = { 0 };
	int count[2] = { 0 };
	struct rusage u;

	if (argc < 2 || make_database(argv[1]))
		return 1;
	say_ready();
	for (int i = 1; i <= blocks; i++) {
		int slow = i % EVERY == 0;
		double start = seconds_of(CLOCK_MONOTONIC), root;

		execute_block();
		root = seconds_of(CLOCK_MONOTONIC);
		state_root(slow ? 40 : 0);
		spent[slow] += seconds_of(CLOCK_MONOTONIC) - root;
		count[slow]++;
		printf("made block %d with 1.5M gas in %.3f ms\n", i, (seconds_of(CLOCK_MONOTONIC) - start) * 1e3);
		fflush(stdout);
	}
	getrusage(RUSAGE_SELF, &u);
	printf("slow_ms=%.3f other_ms=%.3f major=%ld\n", spent[1] * 1e3 / count[1], spent[0] * 1e3 / count[0], u.ru_majflt);
	return 0;
}
