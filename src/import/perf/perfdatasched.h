/*
 * perfdatasched.h - waits, of what the scheduler's tracepoints say: the samples "wait" (blocked), "queue" (ready, but without a
 * CPU) and wakes of a profile, as a capture of `record -e wait` has them.
 *
 *	sched_switch                            leaves the CPU, with its stack; the next one comes
 *	sched_waking, sched_wakeup              is ready again; whose stack it is woke it
 *	sched_stat_sleep, _blocked, _iowait     the same, where only some processes were recorded
 *	sched_stat_wait                         comes to a CPU, likewise
 *	offcpu-time (perf record --off-cpu)     a wait as it is: its period is the time
 *
 * Records must come in the order of their time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct perfdataattr;
struct perfdatasample;
struct perfdataspaces;
struct profile;

enum perfdatasched_kind { SCHED_NONE, SCHED_SWITCH, SCHED_WAKE, SCHED_STAT_BLOCKED, SCHED_STAT_QUEUE, SCHED_OFFCPU };

struct perfdatasched_thread {
	uint32_t thread;
	uint8_t state;         /* 0: runs, or nobody knows */
	bool woken;
	bool ran;              /* it came to the CPU at in_ns */
	uint64_t in_ns, out_ns, wake_ns;
	uint32_t stack;
	uint32_t waker, waker_name, waker_stack;
};

struct perfdatasched {
	/* Set by the caller. */
	struct profile *p;
	struct perfdataspaces *spaces;
	uint32_t wait_event, queue_event;
	/* Private. */
	VEC(struct perfdatasched_thread) list;
	struct map tids;
	uint64_t total_ns; /* of all waits */
	uint64_t unended; /* out: waits of which the end is not known */
};

/* What the tracepoint of that name is. */
enum perfdatasched_kind perfdatasched_kind(const char *name);
void perfdatasched_done(struct perfdatasched *s);
/* A sample of such an event. time_ns: of the recording. */
void perfdatasched_sample(struct perfdatasched *s, const struct perfdataattr *a, const struct perfdatasample *x, uint32_t thread,
			  uint32_t stack, uint64_t time_ns);
/* Fills in who a thread was that ended, in a sample of sched_switch. */
void perfdatasched_fix_ended(const struct perfdatasched *s, const struct perfdataattr *a, struct perfdatasample *x);
/* A thread comes to a CPU, as a SWITCH record says. */
void perfdatasched_in(struct perfdatasched *s, uint32_t tid, uint64_t time_ns);
/* The recording is over: who waits has waited until then. */
void perfdatasched_end(struct perfdatasched *s, uint64_t time_ns);
