/*
 * spanjoin.h - spans out of what the probes of span.bpf.c send: calls, polls of futures, beginnings and ends.
 *
 * A call is a span. Polls of a future are joined: a span goes from the first poll of a future that had not begun to the
 * return of the poll after which it was done, whichever threads polled it; its thread is the one that worked most on
 * it. What the program says of itself is joined by name and number. Bounded, whatever is sent. No I/O, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/block.h"
#include "collect/sharedspan.h"

struct spanjoin;

struct span {
	uint32_t function;          /* UINT32_MAX: the program's own word */
	uint32_t pid, tid;
	uint64_t start_ns, end_ns;  /* equal: a moment */
	uint32_t polls;             /* 0 = it is no future */
	struct block block;         /* of the program's own only */
	char name[SHARED_SPAN_NAME]; /* of the program's own */
};

struct spanjoin_counts {
	uint64_t spans, polls;
	uint64_t before;     /* polls of futures, and ends, that began before the recording */
	uint64_t cancelled;  /* futures that were dropped before they were done, or panicked */
	uint64_t replaced;   /* begun twice, or more at a time than are remembered */
};

typedef void spanjoin_fn(void *context, const struct span *s);

struct spanjoin *spanjoin_new(spanjoin_fn *fn, void *context);
void spanjoin_take(struct spanjoin *j, const struct shared_span *r);
const struct spanjoin_counts *spanjoin_counted(const struct spanjoin *j);
size_t spanjoin_open(const struct spanjoin *j); /* spans that have begun */
void spanjoin_free(struct spanjoin *j); /* NULL is fine */
