/*
 * events.c - does a known number of things that are events, once told to (SIGUSR1), and says what it did.
 *
 * Everything goes through functions with telling names, and nothing else happens meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../truth.h"

static volatile sig_atomic_t go, done;

static void on_signal(int signal)
{
	if (signal == SIGUSR1)
		go = 1;
	else
		done = 1;
}

static NOINLINE void ask_for_parent(long n)
{
	while (n--)
		syscall(SYS_getppid);
}

static NOINLINE void wake_nobody(long n)
{
	uint32_t word = 0;

	while (n--)
		syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

/* The word is not what was expected: returns at once, but it is a wait all the same. */
static NOINLINE void wait_for_nothing(long n)
{
	uint32_t word = 1;

	while (n--)
		syscall(SYS_futex, &word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0);
}

/* Sizes differ, so that a sum of the wrong thing shows. */
static NOINLINE long write_blocks(int fd, long n)
{
	char block[1000] = { 0 };
	long bytes = 0;

	for (long i = 0; i < n; i++) {
		ssize_t wrote = write(fd, block, 1 + i % sizeof(block));

		bytes += wrote > 0 ? wrote : 0;
	}
	return bytes;
}

/* Asks for more than there is at the end, and once for what it may not have. */
static NOINLINE long read_blocks(int fd, long n, long *ret_asked)
{
	char block[700];
	long bytes = 0;

	lseek(fd, 0, SEEK_SET);
	for (long i = 0; i < n; i++) {
		ssize_t got = read(fd, block, sizeof(block));

		bytes += got > 0 ? got : 0;
		*ret_asked += sizeof(block);
	}
	if (read(-1, block, sizeof(block)) >= 0)
		abort();
	*ret_asked += sizeof(block);
	return bytes;
}

static NOINLINE void touch_pages(char *memory, long n)
{
	for (long i = 0; i < n; i++)
		memory[i * 4096] = 1;
}

static NOINLINE void take_naps(long n)
{
	struct timespec nap = { .tv_nsec = 100000 };

	while (n--)
		nanosleep(&nap, NULL);
}

static long switches(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_nvcsw + u.ru_nivcsw;
}

static long faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_minflt + u.ru_majflt;
}

int main(int argc, char **argv)
{
	long n = argument(argc, argv, 1, 1000), wrote, got, asked = 0, before_switches, before_faults, faulted;
	char path[] = "/tmp/gasflame-truth-XXXXXX";
	int fd = mkstemp(path);
	char *memory = mmap(NULL, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigset_t mask, old;

	if (fd < 0 || memory == MAP_FAILED)
		return 1;
	unlink(path);
	madvise(memory, n * 4096, MADV_NOHUGEPAGE);
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGUSR2);
	sigprocmask(SIG_BLOCK, &mask, &old);
	say_ready();
	while (!go)
		sigsuspend(&old);
	before_switches = switches();
	before_faults = faults();
	touch_pages(memory, n);
	faulted = faults() - before_faults;
	ask_for_parent(n);
	wake_nobody(n / 2);
	wait_for_nothing(n / 4);
	wrote = write_blocks(fd, n);
	got = read_blocks(fd, n, &asked);
	take_naps(n / 10);
	printf("getppid %ld\nwakes %ld\nwaits %ld\nwrites %ld\nwritten %ld\nreads %ld\nread %ld\nasked %ld\n",
	       n, n / 2, n / 4, n, wrote, n + 1, got, asked);
	printf("naps %ld\nfaults %ld\nswitches %ld\ndone\n", n / 10, faulted, switches() - before_switches);
	fflush(stdout);
	while (!done)
		sigsuspend(&old);
	return 0;
}
