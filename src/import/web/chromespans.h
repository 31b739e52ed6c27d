/*
 * chromespans.h - spans of threads as stacks: what lies within another span was called by it, and self time is exact.
 *
 * Beginnings and ends (B, E) are joined on their thread; whole spans (X) come as they are. In the end the spans of each thread
 * are put in order, nested by their times, and each stretch of time becomes a sample of the innermost span. A beginning without
 * an end ends with the span around it, or where the trace of its thread ends; an end without a beginning is left out; a span
 * that begins within another and ends after it ends with it. All of these are counted as left out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct err;
struct webprofile;

enum { CHROMESPANS_MOST = 1 << 25, CHROMESPANS_LANES = 1 << 20 };

struct chrome_span {
	uint64_t start_ns, end_ns;
	uint32_t name; /* a string of the profile */
	uint32_t lane;
	uint32_t order; /* in which they began */
};

struct chrome_lane {
	uint64_t pid, tid;
	uint32_t name;    /* a string; 0 = it has none */
	uint32_t thread;  /* of the profile, once there are threads */
	uint32_t top;     /* 1 + index of the innermost one that is open, 0 = none */
	uint64_t last_ns; /* the latest time on it */
};

struct chrome_open {
	uint64_t start_ns;
	uint32_t name, below, order;
};

struct chromespans {
	struct webprofile *w;
	VEC(struct chrome_lane) lanes;
	struct map lane_index;
	VEC(struct chrome_span) spans;
	VEC(struct chrome_open) open;
	VEC(uint32_t) spare; /* indexes of open that are free again */
	struct map named;    /* lane and name to how many of that name are open */
	uint32_t order;
};

void chromespans_done(struct chromespans *s);
/* Index of a lane, UINT32_MAX: there are too many. */
uint32_t chromespans_lane(struct chromespans *s, uint64_t pid, uint64_t tid);
/* -EFBIG: there are more spans than memory is given for. */
int chromespans_begin(struct chromespans *s, uint32_t lane, uint64_t time_ns, uint32_t name, struct err *err);
/* name 0: it ends the innermost one. */
int chromespans_end(struct chromespans *s, uint32_t lane, uint64_t time_ns, uint32_t name, struct err *err);
int chromespans_whole(struct chromespans *s, uint32_t lane, uint64_t start_ns, uint64_t end_ns, uint32_t name, struct err *err);
/* What is open ends where its thread does. */
int chromespans_close(struct chromespans *s, struct err *err);
/* The samples, of an event in nanoseconds; times less zero_ns. Lanes have their threads. */
int chromespans_add(struct chromespans *s, uint32_t event, uint64_t zero_ns, struct err *err);
