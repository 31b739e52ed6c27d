/*
 * fallback.h - CPU samples and waits (switches.h) without BPF: perf events on the target's threads, with a copy
 * of the top of the stack, unwound here from the ring with the same tables. No dump touches the disk.
 *
 * Works for an ordinary user on their own processes where perf_event_paranoid <= 2. Where neither is asked for no event is opened: what
 * only reads goes on beside it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct fallback;
struct processes_sink;
struct session;

int fallback_open(struct session *s, struct fallback **ret, struct err *err);
void fallback_close(struct fallback *f);
extern const struct processes_sink fallback_sink; /* its context is the struct fallback */
/* Opens the events of every thread of the targets. */
int fallback_start(struct fallback *f, struct err *err);
int fallback_poll(struct fallback *f, int timeout_ms);
void fallback_drain(struct fallback *f);
/* Drains, and what the threads do now counts for the rest of the time. */
void fallback_finish(struct fallback *f, uint64_t now_mono_ns);
/* See session_peek(). */
void fallback_peek(struct fallback *f, uint64_t now_mono_ns);
void fallback_set_hz(struct fallback *f, uint64_t hz);
void fallback_pause(struct fallback *f, bool pause);
uint64_t fallback_lost(const struct fallback *f);
uint64_t fallback_waits_lost(const struct fallback *f);
bool fallback_kernel(const struct fallback *f); /* are kernel stacks recorded? */
