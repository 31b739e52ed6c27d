/*
 * counters.h - counters of the processor and the kernel, for threads: opened and read (base/counter.h
 * explains their meaning).
 *
 * Pairs that make a ratio (instructions and cycles, misses and accesses) are scheduled as a group, so that
 * the ratio is of the same moments.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/counter.h"

/* Returns the type and config for perf_event_open(). */
void counter_event(enum counter c, uint32_t *ret_type, uint64_t *ret_config);

struct counters {
	int fds[COUNTERS];    /* -1: it could not be opened, */
	int errors[COUNTERS]; /* for this errno */
	bool user_only;       /* the kernel's part may not be counted */
};

/*
 * Counts thread tid, and the threads that it starts from now on. on_exec: only from its next exec on. 0,
 * or the negative errno of the first counter that every machine has. counters_close() in any case.
 */
int counters_open(struct counters *c, pid_t tid, bool on_exec);
/* Reads a counter without scaling; false: unknown. */
bool counters_raw(const struct counters *c, enum counter which, struct counter_raw *ret);
void counters_read(const struct counters *c, struct counter_value ret[COUNTERS]);
void counters_close(struct counters *c);
