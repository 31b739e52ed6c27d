/*
 * blockmatch.h - which span of a function made which block: spans have times, blocks have numbers, and they meet here.
 *
 * A block was seen at a moment, in the log or from the node: shortly after its function returned, or shortly before.
 * The span whose end is nearest is taken, of those that began before that moment, once. Where the node is only looked
 * at now and then, blocks and ends since the last look are paired in order, from the newest back; one that was
 * not done at the look is taken where too few have ended: a node may show a block before its function returns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct blockmatch_span {
	uint64_t start_ns, end_ns;
	uint32_t thread; /* the profile's */
	uint32_t tag;    /* the caller's */
	bool used;
};

struct blockmatch {
	VEC(struct blockmatch_span) spans; /* by end */
};

void blockmatch_add(struct blockmatch *b, const struct blockmatch_span *s);
/* Seen at a moment that is right; later: so many more blocks were seen at the same moment. NULL: there is none. */
const struct blockmatch_span *blockmatch_at(struct blockmatch *b, uint64_t seen_ns, size_t later);
/* Seen by a look, after another at since_ns; later: so many more blocks were new in this look. */
const struct blockmatch_span *blockmatch_between(struct blockmatch *b, uint64_t since_ns, uint64_t seen_ns, size_t later);
/* Hands out, and forgets, what ended before that and is of no use any more; unused ones through fn. */
typedef void blockmatch_fn(void *context, const struct blockmatch_span *s);
void blockmatch_expire(struct blockmatch *b, uint64_t before_ns, blockmatch_fn *fn, void *context);
void blockmatch_done(struct blockmatch *b);
