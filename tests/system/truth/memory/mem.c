/*
 * mem.c - memory of which every part is known: maps, touches and locks so much of each kind, says how much,
 * and waits. mem FILE [faults|SECONDS]: FILE is made, 16 MiB; faults: then goes on to touch 1,000 new pages
 * every 100 ms; SECONDS: ends after them.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

enum {
	MB = 1 << 20,
	THREADS = 5, STACK = 2 * MB, STACK_TOUCHED = 1 * MB,
	ARENA_BLOCK = 1000, ARENA_TOUCHED = 1 * MB,
	HUGE = 2 * MB,
};

static pthread_barrier_t barrier;
static void *volatile untouched; /* alive, but not resident */

static void say(const char *what, long bytes)
{
	printf("%s %ld\n", what, bytes);
}

static void touch(volatile char *p, size_t n)
{
	for (size_t i = 0; i < n; i += 4096)
		p[i] = 1;
}

static char *map(size_t n, int flags, int fd)
{
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

/* Its stack, and blocks of an arena of its own. */
static void *thread(void *arg)
{
	volatile char here[STACK_TOUCHED];

	touch(here, sizeof(here));
	for (int i = 0; i < ARENA_TOUCHED / ARENA_BLOCK; i++)
		memset(malloc(ARENA_BLOCK), 1, ARENA_BLOCK);
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
	return NULL;
}

static void make_threads(void)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t, &attr, thread, NULL);
	pthread_barrier_wait(&barrier);
	say("stacks", THREADS * STACK_TOUCHED);
}

static void make_files(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	_Alignas(4096) static char block[64 << 10];
	volatile char *p;
	char *copy;

	for (int i = 0; i < 256; i++)
		if (write(fd, block, sizeof(block)) != sizeof(block))
			exit(1);
	/* Written, so that nothing around it is mapped along. */
	touch(map(16 * MB, MAP_SHARED, fd), 10 * MB);
	say("file", 10 * MB);
	copy = map(4 * MB, MAP_PRIVATE, fd);
	touch(copy, 1 * MB);
	say("data", 1 * MB);
	p = map(1 * MB, MAP_SHARED, fd); /* more of the same file */
	touch(p, 512 << 10);
	say("file", 512 << 10);
}

static void make_shared(void)
{
	int fd = memfd_create("a name <&> of ours", 0);

	if (fd < 0 || ftruncate(fd, 8 * MB))
		exit(1);
	touch(map(8 * MB, MAP_SHARED, fd), 6 * MB);
	say("shared", 6 * MB);
	touch(map(4 * MB, MAP_SHARED | MAP_ANONYMOUS, -1), 3 * MB);
	say("shared", 3 * MB);
}

static void make_anonymous(void)
{
	char *p = map(32 * MB, MAP_PRIVATE | MAP_ANONYMOUS, -1), *huge;

	touch(p, 20 * MB);
	say("anonymous", 20 * MB);
	if (!mlock(p, 48 << 10))
		say("locked", 48 << 10);
	huge = map(8 * MB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	huge += HUGE - (unsigned long)huge % HUGE;
	if (!madvise(huge, 2 * HUGE, MADV_HUGEPAGE))
		touch(huge, 2 * HUGE);
	say("anonymous", 2 * HUGE);
	say("huge", 2 * HUGE);
	p = map(2 * MB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	touch(p, 2 * MB);
	say(prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, 2 * MB, "jemalloc_test") ? "anonymous" : "heap",
	    2 * MB);
}

int main(int argc, char **argv)
{
	char *pages = map(4 * MB, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (argc < 2)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < 12 * 16; i++)
		memset(malloc(64 << 10), 1, 64 << 10);
	say("heap", 12 * MB);
	untouched = malloc(8 * MB);
	say("untouched", 8 * MB);
	make_threads();
	say("heap", THREADS * ARENA_TOUCHED);
	make_files(argv[1]);
	make_shared();
	make_anonymous();
	puts("ready");
	if (argc > 2 && atoi(argv[2])) {
		sleep(atoi(argv[2]));
		return 0;
	}
	while (argc > 2) {
		touch(pages, 1000 * 4096);
		madvise(pages, 4 * MB, MADV_DONTNEED);
		usleep(100000);
	}
	for (;;)
		pause();
}
