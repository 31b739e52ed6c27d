/*
 * fetchsums.h - what roll-ups are made of: the sums of windows that begin in a time, by slot, event and stack, from one server.
 *
 *	struct fetchsums *s = fetchsums_new(clickhouse, shard);
 *	r = fetchsums_read(s, &(struct fetchsums_part){ "reth-1", "v2.5.1", hour, hour + 3600, 600 }, &profile, &err);
 *	fetchsums_free(s);
 *
 * Names are kept from one call to the next, as long as it is of the same day: nodes of a fleet run the same programs, hour after hour, and the names of
 * their stacks are most of what would be sent.
 */
#pragma once

#include <stdint.h>

struct clickhouse;
struct err;
struct fetchsums;
struct profile;

struct fetchsums_part {
	const char *target, *release; /* release "" = windows without one */
	uint64_t from_second, to_second, slot_seconds; /* of one day (UTC) */
};

/* Borrows c. */
struct fetchsums *fetchsums_new(struct clickhouse *c, unsigned shard);
void fetchsums_free(struct fetchsums *s); /* NULL is fine */
/* *ret: its samples are the sums, by slot and event; time_ns is the number of the slot, from 0. Idle waits are left out, threads are not told
 * apart. It is there until the next call. -ENODATA: there are no windows. */
int fetchsums_read(struct fetchsums *s, const struct fetchsums_part *part, const struct profile **ret, struct err *err);
