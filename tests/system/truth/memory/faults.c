/*
 * faults.c - page faults of every kind, counted by the kernel for the program itself.
 *
 *	truth-faults FILE PAGES [scan]
 *
 * Makes FILE (PAGES pages), says "ready" and waits for SIGUSR1. Then each function below faults as its name
 * says; what the kernel counted meanwhile is printed as "name minor major microseconds", last "total ...".
 * scan: reads the mapped file again and again instead, for a cgroup that is smaller than it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../truth.h"

enum { PAGE = 4096, THREADS = 4 };

static size_t pages;
static int file;
static volatile uint64_t sink;

static void *fresh(size_t n, int flags)
{
	void *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (p == MAP_FAILED || (!(flags & MAP_POPULATE) && madvise(p, n * PAGE, MADV_NOHUGEPAGE)))
		abort();
	return p;
}

static NOINLINE void write_pages(volatile char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i * PAGE] = 1;
}

static NOINLINE void touch_fresh(void)
{
	void *p = fresh(pages, 0);

	write_pages(p, pages);
	munmap(p, pages * PAGE);
}

/* Every other page of the second half, each read from the disk by itself. */
static NOINLINE void read_cold(void)
{
	volatile char *p = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, file, 0);

	if (p == MAP_FAILED || madvise((void *)p, pages * PAGE, MADV_RANDOM))
		abort();
	for (size_t i = pages / 2; i < pages; i += 2)
		sink += p[i * PAGE];
	munmap((void *)p, pages * PAGE);
}

/* One address, in turn memory and a file: what lies there must be known as of each fault. */
static NOINLINE void alternate(void)
{
	char *p = fresh(4, 0);

	for (int i = 0; i < 500; i++) {
		if (mmap(p, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) != p)
			abort();
		write_pages(p, 4);
		if (mmap(p, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) != p)
			abort();
		write_pages(p, 4);
	}
	munmap(p, 4 * PAGE);
}

static NOINLINE void scan(void)
{
	volatile char *p = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, file, 0);

	if (p == MAP_FAILED)
		abort();
	for (int times = 0; times < 3; times++)
		for (size_t i = 0; i < pages; i++)
			sink += p[i * PAGE];
	munmap((void *)p, pages * PAGE);
}

static NOINLINE void populate(void)
{
	munmap(fresh(pages / 4, MAP_POPULATE), pages / 4 * PAGE);
}

/* The kernel writes into fresh memory for the program: the fault has a system call above it. */
static NOINLINE void read_into_fresh(void)
{
	char *p = fresh(256, 0);

	if (pread(file, p, 256 * PAGE, 0) != 256 * PAGE)
		abort();
	munmap(p, 256 * PAGE);
}

static void *in_thread(void *arg)
{
	void *p = fresh(pages / 4, 0);

	write_pages(p, pages / 4);
	munmap(p, pages / 4 * PAGE);
	return arg;
}

static NOINLINE void threads_that_end(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, in_thread, NULL))
			abort();
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

static NOINLINE void copy_on_write(char *p)
{
	write_pages(p, pages / 4);
}

static void say(const char *name, int who, const struct rusage *before, double seconds)
{
	struct rusage now;

	getrusage(who, &now);
	printf("%s %ld %ld %.0f\n", name, now.ru_minflt - before->ru_minflt,
	       now.ru_majflt - before->ru_majflt, seconds * 1e6);
	fflush(stdout);
}

#define PHASE(call, name)                                                           \
	do {                                                                        \
		struct rusage before_;                                              \
		double from_ = seconds_of(CLOCK_MONOTONIC);                         \
		getrusage(RUSAGE_SELF, &before_);                                   \
		call;                                                               \
		say(name, RUSAGE_SELF, &before_, seconds_of(CLOCK_MONOTONIC) - from_); \
	} while (0)

static void make_file(const char *path)
{
	char page[PAGE];

	file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	memset(page, 'x', sizeof(page));
	for (size_t i = 0; i < pages; i++)
		if (write(file, page, PAGE) != PAGE)
			abort();
	if (file < 0 || fsync(file))
		abort();
}

static void forked(char *p)
{
	struct rusage none = { 0 };
	pid_t child = fork();

	if (!child) {
		copy_on_write(p);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	say("child", RUSAGE_CHILDREN, &none, 0);
}

int main(int argc, char **argv)
{
	struct rusage before;
	sigset_t go;
	char *shared;
	int got;

	if (argc < 3)
		return 2;
	pages = atol(argv[2]);
	make_file(argv[1]);
	shared = fresh(pages / 4, 0);
	if (argc == 3)
		write_pages(shared, pages / 4);
	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	sigprocmask(SIG_BLOCK, &go, NULL);
	say_ready();
	sigwait(&go, &got);
	getrusage(RUSAGE_SELF, &before);
	if (argc > 3) {
		PHASE(scan(), "scan");
		say("total", RUSAGE_SELF, &before, 0);
		pause();
	}
	PHASE(touch_fresh(), "touch_fresh");
	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	PHASE(read_cold(), "read_cold");
	PHASE(read_into_fresh(), "read_into_fresh");
	PHASE(alternate(), "alternate");
	PHASE(populate(), "populate");
	PHASE(threads_that_end(), "threads_that_end");
	forked(shared);
	say("total", RUSAGE_SELF, &before, 0);
	pause(); /* until the test has seen enough */
	return 0;
}
