/*
 * tracee.h - what the kernel says about a thread that is to be traced, and sentences for what it refuses.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct err;

/* The kernel's facts about one thread. Filters belong to a thread, and so does whether it has ended. */
struct tracee {
	bool ended, filtered, ignores_trap;
};

int tracee_read(pid_t pid, pid_t tid, struct tracee *ret); /* -ESRCH: it is gone */

/* The thread that minds least to be stopped, one without a filter of system calls before all others. 0: there is none. */
pid_t tracee_choose(pid_t pid);

/* The sentence for a thread that ptrace() does not let us trace, with the errno that it gave. Returns a negative errno. */
int tracee_refused(pid_t pid, pid_t tid, int code, struct err *err);
/* The sentence for a write to read-only memory that the kernel refuses also to a tracer. Returns -EACCES. */
int tracee_readonly(pid_t pid, struct err *err);
