/*
 * perfdatasched.h - what samples of the scheduler's tracepoints say, by the fields of their records, for the waits of
 * profile/schedwaits.h. Records must come in the order of their time.
 */
#pragma once

#include <stdint.h>

struct perfdataattr;
struct perfdatasample;
struct perfdataspaces;
struct schedwaits;

/* A sample of such an event. time_ns: of the recording. */
void perfdatasched_sample(struct schedwaits *w, const struct perfdataspaces *spaces, const struct perfdataattr *a,
			  const struct perfdatasample *x, uint32_t thread, uint32_t stack, uint64_t time_ns);
/* Fills in who a thread was that ended, in a sample of sched_switch. */
void perfdatasched_fix_ended(const struct perfdataspaces *spaces, const struct perfdataattr *a, struct perfdatasample *x);
