/*
 * weights.h - fills the table weight: all samples summed by event, thread and stack.
 *
 * The views of a capture show sums over the whole recording. An hour has tens of millions of samples, and SQL takes
 * more than a second to group a million; their sums are a few hundred thousand rows. A recorder writes them when it
 * closes the file, if they are few beside the samples. Where the table is empty, the views sum the samples.
 */
#pragma once

#include <stdint.h>

#include <sqlite3.h>

/* Samples for each sum, at least, for which a file carries the sums: then they take a twentieth of its size. */
enum { WEIGHTS_WORTH = 16 };

/* Which tables to fill. */
enum {
	WEIGHTS_SUMS = 1 << 0,      /* weight */
	WEIGHTS_FUNCTIONS = 1 << 1, /* function_sum (functions.h) */
	WEIGHTS_EVENTS = 1 << 2,    /* event_sum: a row for each event that has samples, however few */
};

enum { WEIGHTS_THREAD_BITS = 24, WEIGHTS_STACK_BITS = 32 };

struct weights_sum {
	uint64_t key; /* event, thread, stack from the highest bits on: the order of the rows */
	uint64_t samples, value;
};

static inline unsigned weights_event(const struct weights_sum *s)
{
	return s->key >> (WEIGHTS_THREAD_BITS + WEIGHTS_STACK_BITS);
}

static inline uint32_t weights_thread(const struct weights_sum *s)
{
	return s->key >> WEIGHTS_STACK_BITS & ((1 << WEIGHTS_THREAD_BITS) - 1);
}

static inline uint32_t weights_stack(const struct weights_sum *s)
{
	return (uint32_t)s->key;
}

/*
 * Fills these tables of schema ("main", "temp"), which are there and empty, each in one transaction. Returns 0 or
 * SQLite's error code. A table stays empty when there are fewer samples than worth for each of its rows, when it failed,
 * and when the samples are such that SQL must sum them: words in place of numbers, or more than some millions of
 * different sums.
 */
int weights_fill(sqlite3 *db, const char *schema, unsigned tables, unsigned worth);
