/*
 * capturerows.h - the rows of a capture: writes the new rows of a profile into the file. For src/profile
 * only.
 *
 * It remembers how much of each append-only table is in the file, and keeps a copy of rows that may still
 * change. A call that fails leaves both as they were: SQLite has the reason, capturerows_undo() rolls the
 * transaction back, and it may be tried again.
 */
#pragma once

#include <sqlite3.h>

#include "base/vec.h"
#include "capture/columns.h"
#include "profile/profile.h"
#include "profile/redact.h"

/* One that inserts for each table, by enum capture_table, and these. */
enum statement { CLEAR_LINES = TABLES, COMMIT, LIST_SAMPLES, LIST_WAKES, LIST_TASK_WAKES, STACK_OF_SAMPLE,
		 STACKS_OF_WAKE, STACK_OF_TASK_WAKE, STATEMENTS };

/* How much of each append-only table is in the file. */
struct saved {
	size_t events, owners, mappings, ranges, functions, frames, lines, stacks, samples, wakes, taskwakes, marks, summed, series, points,
		replaced;
};

/* Rows that may change after they were written: a copy of those in the file. */
struct facts {
	uint32_t target, host, kernel;
	uint64_t start_wall_ns, duration_ns;
	bool finished;
};

struct capturerows {
	sqlite3 *db; /* the caller's */
	sqlite3_stmt *statements[STATEMENTS];
	bool begun;
	struct saved saved;
	struct facts facts;
	bool facts_saved;
	struct redact redact;
	VEC(uint64_t) periods; /* of the events, as in the file: a sample without a value has this one */
	VEC(struct profile_process) processes;
	VEC(struct profile_thread) threads;
	VEC(struct profile_module) modules;
	VEC(struct profile_histogram) histograms;
	VEC(struct profile_counter) counters;
};

/* These return 0, or -1 with the reason in db. */
int capturerows_init(struct capturerows *w, sqlite3 *db);
/* All that is new, in one transaction. */
int capturerows_put(struct capturerows *w, const struct profile *p);
void capturerows_undo(struct capturerows *w);
/* Takes out of p the samples, wakes, wakes of tasks and points that are in the file. */
void capturerows_drop(struct capturerows *w, struct profile *p);
/* The statements only: after that the file can be closed. */
void capturerows_finalize(struct capturerows *w);
void capturerows_done(struct capturerows *w);
