/*
 * pushrows.h - the rows of windows, table by table, as they are sent to a store. For push.c and pushbatch.c.
 *
 *	struct pushrows r = { .attempt = new_attempt };
 *	pushrows_add(&r, &(struct pushrows_from){ &options, &sent, windows, &windows->list.v[i] });
 *	e = pushrows_send(&r, clickhouse, shard, &err);
 *	pushrows_done(&r);
 *
 * Rows are copies: windows and their profile need not outlive pushrows_add(). They are sent at most once with one number of an attempt: half of
 * them may be there already when it fails.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"

struct clickhouse;
struct err;
struct push_options;
struct window;
struct windows;

/* Stacks and frames of a day that the store has, as far as whoever pushes knows. */
struct pushsent {
	uint64_t day;    /* the last one that something was sent with */
	struct map keys; /* of that day, and of earlier ones that came since; map_done() */
};

/* What is in these rows, and would be forgotten if they do not arrive. */
struct pushnamed {
	struct pushsent *sent;
	uint64_t key;
};

struct pushrows {
	uint64_t attempt, count;
	struct buf samples, threads, blocks, counters, points, stacks, frames, commits;
	VEC(struct pushnamed) named;
};

/* All is borrowed: sent until pushrows_done(), the rest for the call. */
struct pushrows_from {
	const struct push_options *o;
	struct pushsent *sent;
	const struct windows *w;
	const struct window *x; /* one of them */
};

void pushrows_add(struct pushrows *r, const struct pushrows_from *from);
/* The commits are the last to go. Errors as clickhouse.h has them. */
int pushrows_send(struct pushrows *r, struct clickhouse *c, unsigned shard, struct err *err);
size_t pushrows_bytes(const struct pushrows *r);
/* Frees the rows. The stacks and frames of those that were not sent are no longer taken for sent. */
void pushrows_done(struct pushrows *r);
