/*
 * map.h - a figure of all nodes over time, for a heat map: nodes x slots. The store adds up; what comes back is one number a cell.
 *
 *	struct fleetmap m;
 *	struct fleetmap_options o = { .figure = FLEETMAP_FUNCTION, .name = "state_root", .from_ns = from, .to_ns = to };
 *	r = fleetmap_make(&m, clickhouse, &o, &err);
 *	for (size_t i = 0; i < m.nodes.n; i++)
 *		draw(m.nodes.v[i].target, m.nodes.v[i].values, m.slots);	// NAN: nothing is known of that slot
 *	fleetmap_done(&m);
 *
 * A window counts for the slot in which it begins, a block for that in which its window begins. All shards are asked, and a target
 * that is on two of them is one node. One thread at a time, as the client.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct clickhouse;
struct err;

enum fleetmap_figure {
	FLEETMAP_BLOCK_MEAN, /* time of a block: mean, 95th percentile, longest; ns */
	FLEETMAP_BLOCK_P95,
	FLEETMAP_BLOCK_MAX,
	FLEETMAP_CPU,        /* CPU time of the target: 1 = one CPU, all the time */
	FLEETMAP_CAUSE,      /* share of a cause in the time that threads ran, queued and waited for work that was under way; 0 to 1 */
	FLEETMAP_FUNCTION,   /* share of a function in an event, itself and what it calls; 0 to 1 */
	FLEETMAP_SELF,       /* the same without what it calls */
	FLEETMAP_RSS,        /* resident memory, the largest of a slot; bytes */
	FLEETMAP_FIGURES,
};

/* By its word in addresses and options: "block-p95", "function"; FLEETMAP_FIGURES: it is none. */
enum fleetmap_figure fleetmap_figure(const char *word);
const char *fleetmap_word(enum fleetmap_figure f);
/* "ns", "cpus", "share" or "bytes". */
const char *fleetmap_unit(enum fleetmap_figure f);
/* Does it want options.name? */
bool fleetmap_wants_name(enum fleetmap_figure f);

enum { FLEETMAP_SLOTS = 288, FLEETMAP_NODES = 10000, FLEETMAP_CHOICES = 200 };

struct fleetmap_options {
	enum fleetmap_figure figure;
	const char *name;        /* of the cause or the function, as reports have it */
	const char *event;       /* of a function; NULL = "cpu" */
	const char *target;      /* a glob (* and ?); NULL = all */
	uint64_t from_ns, to_ns; /* CLOCK_REALTIME; from 0: a day before to, to 0: now */
	uint64_t slot_ns;        /* a multiple of 30 s; 0 = the shortest of a few that makes at most 144 slots; functions: roll-ups have 10 min */
};

struct fleetmap_node {
	char *target;
	double *values; /* by slot; NAN = nothing was recorded */
};

struct fleetmap {
	uint64_t from_ns, slot_ns; /* where slot 0 begins, a multiple of slot_ns */
	size_t slots;
	VEC(struct fleetmap_node) nodes; /* by name */
	double least, most;        /* of all cells; NAN where there is none */
	uint64_t raw_hours, rolled_hours; /* of functions: how many hours of nodes were read from samples, and from roll-ups */
	unsigned away;             /* shards that did not answer: their nodes are missing */
	char *away_text;           /* what the first of them said; NULL = none is away */
};

/* -EINVAL: the time, the slot or the name. -E2BIG: more than FLEETMAP_NODES or FLEETMAP_SLOTS. A shard that is away is no error, unless
 * all are. A map without nodes is none, either. fleetmap_done() in any case. */
int fleetmap_make(struct fleetmap *m, struct clickhouse *c, const struct fleetmap_options *o, struct err *err);
void fleetmap_done(struct fleetmap *m);

/* What there is to choose from in a time: the causes, and the functions that cost most (by roll-ups), most first. */
struct fleetmap_choice {
	char *name;
	double share; /* of all nodes together */
};
struct fleetmap_choices {
	VEC(struct fleetmap_choice) list; /* at most FLEETMAP_CHOICES */
};
/* o->figure is FLEETMAP_CAUSE, FLEETMAP_FUNCTION or FLEETMAP_SELF. fleetmap_choices_done() in any case. */
int fleetmap_choose(struct fleetmap_choices *ret, struct clickhouse *c, const struct fleetmap_options *o, struct err *err);
void fleetmap_choices_done(struct fleetmap_choices *list);
