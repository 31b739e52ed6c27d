/*
 * blocktasks.h - async tasks on the path of a block: which task a thread polled at a moment, and what that one had awaited.
 * For blocks.c.
 *
 * Known are the long awaits that the collector of tasks kept (profile_taskwake). A thread polls the task whose kept await
 * ended there last, unless its samples since then are of another type of task.
 *
 * Life: init -> polled, before... -> done. Without tasks all answers are NULL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/task/tasktype.h"
#include "base/map.h"
#include "base/vec.h"

struct profile;
struct profile_taskwake;

struct blocktasks {
	const struct profile *p;
	VEC(uint32_t) by_task;   /* indexes of taskwakes: by task and the time of the wake-up */
	VEC(uint32_t) by_thread; /* by the polling thread and the time at which the poll began */
	struct tasktypes units;  /* of stacks; only where there are tasks */
};

void blocktasks_init(struct blocktasks *t, const struct profile *p);
void blocktasks_done(struct blocktasks *t);

/* When the poll after the await began. */
uint64_t blocktasks_polled_ns(const struct profile_taskwake *w);
/* The last await after which a thread polled a task, where that poll began after `after` and not after `until`. */
const struct profile_taskwake *blocktasks_polled(const struct blocktasks *t, uint32_t thread, uint64_t after_ns,
						 uint64_t until_ns);
/* The last await of a task that ended before a moment. */
const struct profile_taskwake *blocktasks_before(const struct blocktasks *t, uint32_t task, uint64_t time_ns);
/* Is a stack that of another type of task than the one that was polled? False where its type has no name. */
bool blocktasks_is_other(const struct blocktasks *t, const struct profile_taskwake *w, uint32_t stack);
