/*
 * heappace.h - whether samples come faster than they can be had, and are to be taken more rarely.
 *
 * A sample costs the target about 2 us, and its free as much: a program that does nothing but allocate would spend a tenth of its
 * time on one every 512 KB. What comes faster than it is read is lost; and so are samples for which the hooks' table
 * has no room. In each case the interval is doubled. An interval that was asked for is steady: it rises only where samples are
 * lost.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct heappace_seen {
	uint64_t samples;   /* allocations and frees, so far */
	uint64_t lost;      /* on their way */
	uint64_t no_room;   /* in the table */
	uint64_t live;      /* in the table now */
	uint64_t cpu_ns;    /* of the targets */
};

struct heappace {
	bool steady;
	/* The rest is private. */
	uint64_t time_ns;
	struct heappace_seen last;
	uint64_t live_then; /* when the table was the reason */
};

/* Every 100 ms. */
bool heappace_due(const struct heappace *p, uint64_t now);
/* Then: why the interval is to be doubled, NULL: it is not. */
const char *heappace_look(struct heappace *p, uint64_t now, const struct heappace_seen *seen);
