/*
 * taskhealth.h - how an async runtime did: tasks in its queues, busy workers, polls, and how long polls, queues and awaits
 * are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct profile;
struct select_options;

/* Within the selected range. */
struct taskhealth_figure {
	uint64_t points; /* of the series, 0 = there is no figure */
	double mean, most;   /* most: in the time from one point to the next */
	uint64_t most_at_ns; /* when that began, first */
};

/* From a histogram with a step for each power of two, of the whole recording. */
struct taskhealth_latency {
	uint64_t count, p50_ns, p99_ns, max_ns; /* none was longer than max */
};

struct taskhealth {
	struct taskhealth_figure queue, polls, busy; /* tasks, polls a second, threads */
	uint64_t longest_poll_ns, longest_poll_at_ns; /* at: when it was over, or soon after */
	struct taskhealth_latency poll, queued, await;
};

/* Of o the range counts. False: there is nothing about it. */
bool taskhealth_make(struct taskhealth *h, const struct profile *p, const struct select_options *o);
