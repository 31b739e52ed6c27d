/*
 * tables.h - the tables of a store: made, brought up to date, and kept small.
 *
 * The statements are those that ClickHouse 18.16 and later ones take. A table `schema_version` has a row for each time that
 * tables_init() changed something: the last one says which version the tables have, and for how long they keep their days.
 * Each table is partitioned by day, stacks and frames too, which are sent again with the first window of a day: an old day
 * can go without a look at others. What the tables mean is in docs/manual/fleet.md.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct clickhouse;
struct err;

enum { TABLES_VERSION = 2 };

struct tables_options {
	const char *cluster; /* of the servers' configuration: make tables over all shards, too; NULL = none */
	bool replicated;     /* tables that servers with the same macro {shard} share; as it is where there are tables */
	uint64_t keep_days;  /* 0 = as it is */
};

/* What a shard says of itself. */
struct tables_state {
	uint64_t version;   /* 0 = no tables yet */
	uint64_t keep_days; /* 0 = for ever */
	bool ttl;           /* the server removes old days by itself */
	char server[32];    /* "18.16.1" */
};

/* For all servers of the address. Repeating it changes nothing. -EEXIST: tables are there that are not replicated, and should be. */
int tables_init(struct clickhouse *c, const struct tables_options *o, struct err *err);
/* -ENXIO: no tables. -EUSERS: they are of a later gasflame. */
int tables_check(struct clickhouse *c, unsigned shard, struct tables_state *ret, struct err *err);
/* Removes the days before one (days since 1970) from a shard. *ret_days: how many there were, may be NULL. */
int tables_drop_before(struct clickhouse *c, unsigned shard, uint64_t day, uint64_t *ret_days, struct err *err);
/* The same for a server without TTL, as far as --keep says so. */
int tables_retain(struct clickhouse *c, unsigned shard, uint64_t now_ns, struct err *err);
