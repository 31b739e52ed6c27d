/*
 * counters.h - the processor's counters and the kernel's, of threads: opened and read (base/counter.h has what they
 * mean).
 *
 * Pairs that make a ratio (instructions and cycles, misses and accesses) take their turns together, so that
 * the ratio is of the same moments.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/counter.h"

/* What perf_event_open() takes for it. */
void counter_event(enum counter c, uint32_t *ret_type, uint64_t *ret_config);

struct counters {
	int fds[COUNTERS];    /* -1: it could not be opened, */
	int errors[COUNTERS]; /* for this errno */
	bool user_only;       /* the kernel's part may not be counted */
};

/*
 * Counts thread tid, and those that it starts from now on. on_exec: only from its next exec on. 0, or the
 * negative errno of the first counter that everybody has. counters_close() in any case.
 */
int counters_open(struct counters *c, pid_t tid, bool on_exec);
/* One of them as it is; false: it is not known. */
bool counters_raw(const struct counters *c, enum counter which, struct counter_raw *ret);
void counters_read(const struct counters *c, struct counter_value ret[COUNTERS]);
void counters_close(struct counters *c);
