/*
 * leaker - a heap that grows: leaky_cache() keeps what it allocates and touches, busy_worker() frees at once,
 * settled_table() has something of a fixed size.
 *
 *	truth-leaker MEGABYTES [KIBIBYTES-EACH] [child]
 *
 * Ends with status 0 after so much was leaked. child: a child does it, and the status is 3 if that was killed.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../truth.h"

static void *volatile kept, *volatile table;

NOINLINE static void leaky_cache(size_t bytes)
{
	void **p = malloc(bytes);

	memset(p, 1, bytes);
	*p = kept;
	kept = p;
	__asm__ volatile("" ::: "memory");
}

NOINLINE static void busy_worker(size_t bytes)
{
	char *volatile p = malloc(bytes);

	memset(p, 2, bytes);
	free(p);
	__asm__ volatile("" ::: "memory");
}

NOINLINE static void settled_table(size_t bytes)
{
	table = malloc(bytes);
	memset(table, 3, bytes);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	uint64_t megabytes = argument(argc, argv, 1, 64), each = argument(argc, argv, 2, 16) * 1024;
	int status = 0;

	if (argc > 3 && !strcmp(argv[3], "child")) {
		pid_t child = fork();

		if (child) {
			waitpid(child, &status, 0);
			return WIFSIGNALED(status) ? 3 : 0;
		}
	}
	say_ready();
	settled_table(1 << 20);
	for (uint64_t n = 0; n < megabytes << 20; n += each) {
		leaky_cache(each);
		busy_worker(each / 2);
		/* Slowly enough to be watched. */
		if (n % (1 << 20) < each)
			usleep(10000);
	}
	return 0;
}
