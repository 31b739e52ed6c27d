/*
 * begin.h - where a recording of waits begins, for a thread that was watched before it did.
 *
 * The programs are attached before the sleepers are listed, and hear of the moment at which the recording begins before it comes:
 * what they see until then keeps each thread's state, and accounts nothing. The first who looks at a thread afterwards, a
 * program or the end of the recording, moves it to that moment.
 *
 * Part of wait.bpf.c and of wait.c.
 */
#pragma once

#include "collect/shared.h"

/*
 * Moves a thread whose state began before start_ns to it: it counts as in that state since then. What of its wait was over by
 * then is not in the recording. The kernel's counts stay those of when it left its CPU: settle() cuts what they have beyond
 * the time since left_ns. Who runs by then has no wait any more.
 */
static inline __attribute__((always_inline)) void begin_thread(struct shared_thread *t, uint64_t start_ns)
{
	if (t->account.since_ns >= start_ns)
		return;
	t->account.since_ns = start_ns;
	t->left_ns = t->account.state == STATE_RUNNING ? 0 : start_ns;
	t->blocked_ns = 0;
	t->queue_ns = 0;
	t->throttled_ns = 0;
	/* Whoever ended a wait before the recording is not in it. */
	t->waker_stack = 0;
}
