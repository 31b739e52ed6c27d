/*
 * waitdetail.h - one place where threads wait: who waits there, who ends the waits and from which stack, what these ran
 * meanwhile, and what they waited for themselves.
 */
#pragma once

#include <stdint.h>

#include "analyze/wait/cause.h"
#include "base/map.h"

struct model;
struct row;
struct table;
struct waits_site;

/* The place, as it is found again at the next refresh. */
struct waitdetail_key {
	const char *function, *module;
	enum cause cause;
};

/* open: ids of the wakers whose stacks are shown, to 1. */
void waitdetail_fill(struct table *t, struct model *m, const struct waitdetail_key *key, struct map *open);

/* The place that a row of the chain leads to; NULL: it leads to none. Valid until the next look. */
const struct waits_site *waitdetail_next(struct model *m, const struct waitdetail_key *key, const struct row *r);
