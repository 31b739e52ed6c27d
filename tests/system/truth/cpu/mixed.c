/*
 * mixed.c SECONDS [SLOWER] [SEED] [THREADS] - a load as uneven as a node's: 30 functions, of which most
 * come and go in random phases, some of them under others and some shared by many callers. SLOWER is by how
 * many percent blend_state takes longer than it should, all else being equal; it is a bit more than a quarter
 * of the time.
 * Without a seed every run is another one.
 */
#include "../truth.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { LEAVES = 24, PHASES = 5 };

struct mixer {
	pthread_t thread;
	uint64_t random, sink;
};

static double end_at, per_us = 1000, slower = 1;

static uint64_t next(struct mixer *m)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return m->random;
}

/* 0 to 1 */
static double chance(struct mixer *m)
{
	return (double)(next(m) >> 11) / 9007199254740992.0;
}

/* No function, so that the time is the caller's own. */
#define BURN(x, steps)                                \
	for (uint64_t i_ = 0; i_ < (steps); i_++) {   \
		x ^= x << 13;                         \
		x ^= x >> 7;                          \
		__asm__ volatile("" : "+r"(x));       \
	}

/* Each adds its own number, so that no two are alike to the compiler. */
#define LEAF(n)                                          \
	static NOINLINE uint64_t leaf_##n(uint64_t steps) \
	{                                                \
		uint64_t x = 7 * n + 1;                  \
		BURN(x, steps)                           \
		return x + n;                            \
	}
LEAF(0) LEAF(1) LEAF(2) LEAF(3) LEAF(4) LEAF(5) LEAF(6) LEAF(7) LEAF(8) LEAF(9) LEAF(10) LEAF(11)
LEAF(12) LEAF(13) LEAF(14) LEAF(15) LEAF(16) LEAF(17) LEAF(18) LEAF(19) LEAF(20) LEAF(21) LEAF(22) LEAF(23)

static uint64_t (*const leaves[LEAVES])(uint64_t) = {
	leaf_0, leaf_1, leaf_2, leaf_3, leaf_4, leaf_5, leaf_6, leaf_7, leaf_8, leaf_9, leaf_10, leaf_11,
	leaf_12, leaf_13, leaf_14, leaf_15, leaf_16, leaf_17, leaf_18, leaf_19, leaf_20, leaf_21, leaf_22,
	leaf_23,
};

/* Called by all of the others. */
static NOINLINE uint64_t shared_hash(uint64_t steps)
{
	uint64_t x = 1001;

	BURN(x, steps)
	return x;
}

static NOINLINE uint64_t blend_state(uint64_t steps)
{
	uint64_t x = 1002, more = (uint64_t)((double)steps * slower);

	BURN(x, more)
	return x;
}

#define CALLER(name, n)                                                   \
	static NOINLINE uint64_t name(uint64_t leaf, uint64_t steps)      \
	{                                                                 \
		uint64_t x = n, own = steps / n;                          \
		BURN(x, own)                                              \
		x += leaves[leaf](steps);                                 \
		return x + shared_hash(steps / 4) + n;                    \
	}
CALLER(read_path, 9)
CALLER(write_path, 5)
CALLER(verify_path, 7)
CALLER(sweep_path, 11)

/* One piece of work of about 200 us: which leaf is likely depends on the phase. */
static NOINLINE void work_piece(struct mixer *m, unsigned phase)
{
	uint64_t steps = (uint64_t)((0.3 + 1.4 * chance(m)) * 100 * per_us);
	unsigned leaf = chance(m) < 0.5 ? phase * 4 + next(m) % 4 : next(m) % LEAVES;

	switch (leaf % 4) {
	case 0: m->sink += read_path(leaf, steps); break;
	case 1: m->sink += write_path(leaf, steps); break;
	case 2: m->sink += verify_path(leaf, steps); break;
	default: m->sink += sweep_path(leaf, steps);
	}
	if (next(m) % 3)
		m->sink += blend_state((uint64_t)((0.5 + chance(m)) * 80 * per_us));
}

/* Phases of 10 to 310 ms, with a nap after some. */
static void *mix(void *context)
{
	struct mixer *m = context;

	while (seconds_of(CLOCK_MONOTONIC) < end_at) {
		unsigned phase = next(m) % PHASES;
		double until = seconds_of(CLOCK_MONOTONIC) + 0.01 + 0.3 * chance(m);

		while (seconds_of(CLOCK_MONOTONIC) < until)
			work_piece(m, phase);
		if (next(m) % 4 == 0)
			usleep((useconds_t)(20000 * chance(m)));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t seed = (uint64_t)argument(argc, argv, 3, 0);
	int threads = (int)argument(argc, argv, 4, 2);
	static struct mixer mixers[16];

	end_at = seconds_of(CLOCK_MONOTONIC) + argument(argc, argv, 1, 5);
	slower = 1 + argument(argc, argv, 2, 0) / 100;
	if (!seed)
		seed = (uint64_t)(seconds_of(CLOCK_REALTIME) * 1e6) ^ (uint64_t)getpid() << 40;
	for (int i = 0; i < threads && i < 16; i++) {
		mixers[i].random = (seed + (uint64_t)i * 7919) * 0x9e3779b97f4a7c15 | 1;
		pthread_create(&mixers[i].thread, NULL, mix, &mixers[i]);
	}
	say_ready();
	for (int i = 0; i < threads && i < 16; i++)
		pthread_join(mixers[i].thread, NULL);
	return 0;
}
