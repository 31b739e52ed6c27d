/*
 * truth.h - shared by the programs whose profile is known beforehand. Each burns CPU in
 * functions with telling names and says on stdout what is true; the tests compare.
 *
 * Built at -O2 without frame pointers and without sanitizers, with debug information.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))

static inline double seconds_of(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Some work, about 1 ns a step; inlined into whoever burns. Equal functions would be folded into one by
 * the compiler: give each its own number of steps. */
static inline __attribute__((always_inline)) uint64_t spin(uint64_t steps)
{
	uint64_t x = steps | 1;
	for (uint64_t i = 0; i < steps; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

/* For who burns to be seen, not to use up the machine: call it between two short pieces of work, and percent of the time is
 * work. CPU time counts, so that a busy machine makes it no less. */
static inline void rest_of(double percent)
{
	static __thread double since;
	double worked = seconds_of(CLOCK_THREAD_CPUTIME_ID) - since;

	if (percent >= 100 || worked < 0.005)
		return;
	double nap = worked * (100 - percent) / percent;
	nanosleep(&(struct timespec){ (time_t)nap, (long)((nap - (double)(time_t)nap) * 1e9) }, NULL);
	since = seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

static inline double argument(int argc, char **argv, int i, double otherwise)
{
	return argc > i ? atof(argv[i]) : otherwise;
}

/* Every program says "ready" once it works, so that a test need not guess. With GATED in its environment it then waits
 * for a line: its work begins when the test says so (record_whole in lib.sh). */
static inline void say_ready(void)
{
	puts("ready");
	fflush(stdout);
	if (getenv("GATED"))
		while (getchar() != '\n' && !feof(stdin))
			;
}
