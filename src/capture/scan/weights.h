/*
 * weights.h - fills the table weight: all samples summed by event, thread and stack.
 *
 * The views of a capture show sums over the whole recording. An hour has tens of millions of samples, and SQL takes
 * more than a second to group a million; their sums are a few hundred thousand rows. A recorder writes them when it
 * closes the file, if they are few beside the samples. Where the table is empty, the views sum the samples.
 */
#pragma once

#include <sqlite3.h>

/* Samples for each sum, at least, for which a file carries the sums: then they take a twentieth of its size. */
enum { WEIGHTS_WORTH = 16 };

/*
 * Fills schema.weight ("main", "temp"), which is there and empty, in one transaction. Returns 0 or SQLite's error code.
 * The table stays empty when there are fewer samples than worth for each sum, when it failed, and when the samples are
 * such that SQL must sum them: words in place of numbers, or more than some millions of different sums.
 */
int weights_fill(sqlite3 *db, const char *schema, unsigned worth);
