/*
 * oom.h - memory use up to a limit, and the state when the kernel killed.
 *
 * Reads what `gasflame limit` records: the series "limit.usage", "limit.anon", "limit.file", "limit.kernel"
 * and "limit.swap", marks of the kinds "oom" and "kernel", the counters "limit.*", the events
 * "oom:mark_victim" and "heap" where they were recorded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/memory/leak.h"
#include "base/vec.h"

struct profile;

/* The group at one moment. */
struct oom_point {
	uint64_t time_ns;
	uint64_t usage, anon, file, kernel, swap;
};

struct oom {
	bool recorded;                /* was there a limit that was watched? The rest is nothing without */
	uint64_t limit, swap_limit;   /* UINT64_MAX: none */
	uint64_t hits, kills, peak;
	uint64_t kill_ns;             /* when the first was, where kills > 0 */
	VEC(struct oom_point) points; /* the last seconds, and before them the way there: about one a row */
	VEC(const char *) said;       /* by the kernel; live as long as the profile */
	const char *trigger;          /* the process whose allocation exceeded the limit; "" = unknown */
	const char *trigger_module;
	struct leak live;             /* at the end */
};

void oom_build(struct oom *o, const struct profile *p);
void oom_done(struct oom *o);
/* Returns the largest part of the limit: "heap", "cache", "kernel", "other" (anonymous memory outside the
 * heap) or "". */
const char *oom_blame(const struct oom *o);
