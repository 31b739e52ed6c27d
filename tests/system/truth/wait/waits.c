/*
 * waits.c [seconds] [burners] [folder] - threads that wait in known ways, each in a function with a telling
 * name, and each with a log of when it was in there. At the end all logs are printed:
 *
 *	clock MONOTONIC_NS REALTIME_NS
 *	span NAME TID BEGIN_NS END_NS      (CLOCK_MONOTONIC; what a thread is still in ends now)
 *	NAME WALL_NS CPU_NS COUNT
 *
 * so that a test can cut out exactly the time that was recorded. SIGTERM ends it before its time is over. The burners want more CPU
 * than there is.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../truth.h"

enum { MAX_TASKS = 32, MAX_SPANS = 1 << 18, FILE_PAGES = 256, PAGE = 4096 };

/* A way to wait: prepare() is outside of what is measured, and so is the pause after it. */
struct kind {
	const char *name;
	void (*unit)(void);
	void (*prepare)(void);
	unsigned pause_us;
};

struct task {
	const struct kind *kind;
	pthread_t thread;
	pid_t tid;
	_Atomic uint64_t begin; /* of the unit that it is in, 0 = none */
	_Atomic uint64_t cpu_ns;
	_Atomic size_t count;
	uint64_t (*spans)[2];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, park_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t park_cond = PTHREAD_COND_INITIALIZER, never_cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int parked, pipes[2], pair[2], tcp[2], epoll_fd, sync_fd, cold_fd;
static volatile unsigned char *cold;
static pid_t child;
static volatile uint64_t sink;
static atomic_bool stopping;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t ns_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void sleep_us(unsigned us)
{
	nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

/* --- the ways to wait --- */

/* 5 ms: two of work, three asleep. */
static NOINLINE void hold_lock(void)
{
	pthread_mutex_lock(&mutex);
	for (uint64_t end = ns_of(CLOCK_THREAD_CPUTIME_ID) + 2000000; ns_of(CLOCK_THREAD_CPUTIME_ID) < end;)
		sink += spin(5000);
	sleep_us(3000);
	pthread_mutex_unlock(&mutex);
}

static NOINLINE void wait_lock(void)
{
	pthread_mutex_lock(&mutex);
	sink++;
	pthread_mutex_unlock(&mutex);
}

static NOINLINE void rw_write(void)
{
	pthread_rwlock_wrlock(&rwlock);
	sleep_us(4000);
	pthread_rwlock_unlock(&rwlock);
}

static NOINLINE void rw_read(void)
{
	pthread_rwlock_rdlock(&rwlock);
	sink++;
	pthread_rwlock_unlock(&rwlock);
}

static NOINLINE void nap(void)
{
	sleep_us(20000);
}

static NOINLINE void park(void)
{
	pthread_mutex_lock(&park_mutex);
	while (!parked)
		pthread_cond_wait(&park_cond, &park_mutex);
	parked = 0;
	pthread_mutex_unlock(&park_mutex);
}

/* From before the recording until after it. */
static NOINLINE void park_forever(void)
{
	pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&own);
	for (;;)
		pthread_cond_wait(&never_cond, &own);
}

static NOINLINE void sync_loop(void)
{
	static unsigned turn;
	char block[PAGE];

	memset(block, (int)++turn, sizeof(block));
	if (pwrite(sync_fd, block, sizeof(block), turn % FILE_PAGES * PAGE) != sizeof(block) || fdatasync(sync_fd))
		fail("sync_loop");
}

static NOINLINE void cold_scan(void)
{
	for (size_t i = 0; i < FILE_PAGES; i++)
		sink += cold[i * PAGE];
}

static void drop_cache(void)
{
	if (madvise((void *)cold, FILE_PAGES * PAGE, MADV_DONTNEED) ||
	    posix_fadvise(cold_fd, 0, 0, POSIX_FADV_DONTNEED))
		fail("drop_cache");
}

static NOINLINE void pipe_read(void)
{
	char c;

	if (read(pipes[0], &c, 1) != 1)
		fail("pipe_read");
	sink++;
}

static NOINLINE void pair_read(void)
{
	char c;

	if (read(pair[0], &c, 1) != 1)
		fail("pair_read");
	sink += 2;
}

static NOINLINE void net_read(void)
{
	char c;

	if (recv(tcp[0], &c, 1, 0) != 1)
		fail("net_read");
	sink += 3;
}

static NOINLINE void poll_idle(void)
{
	struct pollfd none = { .fd = pair[1], .events = POLLIN };

	if (poll(&none, 1, 25))
		fail("poll_idle");
}

static NOINLINE void epoll_idle(void)
{
	struct epoll_event event;

	if (epoll_wait(epoll_fd, &event, 1, 30))
		fail("epoll_idle");
}

static NOINLINE void child_nap(void)
{
	sleep_us(15000);
}

/* Not by fork: copying the address space makes the other threads wait for it. */
static void make_child(void)
{
	char *const arguments[] = { "waits", "child", NULL };

	errno = posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ);
	if (errno)
		fail("posix_spawn");
}

static NOINLINE void wait_child(void)
{
	if (waitpid(child, NULL, 0) != child)
		fail("wait_child");
}

static NOINLINE void burn(void)
{
	sink += spin(30000000);
}

/* Ends the waits of those who wait for somebody. */
static NOINLINE void feed(void)
{
	sleep_us(10000);
	pthread_mutex_lock(&park_mutex);
	parked = 1;
	pthread_cond_signal(&park_cond);
	pthread_mutex_unlock(&park_mutex);
	if (write(pipes[1], "x", 1) != 1 || write(pair[1], "x", 1) != 1 || write(tcp[1], "x", 1) != 1)
		fail("feed");
}

static const struct kind kinds[] = {
	{ "hold_lock", hold_lock, NULL, 4000 },   { "wait_lock", wait_lock, NULL, 500 },
	{ "rw_write", rw_write, NULL, 3000 },     { "rw_read", rw_read, NULL, 500 },
	{ "nap", nap, NULL, 1000 },               { "park", park, NULL, 0 },
	{ "park_forever", park_forever, NULL, 0 }, { "sync_loop", sync_loop, NULL, 2000 },
	{ "cold_scan", cold_scan, drop_cache, 5000 }, { "pipe_read", pipe_read, NULL, 0 },
	{ "pair_read", pair_read, NULL, 0 },      { "net_read", net_read, NULL, 0 },
	{ "poll_idle", poll_idle, NULL, 0 },      { "epoll_idle", epoll_idle, NULL, 0 },
	{ "wait_child", wait_child, make_child, 1000 }, { "feed", feed, NULL, 0 },
};
static const struct kind burn_kind = { "burn", burn, NULL, 0 };
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* --- around them --- */

static void *task_run(void *arg)
{
	struct task *t = arg;

	t->tid = (pid_t)syscall(SYS_gettid);
	pthread_setname_np(pthread_self(), t->kind->name);
	while (!stopping) {
		if (t->kind->prepare)
			t->kind->prepare();
		uint64_t cpu = ns_of(CLOCK_THREAD_CPUTIME_ID), begin = ns_of(CLOCK_MONOTONIC);
		t->begin = begin;
		t->kind->unit();
		size_t n = t->count;
		if (n < MAX_SPANS) {
			t->spans[n][0] = begin;
			t->spans[n][1] = ns_of(CLOCK_MONOTONIC);
			t->count = n + 1;
		}
		t->begin = 0;
		t->cpu_ns += ns_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
		if (t->kind->pause_us)
			sleep_us(t->kind->pause_us);
	}
	return NULL;
}

static int open_file(const char *folder)
{
	char path[4096], block[PAGE];
	int fd;

	snprintf(path, sizeof(path), "%s/waits-XXXXXX", folder);
	fd = mkstemp(path);
	if (fd < 0)
		fail(path);
	unlink(path);
	memset(block, 'x', sizeof(block));
	for (int i = 0; i < FILE_PAGES; i++)
		if (write(fd, block, sizeof(block)) != sizeof(block))
			fail(path);
	fsync(fd);
	return fd;
}

/* A connection over the loopback interface. */
static void open_tcp(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	tcp[1] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (void *)&at, size) || listen(listener, 1) || getsockname(listener, (void *)&at, &size) ||
	    connect(tcp[1], (void *)&at, size))
		fail("tcp");
	tcp[0] = accept(listener, NULL, NULL);
}

static void open_all(const char *folder)
{
	struct epoll_event event = { .events = EPOLLIN };

	sync_fd = open_file(folder);
	cold_fd = open_file(folder);
	cold = mmap(NULL, FILE_PAGES * PAGE, PROT_READ, MAP_SHARED, cold_fd, 0);
	if (cold == MAP_FAILED || madvise((void *)cold, FILE_PAGES * PAGE, MADV_RANDOM))
		fail("mmap");
	if (pipe(pipes) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		fail("pipe");
	open_tcp();
	epoll_fd = epoll_create1(0);
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, tcp[1], &event))
		fail("epoll");
}

static void print_task(const struct task *t, uint64_t now)
{
	uint64_t wall = 0, begin = t->begin;
	size_t n = t->count;

	for (size_t i = 0; i < n; i++) {
		printf("span %s %d %llu %llu\n", t->kind->name, t->tid, (unsigned long long)t->spans[i][0],
		       (unsigned long long)t->spans[i][1]);
		wall += t->spans[i][1] - t->spans[i][0];
	}
	if (begin && (!n || t->spans[n - 1][0] < begin)) {
		printf("span %s %d %llu %llu\n", t->kind->name, t->tid, (unsigned long long)begin,
		       (unsigned long long)now);
		wall += now - begin;
	}
	printf("%s %llu %llu %zu\n", t->kind->name, (unsigned long long)wall, (unsigned long long)t->cpu_ns, n);
}

/* Until one of the signals, or for so long: what interrupts a wait otherwise, a tracer or work for the task, does not end it. */
static void wait_for_end(const sigset_t *end, double seconds)
{
	uint64_t now = ns_of(CLOCK_MONOTONIC), until = now + (uint64_t)(seconds * 1e9);

	for (; now < until; now = ns_of(CLOCK_MONOTONIC)) {
		struct timespec left = { .tv_sec = (until - now) / 1000000000, .tv_nsec = (until - now) % 1000000000 };

		if (sigtimedwait(end, NULL, &left) >= 0 || errno != EINTR)
			break;
	}
}

int main(int argc, char **argv)
{
	static struct task tasks[MAX_TASKS];
	double seconds = argument(argc, argv, 1, 5);
	size_t burners = (size_t)argument(argc, argv, 2, 0), n = KINDS + burners;
	sigset_t end;

	if (argc == 2 && !strcmp(argv[1], "child")) {
		child_nap();
		return 0;
	}
	if (n > MAX_TASKS)
		return 2;
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &end, NULL); /* of all threads: sigtimedwait() takes it */
	open_all(argc > 3 ? argv[3] : "/tmp");
	for (size_t i = 0; i < n; i++) {
		tasks[i].kind = i < KINDS ? &kinds[i] : &burn_kind;
		/* Only what is written takes memory. */
		tasks[i].spans = mmap(NULL, MAX_SPANS * sizeof(*tasks[i].spans), PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (tasks[i].spans == MAP_FAILED ||
		    pthread_create(&tasks[i].thread, NULL, task_run, &tasks[i]))
			fail("pthread_create");
	}
	sleep_us(200000);
	say_ready();
	wait_for_end(&end, seconds);
	stopping = true;
	uint64_t now = ns_of(CLOCK_MONOTONIC);
	printf("clock %llu %llu\n", (unsigned long long)now, (unsigned long long)ns_of(CLOCK_REALTIME));
	for (size_t i = 0; i < n; i++)
		print_task(&tasks[i], now);
	fflush(stdout);
	_exit(0); /* some are still waiting */
}
