/*
 * fetch.h - the profile of a target and a time, from a store. It is like one that was imported: every view and export works on it.
 *
 * The store adds up: what comes back is a sum for each event, thread, block and stack of a slot of time (profile_summed), with the
 * stacks and frames of those only. A slot is a window, and of a long time several: at most FETCH_SLOTS of them. Samples in a block
 * have its start as their time. Of several targets (storeurl.h) threads of one name are one, and blocks, ids and series are left out:
 * nodes have the same ones at the same time. All windows that reach into the time are taken as a whole. Causes are found again, from the stacks.
 */
#pragma once

#include <stdint.h>

struct clickhouse;
struct err;
struct profile;
struct storeurl;

enum { FETCH_SLOTS = 240 };

/* Of the target, or the targets, and the time of url. -ENODATA: there is nothing. A shard that is away is an error only if the target lives there, or
 * all are; *ret_away, which may be NULL, says how many were not asked. */
int fetch_profile(struct clickhouse *c, const struct storeurl *url, unsigned *ret_away, struct profile **ret, struct err *err);

/* fetch_profile() of an address; -EINVAL: it names no target. */
int fetch_url(const char *text, unsigned *ret_away, struct profile **ret, struct err *err);
