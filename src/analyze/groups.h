/*
 * groups.h - the cgroups of a recording's targets and their limits; and the restarts that the recording
 * followed.
 *
 * A pure function of the counters and marks that collect/mem/cgroupwatch.h and collect/follow.h leave.
 */
#pragma once

#include <stdint.h>

#include "base/vec.h"

struct profile;

struct groups_row {
	char *path; /* below the root of its hierarchy: "/docker/0123..." */
	uint64_t quota_us, period_us; /* 0 = none */
	uint64_t periods, throttled_periods; /* during the recording */
	uint64_t throttled_ns; /* by the kernel's count: each CPU, however many threads stood there */
	uint64_t limit_bytes, high_bytes; /* 0 = none */
	uint64_t most_bytes;   /* that were in use at a look */
	uint64_t limit_hits, oom_kills; /* during the recording */
	uint64_t cpu_recordings, memory_recordings; /* that were merged */
};

struct groups_restart {
	uint64_t start_ns, end_ns; /* nothing ran */
	const char *text;          /* the profile's */
};

struct groups {
	VEC(struct groups_row) rows; /* cgroups with a limit; the tightest quota first */
	VEC(struct groups_restart) restarts;
	uint64_t count;   /* of restarts; an end without a return is in the list, but none */
	uint64_t down_ns; /* in which nothing ran */
};

void groups_make(struct groups *g, const struct profile *p);
void groups_done(struct groups *g);

/* How many CPUs its quota is worth, 0 = there is none. */
double groups_cpus(const struct groups_row *r);
/* A path for people: ids of 64 digits are cut to 12, as engines do. Caller frees. */
char *groups_label(const char *path);
