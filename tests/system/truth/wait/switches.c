/*
 * switches.c [seconds] [switches a second] [factor] [counters file] - pairs of threads that hand each other
 * the turn, each pair on a CPU of its own, with work in between so that they switch about as often as asked
 * and the CPUs are hardly idle.
 *
 * Each thread waits below twenty frames. The first of pair 0, which hand over through a pipe, takes one of
 * two paths by chance: often() three times of four, rarely() once. The frames of both are of one size, so
 * that it waits with the same program counter and stack pointer; and what is waited for below rarely() takes
 * `factor` (4) times as long. The other pairs use a futex. At the end, or on SIGTERM:
 *
 *	switches COUNT SECONDS
 *	span often|rarely TID BEGIN_NS END_NS SUM_NS   (CLOCK_REALTIME; time spent in there in each 100 ms,
 *	                                                but for times above 1 ms)
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../truth.h"
#include "workload.h"

enum { MAX_PAIRS = 16, SLOTS = 4096, SLOT_MS = 100, DEPTH = 18 };

struct side {
	struct pair *pair;
	pthread_t thread;
	bool first;
	int in, out;                       /* pipe */
	_Atomic uint32_t *own, *others;    /* futex: 1 = it is my turn */
	struct counter_slot *slot;
	uint64_t seed;
	_Atomic uint64_t switches;
	_Atomic uint64_t spent[2][SLOTS];  /* ns below often() and rarely(), by slot of time */
	pid_t tid;
};

struct pair {
	struct side sides[2];
	int cpu;
	bool futex;
	_Atomic uint32_t turns[2];
};

static struct pair *pairs;
static struct counters *counters;
static _Atomic uint64_t work_steps;
static uint64_t start_ns;
static int rare_times; /* how much longer the waits below rarely() are */
static atomic_bool stopping;
static volatile uint64_t sink;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Waits for the turn, and does the work that comes with it. */
static NOINLINE void receive(struct side *s)
{
	char times = 0;

	if (s->pair->futex) {
		while (!*s->own && !stopping)
			syscall(SYS_futex, s->own, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		times = (char)*s->own;
		*s->own = 0;
	} else if (read(s->in, &times, 1) != 1) {
		stopping = true;
	}
	for (int i = 0; i < times && !s->first; i++)
		sink += spin(work_steps);
}

/* Hands over the turn, with so many pieces of work, and waits until it comes back. */
static NOINLINE void exchange(struct side *s, int times)
{
	char c = (char)times;

	if (s->pair->futex) {
		*s->others = (uint32_t)times;
		syscall(SYS_futex, s->others, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	} else if (write(s->out, &c, 1) != 1) {
		stopping = true;
	}
	receive(s);
	__asm__ volatile("");
}

/* Two ways to the same depth, of frames of one size. */
#define PATH(name, addend)                                               \
	static NOINLINE uint64_t name(struct side *s, int depth, int times) \
	{                                                                \
		uint64_t below = 0;                                      \
		if (depth)                                               \
			below = name(s, depth - 1, times);               \
		else                                                     \
			exchange(s, times);                              \
		__asm__ volatile("" : "+r"(below));                      \
		return below + (addend);                                 \
	}
PATH(often, 1)
PATH(rarely, 2)

static void note_time(struct side *s, int path, uint64_t began, uint64_t ended)
{
	uint64_t slot = (began - start_ns) / (SLOT_MS * 1000000ull);

	/* Longer ones are somebody else's doing, on a busy machine. */
	if (slot < SLOTS && ended - began < 1000000)
		s->spent[path][slot] += ended - began;
}

static void take_turn(struct side *s)
{
	bool rare;
	uint64_t began;

	s->seed ^= s->seed << 13;
	s->seed ^= s->seed >> 7;
	s->seed ^= s->seed << 17;
	rare = !s->pair->futex && s->first && (s->seed >> 20) % 4 == 0;
	began = now_ns();
	sink += rare ? rarely(s, DEPTH, rare_times) : often(s, DEPTH, 1);
	note_time(s, rare, began, now_ns());
}

static void *side_run(void *arg)
{
	struct side *s = arg;
	struct rusage usage;
	cpu_set_t cpus;
	uint64_t rested = now_ns();

	CPU_ZERO(&cpus);
	CPU_SET(s->pair->cpu, &cpus);
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	pthread_setname_np(pthread_self(), s->first ? "ping" : "pong");
	s->tid = (pid_t)syscall(SYS_gettid);
	if (!s->first)
		receive(s);
	while (!stopping) {
		/* Pairs that switch this often and never rest starve the kernel's own threads, those of RCU too. */
		if (!s->first && now_ns() - rested > 20000000) {
			usleep(1000);
			rested = now_ns();
		}
		take_turn(s);
		atomic_fetch_add_explicit(&s->slot->units, 1, memory_order_relaxed);
		if (s->slot->units % 64 == 0 && !getrusage(RUSAGE_THREAD, &usage))
			s->switches = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
	}
	return NULL;
}

static uint64_t count_switches(int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += pairs[i].sides[0].switches + pairs[i].sides[1].switches;
	return sum;
}

/* Finds the amount of work with which they switch as often as asked. */
static void settle(int n, double wanted)
{
	work_steps = 1000;
	for (int turn = 0; turn < 8; turn++) {
		usleep(20000);
		uint64_t before = count_switches(n);
		double began = seconds_of(CLOCK_MONOTONIC);
		usleep(100000);
		double rate = (double)(count_switches(n) - before) / (seconds_of(CLOCK_MONOTONIC) - began);
		double steps = (double)work_steps * rate / wanted;
		work_steps = (uint64_t)(steps < 1 ? 1 : steps > 1e6 ? 1e6 : steps);
	}
}

static void open_counters(const char *path)
{
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (path && (fd < 0 || ftruncate(fd, sizeof(*counters)))) {
		perror(path);
		exit(1);
	}
	counters = mmap(NULL, sizeof(*counters), PROT_READ | PROT_WRITE,
			MAP_SHARED | (path ? 0 : MAP_ANONYMOUS), fd, 0);
	if (counters == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	counters->slots = COUNTERS_SLOTS;
	counters->magic = COUNTERS_MAGIC;
}

static void make_pair(int i, int cpu)
{
	struct pair *p = &pairs[i];
	int there[2], back[2];

	if (pipe(there) || pipe(back)) {
		perror("pipe");
		exit(1);
	}
	p->cpu = cpu;
	p->futex = i > 0;
	for (int k = 0; k < 2; k++) {
		struct side *s = &p->sides[k];

		*s = (struct side){ .pair = p, .first = !k, .in = k ? there[0] : back[0], .out = k ? back[1] : there[1],
				    .own = &p->turns[k], .others = &p->turns[!k], .slot = &counters->slot[2 * i + k],
				    .seed = 88172645463325252ull + (uint64_t)(2 * i + k) };
		strcpy(s->slot->kind, "turns");
	}
	for (int k = 0; k < 2; k++)
		if (pthread_create(&p->sides[k].thread, NULL, side_run, &p->sides[k])) {
			perror("pthread_create");
			exit(1);
		}
}

static void handle_stop(int signo)
{
	(void)signo;
	stopping = true;
}

static void print_spans(const struct side *s)
{
	for (int path = 0; path < 2; path++)
		for (uint64_t i = 0; i < SLOTS; i++)
			if (s->spent[path][i])
				printf("span %s %d %llu %llu %llu\n", path ? "rarely" : "often", s->tid,
				       (unsigned long long)(start_ns + i * SLOT_MS * 1000000),
				       (unsigned long long)(start_ns + (i + 1) * SLOT_MS * 1000000),
				       (unsigned long long)s->spent[path][i]);
}

int main(int argc, char **argv)
{
	double seconds = argument(argc, argv, 1, 5), wanted = argument(argc, argv, 2, 130000);
	int n = (int)sysconf(_SC_NPROCESSORS_ONLN);

	if (nice(10) < 0) /* for the same reason as the rests */
		perror("nice");
	n = n > MAX_PAIRS ? MAX_PAIRS : n < 2 ? 2 : n;
	rare_times = (int)argument(argc, argv, 3, 4);
	pairs = calloc(MAX_PAIRS, sizeof(*pairs));
	signal(SIGTERM, handle_stop);
	open_counters(argc > 4 ? argv[4] : NULL);
	start_ns = now_ns();
	for (int i = 0; i < n; i++)
		make_pair(i, i % (int)sysconf(_SC_NPROCESSORS_ONLN));
	settle(n, wanted);
	say_ready();
	uint64_t before = count_switches(n);
	double began = seconds_of(CLOCK_MONOTONIC);
	while (!stopping && seconds_of(CLOCK_MONOTONIC) < began + seconds)
		usleep(10000);
	printf("switches %llu %.3f\n", (unsigned long long)(count_switches(n) - before),
	       seconds_of(CLOCK_MONOTONIC) - began);
	for (int k = 0; k < 2; k++)
		print_spans(&pairs[0].sides[k]);
	fflush(stdout);
	_exit(0);
}
