/*
 * workload.h - the bundled workload: a small program that does, in known amounts,
 * what a node does. It computes, locks, reads and writes files, commits, serves,
 * allocates and faults, so that every collector has something to find. Built
 * without frame pointers.
 *
 * A kind of work is one function that does one short unit (some 10 to 200 us) and
 * one line in main.c's table. Units are counted for each thread in slots that can
 * be mapped from outside (--counters FILE), so that a bench can read throughput
 * live.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct trie;

#define COUNTERS_MAGIC 0x31464c57464c4147ull
#define COUNTERS_SLOTS 64

/* One thread's counter, on a cache line of its own. bench/lib reads this layout. */
struct counter_slot {
	char kind[24];
	_Atomic uint64_t units;
	uint64_t pad[4];
};
_Static_assert(sizeof(struct counter_slot) == 64, "one cache line");

struct counters {
	uint64_t magic, slots;
	uint64_t pad[6];
	struct counter_slot slot[COUNTERS_SLOTS];
};

/* What one thread works with; zeroed, then the seed set, before its first unit. */
struct worker {
	uint64_t seed;
	const char *folder; /* for files; exists */
	struct trie *trie;  /* compute: made on the first unit */
	int fd;             /* disk, commit, serve: opened on the first unit */
	uint64_t turn;
	void *blocks[64];   /* alloc: what is live */
	uint64_t result;    /* so that no work can be optimized away */
};

/* Random numbers: xorshift, the same for the same seed. */
static inline uint64_t worker_random(struct worker *w)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return w->seed;
}

/* A unit of work each. */
void compute_unit(struct worker *w);
void lock_produce_unit(struct worker *w);
void lock_consume_unit(struct worker *w);
void disk_unit(struct worker *w);
void alloc_unit(struct worker *w);
void fault_unit(struct worker *w);
void commit_unit(struct worker *w);
void query_unit(struct worker *w);
void pool_unit(struct worker *w);
void serve_unit(struct worker *w);
void ask_unit(struct worker *w);

/* Keccak-like mixing of a state of 25 words. Async-signal-safe: the timer's handler calls it too. */
void mix_state(uint64_t state[25], int rounds);

/* Wakes whoever waits in a lock or pool unit, for the end. */
void lock_shutdown(void);
void pool_shutdown(void);

/* Opens w->fd, a file without a name in w->folder. */
void disk_open(struct worker *w);

void compute_done(struct worker *w);
void disk_done(struct worker *w);
void alloc_done(struct worker *w);
