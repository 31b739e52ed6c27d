/*
 * rollup.h - what each function of a target cost in ten minutes, made once for each hour and kept in the table `functions`.
 *
 *	struct rollup_result result = { 0 };
 *	r = rollup_hours(clickhouse, shard, &(struct rollup_options){ .target = "reth-1", .now_ns = clock_wall_ns() }, &result, &err);
 *
 * The names and sums are those of reports: itself and with all that it calls, recursion counted once, without idle waits. The row
 * whose name is "" is the sum of its event. As with windows (push.h), rows go first and a row in `rollups` commits them; it says how
 * many windows they were made from, and a digest of those. A reader takes a roll-up only if the windows that are committed now are
 * the same: one that came late makes the roll-up of its hour stale, the samples are read instead, and the next call makes it again.
 * docs/decisions/0027-rollups.md says why it is done so.
 */
#pragma once

#include <stdint.h>

struct buf;
struct clickhouse;
struct err;

enum { ROLLUP_HOUR_SECONDS = 3600, ROLLUP_SLOT_SECONDS = 600, ROLLUP_MOST = 480 };

struct rollup_options {
	const char *target;      /* NULL: all of the shard */
	uint64_t from_ns, to_ns; /* hours that begin in it; from 0: ever, to 0: now */
	uint64_t now_ns;         /* an hour is made when it is over since two minutes */
	unsigned most;           /* hours in this call; 0 = ROLLUP_MOST */
};

struct rollup_result {
	uint64_t made, rows;
	uint64_t left;           /* hours that are over and still to be made: call again */
};

/* Makes the roll-ups that are missing or stale, the oldest first. *ret adds up, but for left. Errors as clickhouse.h has them;
 * -ENXIO: the store has no tables of version 2, which `gasflame store init` adds. */
int rollup_hours(struct clickhouse *c, unsigned shard, const struct rollup_options *o, struct rollup_result *ret, struct err *err);

/* Adds a question for the windows of each hour, with columns target, hour (seconds since 1970), windows and digest. where: a condition
 * on the table `windows`. */
void rollup_put_hours(struct buf *sql, const char *where);
/* Adds a question for target and hour of those that have a roll-up which counts, and one for the numbers of these, one for each. where: as
 * above, of whole hours; rollups_where: the same time on `rollups`. */
void rollup_put_covered(struct buf *sql, const char *where, const char *rollups_where);
void rollup_put_valid(struct buf *sql, const char *where, const char *rollups_where);
