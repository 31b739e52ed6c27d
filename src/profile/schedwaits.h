/*
 * schedwaits.h - waits, of what the scheduler's events say: the samples "wait" (blocked) and "queue" (ready, but without a CPU),
 * the wakes and the accounts of threads, as a capture of `record -e wait` has them. Readers parse their own records and say here
 * what happened, in the order of time:
 *
 *	left     sched_switch                            a thread leaves its CPU in a state, with its stack
 *	woken    sched_waking, _wakeup, _wakeup_new      it is ready again; whose stack it is woke it
 *	woken    sched_stat_sleep, _blocked, _iowait     the same where only some processes were recorded; by whom is not said
 *	came     sched_switch, sched_stat_wait           it comes to a CPU
 *	left, came   PERF_RECORD_SWITCH                  the same, for who records it (collect/perf/switches.h)
 *	waited   offcpu-time (perf record --off-cpu)     a wait as it is: its period is the time
 *
 * The rules:
 *
 * - Who leaves while it can go on is in the queue until it comes. Who sleeps is blocked until it is woken and in the queue from
 *   then on; where nobody says that it was woken, it is blocked until it comes. Who ended waits for nothing.
 * - Only the first wakeup of a sleep counts, and none from before it.
 * - Both parts of a wait have the time at which it began: select_span() expects that.
 * - Who leaves again without having come: of one that was woken, the part before that is known; else the wait is left out and
 *   counted.
 * - Waits from 1 ms on, both parts together, have a wake if it is known who woke. Where the waker's stack is in an interrupt, or
 *   the waker is the idle thread, an interrupt did.
 * - From when a thread came to when it leaves it ran, whether or not it was known when it came.
 * - What waits at the end has waited until then, and what runs has run.
 * - Times of a hostile file may add up to more than can be counted: what does is left out and counted, and overflow is set.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct profile;

/* What a tracepoint says. */
enum schedwaits_kind { SCHED_NONE, SCHED_SWITCH, SCHED_WAKE, SCHED_STAT_BLOCKED, SCHED_STAT_QUEUE, SCHED_OFFCPU };

/* How a thread leaves its CPU. */
enum schedwaits_state { SCHEDWAITS_READY, SCHEDWAITS_BLOCKED, SCHEDWAITS_ENDED };

/* Who woke a thread. */
struct schedwaits_waker {
	uint32_t thread; /* PROFILE_NONE: not known, or none of the profile */
	uint32_t stack;
	uint32_t name;   /* a string; 0: by the thread's name, or by the interrupt that its stack is in */
};

struct schedwaits {
	uint32_t wait_event, queue_event; /* PROFILE_NONE until there is one */
	uint64_t unended; /* waits that were left out */
	bool overflow;    /* of these some added up to too much */
	/* The rest is private. */
	struct profile *p;
	uint64_t total_ns; /* of all waits */
	struct map tids;   /* tid to an index */
	VEC(struct schedwaits_thread) threads;
	VEC(struct schedwaits_peeked) peeked; /* what the last peek added */
	VEC(struct schedwaits_held) held;     /* waits that are over, in the order in which they ended, and lack a part of their stacks */
	struct map held_keys;                 /* key to how many of these have it */
};

/* Of "sched_switch" and the like. */
enum schedwaits_kind schedwaits_kind(const char *name, size_t n);

void schedwaits_init(struct schedwaits *w, struct profile *p);
void schedwaits_done(struct schedwaits *w);
/* Adds the events now, where their place among others matters; else they come with their first sample. kind: what the waits will
 * be made of, SCHED_SWITCH or SCHED_OFFCPU. */
void schedwaits_add_events(struct schedwaits *w, enum schedwaits_kind kind);

/* A tid of 0, the idle thread, waits for nothing: it is ignored. */
void schedwaits_left(struct schedwaits *w, uint32_t tid, uint32_t thread, uint32_t stack, enum schedwaits_state state, uint64_t time_ns);
/* by: NULL where it is not known. */
void schedwaits_woken(struct schedwaits *w, uint32_t tid, const struct schedwaits_waker *by, uint64_t time_ns);
/* The stack with which a thread left was found afterwards, while it still waits. */
void schedwaits_set_stack(struct schedwaits *w, uint32_t tid, uint32_t stack);
/* A part of that stack is not known and may come to be so, also when the wait is over: its root stands for it. The samples of the wait are held back
 * under a key that is not 0, some seconds at most; its time is in the account. */
void schedwaits_hold(struct schedwaits *w, uint32_t tid, uint64_t key);
/* That part was found: base, in place of the roots of all waits that are held back under the key. */
void schedwaits_found(struct schedwaits *w, uint64_t key, uint32_t base);
/* thread: PROFILE_NONE where it was not seen yet. */
void schedwaits_came(struct schedwaits *w, uint32_t tid, uint32_t thread, uint64_t time_ns);
void schedwaits_waited(struct schedwaits *w, uint32_t thread, uint32_t stack, uint64_t time_ns, uint64_t ns);
/* Adds the samples and accounts as if the recording ended now. The accounts are taken back by the next call of this or of schedwaits_end();
 * the caller cuts the samples and wakes off before anything else happens. */
void schedwaits_peek(struct schedwaits *w, uint64_t time_ns);
/* The recording is over. */
void schedwaits_end(struct schedwaits *w, uint64_t time_ns);
