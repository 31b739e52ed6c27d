/*
 * listing.h - the targets of a store, by name.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct clickhouse;
struct err;

/* Each once, in order. */
struct listing_texts {
	VEC(char *) list;
};

struct listing_target {
	char *name;
	uint64_t windows, duration_ns; /* the latter is their sum */
	uint64_t first_ns, last_ns;    /* CLOCK_REALTIME: begin of the first, end of the last */
	struct listing_texts hosts, releases, labels;
	unsigned shards;               /* on which it is */
};

struct listing {
	VEC(struct listing_target) list;
};

/* Of all shards. listing_done() in any case. */
int listing_make(struct listing *l, struct clickhouse *c, struct err *err);
/* Of windows that begin in a time, CLOCK_REALTIME; a shard that is away is missing, unless all are. */
int listing_make_between(struct listing *l, struct clickhouse *c, uint64_t from_ns, uint64_t to_ns, struct err *err);
void listing_done(struct listing *l);
