/*
 * functions.h - fills the table function_sum: what was measured in each function and in all that it called.
 *
 * The view top_functions needs the sums of every node of the tree of stacks and must know which calls are recursive. SQL
 * takes ten seconds for a tree of 250,000 nodes; one walk over arrays takes some hundredths of a second. A recorder
 * writes the table when it closes the file, if it is small beside the samples. Where the table is empty, the view
 * computes the same by SQL.
 *
 * A row is an event and a function, which a frame and a depth in its inlined calls stand for: functions are the same
 * when the view frames has the same name, module and kind for them. One more row of each event, whose frame is NULL,
 * has the sum of the event as its total.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

struct weights_sum;

/*
 * Fills schema.function_sum ("main", "temp"), which is there and empty, from n sums ordered by event, in one
 * transaction. rows is how many samples were summed. Returns 0 or SQLite's error code. The table stays empty when there
 * are fewer samples than worth for each of its rows, when it failed, and when the tree is not as a recorder writes it:
 * nodes numbered from 1 on, parents before their children, frames of known kinds. Then SQL must say what it means.
 */
int functions_fill(sqlite3 *db, const char *schema, const struct weights_sum *sums, size_t n, uint64_t rows,
		   unsigned worth);
