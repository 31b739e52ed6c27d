/*
 * pushbatch.h - windows of any targets of one server, collected and then delivered in one insert a table, each exactly once.
 *
 *	struct pushbatch *b = pushbatch_new(clickhouse, shard);
 *	for (...)
 *		r = pushbatch_add(b, &options, &windows, &windows.list.v[i], &err);
 *	r = pushbatch_send(b, &result, &err);	// one try; the batch is empty afterwards
 *	pushbatch_free(b);
 *
 * The rows of a window are made when it is added, so that its capture need not stay in memory. When they are sent, the store is asked which of the windows it has: those
 * are not committed again (push.h). An attempt that failed is not sent a second time: what it left in the store never counts, and whoever tries again adds
 * the windows again. Stacks and frames are sent once a day in the life of a batch, for all targets together.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clickhouse;
struct err;
struct push_options;
struct pushbatch;
struct window;
struct windows;

/* A batch is full with so many windows, or bytes of rows: it is in memory, once more packed, and on the wire within one timeout. */
enum { PUSHBATCH_WINDOWS = 64, PUSHBATCH_BYTES = 8 << 20 };

struct pushbatch_result {
	uint64_t windows, rows; /* sent */
	uint64_t there;         /* found in the store; also where it failed, if the store had answered that */
};

/* Borrows c. */
struct pushbatch *pushbatch_new(struct clickhouse *c, unsigned shard);
void pushbatch_free(struct pushbatch *b); /* NULL is fine; what was not sent is gone */
/* x: one of w. Copies what it needs. One that is in it already is passed over; -EEXIST: it is there with other sums. */
int pushbatch_add(struct pushbatch *b, const struct push_options *o, const struct windows *w, const struct window *x, struct err *err);
void pushbatch_clear(struct pushbatch *b);
bool pushbatch_is_full(const struct pushbatch *b);
size_t pushbatch_count(const struct pushbatch *b);
/* -EEXIST: the store has one of them with other sums; none was sent. Else as clickhouse.h has it. An empty one sends nothing. */
int pushbatch_send(struct pushbatch *b, struct pushbatch_result *ret, struct err *err);
