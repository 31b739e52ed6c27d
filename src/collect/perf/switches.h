/*
 * switches.h - waits without BPF: when each thread of the targets leaves a CPU and comes back, as perf events say it.
 *
 * Every switch is a record (PERF_RECORD_SWITCH), which an ordinary user gets for processes of their own: with it the account of each
 * thread closes, and preempted threads are told from those that block. What waits are of these is the business of profile/schedwaits.h.
 *
 * Where the kernel may be looked at, the tracepoint sched_switch, or else the software event "context-switches", says where a thread was when it left: its
 * kernel frames and its registers at each switch (SAMPLE_SWITCH), and some times a second a copy of its stack (SAMPLE_STACK). A stack is remembered by its place, that is thread,
 * program counter and stack pointer, as with BPF (docs/decisions/0005-waits.md). Where a thread sleeps at a place of which no copy was taken,
 * its memory is read while it does (switches_look()). Where the kernel may not be looked at, waits have no stacks.
 *
 * Where tracepoints can be had, sched_waking says who ended a wait, and when: from then on it is time in the queue. Without it a wait
 * is blocked until the thread is back on a CPU.
 *
 * Records come in the order of time. Times of records are CLOCK_MONOTONIC.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sample;
struct session;
struct switches;

/* Unwinds the copy of a sample, or (live) the memory of its thread, which sleeps: the profile's stack for the user's frames. PROFILE_NONE: the
 * memory cannot be read. */
typedef uint32_t switches_unwind_fn(void *context, const struct sample *x, bool live);

/* stacks: a SAMPLE_SWITCH comes with each switch. */
struct switches *switches_new(struct session *s, bool stacks, switches_unwind_fn *unwind, void *context);
void switches_free(struct switches *w); /* NULL is fine */

/* A thread is there when the recording begins; asleep: it sleeps now. */
void switches_found(struct switches *w, pid_t pid, pid_t tid, bool asleep);
void switches_started(struct switches *w, pid_t pid, pid_t tid, uint64_t time_ns);
void switches_ended(struct switches *w, pid_t pid, pid_t tid, uint64_t time_ns);
/* The program that we run is executed: what its process did before is not its. */
void switches_executed(struct switches *w, pid_t pid, uint64_t time_ns);

/* A switch: out of a CPU (preempted: it could have gone on), or onto one. */
void switches_out(struct switches *w, pid_t pid, pid_t tid, bool preempted, uint64_t time_ns);
void switches_in(struct switches *w, pid_t pid, pid_t tid, uint64_t time_ns);
void switches_sample(struct switches *w, const struct sample *x); /* SAMPLE_SWITCH */
void switches_stack(struct switches *w, const struct sample *x);  /* SAMPLE_STACK */
/* woken: the tid that x, SAMPLE_WAKING, wakes. */
void switches_waking(struct switches *w, const struct sample *x, pid_t woken);

/* Reads the stacks of threads that went to sleep at places which are not known yet. The caller drains the rings once more and calls
 * switches_looked(): whoever has not come to a CPU until then slept all the time. */
bool switches_look(struct switches *w); /* false: there is none */
void switches_looked(struct switches *w);

/* See session_peek(). */
void switches_peek(struct switches *w, uint64_t now_mono_ns);
void switches_finish(struct switches *w, uint64_t now_mono_ns);
