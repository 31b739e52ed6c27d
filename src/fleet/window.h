/*
 * window.h - a capture as windows of time, the way a store has it: samples of one event, thread, cause, block and stack are summed.
 *
 *	struct windows w;
 *	r = windows_make(&w, job, WINDOW_NS, &err);	// the capture of an export job, cut every 30 s
 *	for (size_t i = 0; i < w.list.n; i++)
 *		push(&w, &w.list.v[i]);
 *	windows_done(&w);
 *
 * A window is known by its target, its start and its number within the recording: the same capture gives the same windows. Stacks
 * and frames are known by what they are, not by a capture: a hash of their content.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct err;
struct export_job;
struct profile;

#define WINDOW_NS (30ULL * 1000000000)

struct window_sample {
	uint64_t value, count;
	uint32_t event, thread, stack; /* of the profile; the stack as it was recorded */
	uint32_t mark;                 /* the block in which it began, PROFILE_NONE = none */
	const char *cause;             /* "" = none */
};

/* Sum of an event. */
struct window_total {
	uint64_t value, count;
};

/* The part of a thread's time that is the window's. */
struct window_thread {
	uint32_t thread;
	uint64_t cpu_ns, run_ns, queue_ns, blocked_ns;
};

struct window_count {
	uint32_t counter; /* of the profile */
	uint64_t value;
};

struct window {
	uint64_t start_ns;    /* since the start of the recording */
	uint64_t duration_ns;
	uint64_t sequence;
	uint64_t digest;      /* of its sums: another content with the same key has another one */
	VEC(struct window_sample) samples;
	VEC(struct window_total) totals; /* by event of the profile */
	VEC(struct window_thread) threads;
	VEC(struct window_count) counters;
	VEC(uint32_t) marks;  /* that begin in it */
	VEC(uint32_t) points; /* of series, in it */
};

struct windows {
	const struct profile *p;
	VEC(struct window) list;            /* by time; those in which nothing was recorded are there, too */
	uint64_t *frame_hashes, *stack_hashes; /* by frame and stack of the profile; stack 0 is 0 */
};

/* -ENODATA: the recording does not say when it was. windows_done() in any case. */
int windows_make(struct windows *w, const struct export_job *job, uint64_t each_ns, struct err *err);
void windows_done(struct windows *w);

/* When it began, on CLOCK_REALTIME. */
uint64_t window_wall_ns(const struct windows *w, const struct window *x);
/* The key of a window, and of a mark in it. */
uint64_t window_id(const char *target, uint64_t wall_ns, uint64_t sequence);
uint64_t window_mark_id(const struct windows *w, const char *target, uint32_t mark);
