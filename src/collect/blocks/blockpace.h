/*
 * blockpace.h - when a node that does not tell of its blocks is asked for the newest one.
 *
 * Blocks come at their own pace, and a question that comes before the next block is due finds nothing. For three quarters of
 * the shortest of the last eight gaps nobody asks; then the node is asked five times a second until the block is there. A
 * chain whose blocks come closer together has a shorter gap with the first of them. Where a chain has halted, the questions
 * become fewer, down to one a second.
 *
 * A value without pointers, all zero at the beginning; it reads no clock. Times are of one clock, in nanoseconds; a time that
 * is before an earlier one, or far behind it, makes it ask too often, never too seldom. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	BLOCKPACE_GAPS = 8,
	BLOCKPACE_ASK_MS = 200,   /* between two questions, once a block is due */
	BLOCKPACE_SLOW_MS = 1000, /* the same where the chain has halted */
	BLOCKPACE_SHORT_MS = 2000, /* nobody asks for so long at most, while fewer gaps than that are known */
	BLOCKPACE_LONG_MS = 10000, /* and then */
};

struct blockpace {
	uint64_t gaps_ns[BLOCKPACE_GAPS]; /* a ring of the last ones */
	uint32_t count;                   /* gaps that are known, at most all */
	uint32_t next;                    /* the gap that is replaced next */
	uint64_t block_ns;                /* when a new block was seen last, or the first answer came */
	bool begun, seen;                 /* there was an answer; there was a new block */
};

/* An answer came: since the last one there are so many new blocks; 0: none is. */
void blockpace_answered(struct blockpace *p, uint64_t now_ns, uint64_t new_blocks);
/* How long to wait before the next question, from the moment of the last answer. */
uint32_t blockpace_wait_ms(const struct blockpace *p, uint64_t now_ns);
