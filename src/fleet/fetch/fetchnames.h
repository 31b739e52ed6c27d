/*
 * fetchnames.h - the stacks and frames of a store, as those of a profile. For fetch.c and fetchsums.c.
 *
 * A row of FETCHNAMES_FRAME or FETCHNAMES_STACK becomes a frame or a stack of the profile; the maps have them by the store's hashes.
 */
#pragma once

#include <stddef.h>

#include "base/map.h"
#include "import/frames.h"

struct answer;
struct profile;

#define FETCHNAMES_FRAME                                                                                                           \
	"frame, any(kind), any(module_kind), any(module), any(build_id), any(address), any(names), any(files), any(lines), any(named)"
#define FETCHNAMES_STACK "stack, any(frames)"

struct fetchnames {
	struct profile *p;         /* borrowed */
	struct frames made;        /* its modules, and threads without ids */
	struct map frames, stacks; /* to ids of the profile */
};

void fetchnames_init(struct fetchnames *f, struct profile *p);
void fetchnames_done(struct fetchnames *f);
void fetchnames_take_frame(struct fetchnames *f, const struct answer *a, size_t row);
/* Behind its frames: one that is not known is "not in the store". */
void fetchnames_take_stack(struct fetchnames *f, const struct answer *a, size_t row);
