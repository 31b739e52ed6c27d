/*
 * promise.h - what can be recorded on this machine by this user, for each collector: what doctor says, and what a session then does.
 */
#pragma once

#include <stddef.h>

struct err;
struct host;

enum promise_how { PROMISE_NONE, PROMISE_READS, PROMISE_PERF, PROMISE_BPF };

/* "none", "reads", "perf", "bpf" */
extern const char *const promise_words[];

/* Does the machine have what our BPF programs need, whatever the user may do? A negative errno and the reason if not. */
int promise_machine(const struct host *h, struct err *err);
/* The same, and the user's rights: does BPF work? */
int promise_bpf(const struct host *h, struct err *err);
/* How a collector can be recorded, of a target that may be looked at; err says what is missing where it is not by BPF. i: as for
 * session_collector(). */
enum promise_how promise_of(const struct host *h, size_t i, struct err *err);
