/*
 * counted.c - faults, switches and CPU time of three functions, as the kernel counts them for this process.
 *
 *	truth-counted ROUNDS
 *
 * prints, at its end, "TIME SPENT: N ms" for the second half of its rounds and a line of name=value.
 */
#include "../truth.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { PAGES = 200, NAPS = 20 };

static NOINLINE void toucher(void)
{
	char *p = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	madvise(p, PAGES * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < PAGES; i++)
		p[i * 4096L] = 1;
	munmap(p, PAGES * 4096);
}

static NOINLINE void napper(void)
{
	const struct timespec t = { .tv_nsec = 100000 };

	for (int i = 0; i < NAPS; i++)
		nanosleep(&t, NULL);
}

static NOINLINE uint64_t burner(void)
{
	return spin(10000000);
}

struct spent {
	long faults, switches;
	double cpu;
};

static struct spent look(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (struct spent){ u.ru_minflt, u.ru_nvcsw + u.ru_nivcsw, seconds_of(CLOCK_PROCESS_CPUTIME_ID) };
}

static void add(struct spent *to, const struct spent *before)
{
	const struct spent now = look();

	to->faults += now.faults - before->faults;
	to->switches += now.switches - before->switches;
	to->cpu += now.cpu - before->cpu;
}

int main(int argc, char **argv)
{
	int rounds = (int)argument(argc, argv, 1, 30);
	struct spent touched = { 0 }, napped = { 0 }, burnt = { 0 }, half = { 0 }, before, middle = { 0 };
	double start = 0;

	say_ready();
	for (int i = 0; i < rounds; i++) {
		if (i == rounds / 2) {
			start = seconds_of(CLOCK_MONOTONIC);
			middle = look();
		}
		before = look();
		toucher();
		add(&touched, &before);
		before = look();
		napper();
		add(&napped, &before);
		before = look();
		if (!burner())
			abort();
		add(&burnt, &before);
	}
	add(&half, &middle);
	printf("TIME SPENT: %.3f ms\n", (seconds_of(CLOCK_MONOTONIC) - start) * 1e3);
	printf("touched_faults=%ld napped_switches=%ld burnt_s=%.6f all_s=%.6f half_s=%.6f half_faults=%ld\n", touched.faults,
	       napped.switches, burnt.cpu, look().cpu, half.cpu, half.faults);
	return 0;
}
