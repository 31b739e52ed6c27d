/*
 * budgetload.c KIND COUNTERS - one kind of work on all CPUs, until it is killed: what a recording takes from it is to be
 * compared with --max-overhead.
 *
 *	cpu        computes
 *	switches   pairs of threads on each CPU hand each other the turn through pipes, with some microseconds of work
 *	syscalls   reads 64 bytes at a time, with a few microseconds of work
 *	faults     touches pages that it gave back, with some work
 *
 * Says "ready". Units of work are counted in COUNTERS (workload.h).
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "workload.h"

enum { PAGE = 4096, PAGES = 64, READ_BYTES = 64 };

struct side {
	struct counter_slot *slot;
	int cpu;
	int in, out; /* switches */
	uint64_t state;
};

static void count(struct side *s, uint64_t units)
{
	atomic_fetch_add_explicit(&s->slot->units, units, memory_order_relaxed);
}

/* About a nanosecond a turn. */
static __attribute__((noinline)) void work(struct side *s, unsigned turns)
{
	for (unsigned i = 0; i < turns; i++) {
		s->state ^= s->state << 13;
		s->state ^= s->state >> 7;
		s->state ^= s->state << 17;
	}
}

static void compute(struct side *s)
{
	for (;;) {
		work(s, 5000);
		count(s, 1);
	}
}

static void take_turns(struct side *s)
{
	char c;

	while (read(s->in, &c, 1) == 1) {
		work(s, 4000);
		count(s, 1);
		if (write(s->out, &c, 1) != 1)
			break;
	}
}

static void call(struct side *s)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char bytes[READ_BYTES];

	while (read(fd, bytes, sizeof(bytes)) == sizeof(bytes)) {
		work(s, 3000);
		count(s, 1);
	}
}

static void fault(struct side *s)
{
	char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(1);
	madvise(memory, PAGES * PAGE, MADV_NOHUGEPAGE);
	for (;;) {
		madvise(memory, PAGES * PAGE, MADV_DONTNEED);
		for (int i = 0; i < PAGES; i++) {
			*(volatile char *)(memory + i * PAGE) = 1;
			work(s, 4000);
		}
		count(s, PAGES);
	}
}

static const struct kind {
	const char *name;
	void (*run)(struct side *s);
} kinds[] = { { "cpu", compute }, { "switches", take_turns }, { "syscalls", call }, { "faults", fault } };
static const struct kind *kind;

static void *run(void *side)
{
	struct side *s = side;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(s->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	kind->run(s);
	return NULL;
}

static struct counters *map_counters(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct counters *c;

	if (fd < 0 || ftruncate(fd, sizeof(*c)))
		return NULL;
	c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return c == MAP_FAILED ? NULL : c;
}

static bool start(struct side *s, struct counter_slot *slot, int cpu)
{
	pthread_t thread;

	s->slot = slot;
	s->cpu = cpu;
	s->state = 88172645463325252ULL + cpu;
	snprintf(slot->kind, sizeof(slot->kind), "%s", kind->name);
	return !pthread_create(&thread, NULL, run, s);
}

/* A pair on each CPU, and one turn for each. */
static bool start_pair(struct side *s, struct counter_slot *slots, int cpu)
{
	int there[2], back[2];

	if (pipe(there) || pipe(back))
		return false;
	s[0].in = back[0];
	s[0].out = there[1];
	s[1].in = there[0];
	s[1].out = back[1];
	return start(&s[0], &slots[0], cpu) && start(&s[1], &slots[1], cpu) && write(there[1], "x", 1) == 1;
}

int main(int argc, char **argv)
{
	static struct side sides[COUNTERS_SLOTS];
	struct counters *c = argc == 3 ? map_counters(argv[2]) : NULL;
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (size_t i = 0; argc == 3 && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, argv[1]))
			kind = &kinds[i];
	if (!kind || !c) {
		fprintf(stderr, "usage: budgetload cpu|switches|syscalls|faults COUNTERS\n");
		return 2;
	}
	for (int i = 0; i < cpus && 2 * i + 1 < COUNTERS_SLOTS; i++)
		if (!(kind->run == take_turns ? start_pair(&sides[2 * i], &c->slot[2 * i], i) : start(&sides[2 * i], &c->slot[2 * i], i)))
			return 1;
	c->slots = COUNTERS_SLOTS;
	c->magic = COUNTERS_MAGIC;
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
