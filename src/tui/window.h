/*
 * window.h - the last seconds of a profile that is being recorded, as a profile of their own.
 *
 * A recorder appends samples for hours; the view is the last ten seconds, or all since the start. So samples
 * are taken out of the profile as they come, summed (by thread, stack and event, within one refresh), kept as
 * long as the window is wide, and also in sums since the start. A view is a profile again: it borrows every
 * table of the recorded one and has its own samples, wakes (of tasks, too), marks, threads and times, so that all analyses read it
 * as if the window were the whole recording.
 *
 *	window_take(&w);              // samples since the last time
 *	session_peek(s);              // samples of waits in progress ...
 *	window_look(&w);              // ... are taken, and the threads' times noted
 *	window_view(&w, 10e9, &v);    // the last 10 s
 *	...
 *	view_done(&v);
 */
#pragma once

#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

struct window_sample {
	struct profile_sample sample;
	uint64_t begin_ns, end_ns; /* of a wait of its own; else both are the moment */
};

/* The threads' times at a look. */
struct window_times {
	uint64_t run_ns, queue_ns, blocked_ns;
};
struct window_moment {
	uint64_t time_ns;
	struct window_times *threads;
	size_t thread_count;
};

struct window {
	struct profile *p;  /* borrowed; its samples and wakes are taken away */
	uint64_t keep_ns;   /* the widest window */
	VEC(struct window_sample) recent, open;
	VEC(struct profile_sample) all;
	struct map all_index;
	VEC(struct profile_wake) wakes;
	VEC(struct profile_taskwake) taskwakes;
	VEC(struct window_moment) moments; /* oldest first */
	uint64_t taken_ns;                 /* until when samples were taken */
	bool exact;                        /* samples keep their times: blocks are split by them */
};

void window_init(struct window *w, struct profile *p, uint64_t keep_ns);
void window_done(struct window *w);
void window_take(struct window *w);
void window_look(struct window *w);
/* Bytes that it and the profile's tables hold, about. */
uint64_t window_bytes(const struct window *w);

struct view {
	struct profile profile; /* never to be changed or freed but by view_done() */
	const struct profile *of;
};

/* Makes a view of about the last nanoseconds, from a look on; 0: since the start. */
void window_view(const struct window *w, uint64_t last_ns, struct view *ret);
/* The profile has grown since: its tables may lie elsewhere. */
void view_sync(struct view *v);
void view_done(struct view *v);
