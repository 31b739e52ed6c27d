/*
 * summing.h - keeps the rows of a capture below a size: sums the oldest, in place and step by step.
 *
 * The rows of a second or more of recording, as the flushes wrote them, are a piece. A step takes one piece, or some that
 * follow one another, reads its rows, deletes them and inserts their sums at the same place, in one transaction; a recorder that is
 * killed leaves a piece either as it was or summed. Pages that become free are used again for new rows.
 *
 *	below a quarter of the limit	nothing is summed
 *	above			pieces older than full_ns are summed, by slots of their own length
 *	above three quarters	four old pieces become one, and their slots: 4 s, 16 s, ...
 *	above seven eighths	pieces younger than full_ns are summed, too
 *
 * Spans of slow marks stay as they are (sumslots.h) up to an eighth of the limit. For src/capture only, in the recorder's thread.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "capture/sum/sumslots.h"

struct profile;

enum summing_statement {
	SUMMING_PAGES, SUMMING_FREE_PAGES, SUMMING_BEGIN, SUMMING_COMMIT, SUMMING_ROWS, SUMMING_DELETE, SUMMING_INSERT,
	SUMMING_CLEAR_SLOTS, SUMMING_SLOT, SUMMING_WAKES, SUMMING_DELETE_WAKE, SUMMING_TASK_WAKES, SUMMING_DELETE_TASK_WAKE,
	SUMMING_STATEMENTS,
};

/* Tables of wakes: of threads and of tasks. */
enum summing_wakes { SUMMING_OF_THREADS, SUMMING_OF_TASKS, SUMMING_WAKE_TABLES };

struct summing_piece {
	int64_t first_row;             /* rowids; the next piece's are the ends */
	int64_t first_wake[SUMMING_WAKE_TABLES];
	uint64_t end_ns;               /* it begins where the one before ends */
	uint64_t full;                 /* rows that stayed because of a mark */
	uint32_t rows;
	uint8_t level;                 /* 0: as recorded, 1: summed, 2: four of these summed again, ... */
	bool again;                    /* a mark in it need not stay any more */
};

struct summing {
	sqlite3 *db; /* the caller's */
	sqlite3_stmt *statements[SUMMING_STATEMENTS];
	uint64_t limit_bytes, full_ns; /* limit 0: nothing is summed */
	uint64_t page_bytes;
	VEC(struct summing_piece) pieces; /* by time; levels only fall */
	int64_t next_row, next_wake[SUMMING_WAKE_TABLES];
	struct sumslots slots;            /* of all time that was summed */
	struct sumspans full;
};

/* These return 0, or -1 with the reason in db. limit 0: nothing is ever summed. */
int summing_init(struct summing *s, sqlite3 *db, uint64_t limit_bytes, uint64_t full_ns);
/* After a flush: the new rows of p are those from samples, wakes and taskwakes on. */
void summing_note(struct summing *s, const struct profile *p, size_t samples, size_t wakes, size_t taskwakes);
/* Does what is due, at most two pieces of work of some ten milliseconds. */
int summing_step(struct summing *s, struct profile *p);
/* After a step that failed: it may be tried again. */
void summing_undo(struct summing *s);
void summing_finalize(struct summing *s);
void summing_done(struct summing *s);
