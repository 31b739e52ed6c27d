/*
 * logrules.h - the rules of clients.c, compiled: what a line says, by the named groups of its patterns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ethereum/clients.h"
#include "ethereum/log/blocklog.h"

struct err;
struct logrule;

/* What a line says. */
struct logrule_found {
	struct blocklog_block said; /* number, gas, transactions, hash, first and count */
	uint64_t lasted_ns;
	bool has_time;              /* it says how long, be it 0 */
	bool bad_time, bad_figure;  /* it says what cannot be */
	double gas_per_s;           /* 0 = not said */
};

/* rule is borrowed. -EINVAL: a pattern is none. */
int logrule_new(const struct client_rule *rule, struct logrule **ret, struct err *err);
void logrule_free(struct logrule *r); /* NULL is fine */
const struct client_rule *logrule_of(const struct logrule *r);
/* line: plain (logline.h). False: the first pattern does not fit. */
bool logrule_match(const struct logrule *r, const char *line, struct logrule_found *ret);
