/*
 * threadstates.h - what each thread did over time, as spans that follow each other: on the CPU, in the run queue, waiting.
 *
 * Where waits were recorded, a thread was on the CPU whenever it did not wait. Waits that were recorded as sums (short ones, and
 * those of a long recording that was made small) have no time of their own: they are counted by the span on the CPU in
 * which, or soon after which, they were, and of which they are a part. Where there are more single waits than the limit, the
 * shortest are counted the same way: the sum of a cause over spans and shorts is what was recorded, whatever the limit is.
 *
 * Where no waits were recorded, samples that follow each other closely are one span.
 *
 *	struct threadstates states;
 *	r = threadstates_make(&states, job, &rows, 500000, &err);
 *	for (size_t i = 0; i < states.list.n; i++)
 *		...
 *	threadstates_done(&states);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/wait/cause.h"
#include "base/vec.h"

struct err;
struct export_job;
struct samplerows;

enum threadstate_kind {
	THREADSTATE_RUNNING, /* it did not wait, but for the shorts */
	THREADSTATE_SAMPLED, /* samples found it on the CPU */
	THREADSTATE_WAIT,
	THREADSTATE_QUEUE,   /* ready to run, without a CPU */
	THREADSTATE_SUM,     /* a moment: waits of which only the sum is known, where other states are not shown */
};

struct threadstate {
	uint64_t begin_ns, end_ns;
	uint64_t cpu_ns;              /* of the samples in it, 0 = none, or not on the CPU */
	uint32_t samples;
	uint32_t thread;
	uint32_t stack;               /* of a wait; on the CPU that of most samples in it. 0 = not known */
	uint32_t block;               /* of a wait, as struct samplerow */
	uint32_t first_short, shorts; /* into the list of shorts */
	enum threadstate_kind kind;
	enum cause cause;
};

struct threadstate_short {
	enum cause cause;
	uint64_t ns, count;
};

struct threadstates {
	VEC(struct threadstate) list; /* by thread, then by time */
	VEC(struct threadstate_short) shorts;
	bool whole; /* all states of the selected threads are there */
	uint64_t joined_ns; /* single waits up to this length were counted as shorts, 0 = none */
};

/* rows: with idle ones. limit: of single waits. threadstates_done() in any case. */
int threadstates_make(struct threadstates *t, const struct export_job *job, const struct samplerows *rows, size_t limit, struct err *err);
void threadstates_done(struct threadstates *t);
/* The state of a thread at a moment, or else the next one; NULL: there is none. */
const struct threadstate *threadstates_at(const struct threadstates *t, uint32_t thread, uint64_t time_ns);
/* "lock", "running, short waits". */
const char *threadstate_name(const struct threadstates *t, const struct threadstate *s);
/* The name of a cause, never "": one that is not known is "waiting". */
const char *threadstate_cause(enum cause cause);
