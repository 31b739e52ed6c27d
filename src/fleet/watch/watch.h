/*
 * watch.h - functions, causes, CPU time and times of blocks that changed between two releases or times, over a fleet and for each node.
 *
 *	struct watch_options o = { .side = { { "v2.5.0", from, to }, { "v2.5.1", from, to } } };
 *	struct watch w;
 *	r = watch_make(&w, clickhouse, &o, &err);
 *	for (size_t i = 0; i < w.list.n; i++)
 *		if (w.list.v[i].change.significant)
 *			...
 *	watch_done(&w);
 *
 * A measurement is a target in ten minutes, of sides of more than twelve hours in an hour (change.h). Functions come from roll-ups
 * (rollup.h), all else from windows and blocks; the store adds up.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "fleet/watch/change.h"

struct clickhouse;
struct err;

struct watch_side {
	const char *release;     /* NULL = any */
	uint64_t from_ns, to_ns; /* CLOCK_REALTIME */
};

struct watch_options {
	struct watch_side side[2]; /* before and after */
	const char *target;        /* a glob; NULL = all */
	const char *event;         /* of the functions; NULL = "cpu" */
};

enum watch_kind {
	WATCH_FUNCTION, /* its own share of the event */
	WATCH_CAUSE,    /* time that threads waited for it in a second, in seconds: so many threads, all the time */
	WATCH_CPU,      /* CPU time in a second, in seconds */
	WATCH_BLOCK,    /* mean time of a block, in seconds */
	WATCH_KINDS,
};

struct watch_row {
	const char *target; /* NULL = all nodes together */
	enum watch_kind kind;
	const char *name;   /* of the function or the cause, else "" */
	struct change_row change; /* its arrays are not valid */
};

struct watch {
	VEC(struct watch_row) list; /* significant ones first, all nodes before single ones, largest change first */
	size_t significant, significant_all; /* _all: of all nodes together */
	size_t tested;
	size_t nodes[2], units[2];  /* on each side */
	size_t common;              /* nodes that are on both sides, and are compared with themselves */
	uint64_t unit_ns;
	uint64_t unrolled;          /* hours of nodes whose functions are not rolled up, and are missing */
	unsigned away;              /* shards that did not answer */
	char *away_text;
	/* The rest is private. */
	struct watch_tables *tables;
};

/* -ENODATA: a side has nothing; the sentence says which. -E2BIG: too much for one comparison. watch_done() in any case. */
int watch_make(struct watch *w, struct clickhouse *c, const struct watch_options *o, struct err *err);
void watch_done(struct watch *w);
