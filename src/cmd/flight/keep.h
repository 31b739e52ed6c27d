/*
 * keep.h - the last minutes of a recording, in memory: rows of a profile that is recorded without an end.
 *
 * Rows (samples, wakes, points, marks) are taken out of the profile as they come and stand in pieces, by when they came. A piece
 * begins at a look, which notes how far every thread's times, the counters and the histograms were: what is cut out
 * of the recording begins at such a look, and has the differences. Tables that rows refer to (stacks, threads, modules) stay in the profile
 * and only grow.
 *
 *	each second:	keep_take(k);
 *	each step:	session_peek(s); session_tally(s, tally); keep_look(k, tally); keep_limit(k);
 *	an incident:	the same, and keep_snap(k, &snap): another thread may read it while the recording goes on
 *			... cut.h makes a profile of it ...; snap_done(&snap);
 *
 * Above the limit of bytes the rows of the oldest pieces are summed by event, thread and stack, and where that is not enough
 * the oldest pieces go. All calls are from one thread, also snap_done().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/profile.h"

struct keep_times {
	uint32_t thread;
	uint64_t run_ns, queue_ns, blocked_ns;
};

/* How far everything was. Names are strings of the profile. */
struct keep_moment {
	uint64_t time_ns;
	VEC(struct keep_times) threads; /* by number; those that had ended before the window began are left out */
	VEC(struct profile_counter) counters;
	VEC(struct profile_histogram) histograms;
};

struct keep_rows {
	VEC(struct profile_sample) samples;
	VEC(struct profile_wake) wakes;
	VEC(struct profile_taskwake) taskwakes;
	VEC(struct profile_point) points;
	VEC(struct profile_mark) marks;
};

/* Rows that came from its start on and before its end. But for the last piece of a window it is never changed: a snap may have it, too. */
struct keep_piece {
	unsigned users;
	struct keep_moment start;
	uint64_t end_ns;       /* 0: of the last */
	struct keep_rows rows;
	bool summed;           /* rows of one event, thread and stack are one, at the time of the start */
	uint64_t wakes_left_out;
};

struct keep {
	struct profile *p;     /* borrowed */
	uint64_t keep_ns, step_ns;
	uint64_t max_bytes;    /* of rows and tables; 0 = no limit. Half of it is for rows, however large the tables are */
	VEC(struct keep_piece *) pieces; /* oldest first */
	struct keep_rows open; /* what threads were in the middle of at the last look */
	struct keep_moment now;/* the last look */
	uint64_t summed_pieces, dropped_pieces; /* because of the limit, so far */
};

struct keep_snap {
	struct profile tables; /* copies, but for the text of strings: the profile has to outlive it. No rows */
	VEC(struct keep_piece *) pieces;
	struct keep_rows open;
	struct keep_moment to;
	uint64_t from_ns;      /* when the first piece begins */
};

void keep_init(struct keep *k, struct profile *p, uint64_t keep_ns, uint64_t max_bytes);
void keep_done(struct keep *k);
/* Rows that the profile has by now. */
void keep_take(struct keep *k);
/* After session_peek(), before which all was taken: the profile's rows are those of what is under way; tally: counters beside those
 * of the profile, may be NULL. The profile's duration says when it is. Drops what is too old. */
void keep_look(struct keep *k, const struct profile *tally);
/* Sums and drops pieces while there are more bytes than there may be. */
void keep_limit(struct keep *k);
/* Bytes of rows, and of the tables of the profile. */
uint64_t keep_row_bytes(const struct keep *k);
uint64_t keep_table_bytes(const struct keep *k);
/* The time that is kept, up to the last look. */
uint64_t keep_span_ns(const struct keep *k);

/* The times of a thread at a moment; all 0 where it was not there yet, or had ended long before. */
struct keep_times keep_times_of(const struct keep_moment *m, uint32_t thread);

/* All that is kept, as of the last look. */
void keep_snap(struct keep *k, struct keep_snap *ret);
void keep_snap_done(struct keep_snap *s);
/* After keep_snap(): the next snap begins where this one ended. */
void keep_next(struct keep *k);
