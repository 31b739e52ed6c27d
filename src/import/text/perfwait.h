/*
 * perfwait.h - what lines of the scheduler's tracepoints say, for the waits of profile/schedwaits.h.
 *
 *	prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120
 *	a:1 [120] S ==> b:2 [120]		the same, as perf's own formatter writes it
 *
 * Times are as the text has them: the caller moves all samples and wakes of the profile to the beginning.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "folded/collapse/perfline.h"

struct schedwaits;

/* A record of the scheduler with the thread in whose name it is, and its stack. False: it is a sample, too: of another event, one
 * that does not say what is needed, or a sched_stat_ one, whose period is a time. */
bool perfwait_take(struct schedwaits *w, const struct perfline_record *r, uint32_t thread, uint32_t stack);
