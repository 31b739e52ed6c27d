/*
 * remotemem.h - the memory of a process, read and written through /proc/PID/mem, also where it is read-only.
 *
 * From 6.12 on a kernel may be built or booted (proc_mem.force_override) so that such a write passes the
 * protection of a page only if the thread that writes traces the very thread whose file it is. A tracer need
 * not stop anybody: after PTRACE_SEIZE the thread runs on, and when its tracer ends the kernel lets it go
 * without a stop. So where a write is refused, a thread of ours seizes a thread of the process, writes, and
 * ends. If gasflame is killed meanwhile the kernel lets go in the same way. The process can notice this much:
 * for that moment no debugger can attach to that thread, and a signal to it is delivered afterwards.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct remotemem {
	pid_t pid;
	int file;   /* /proc/PID/mem, of whoever made this; -1: none */
	int traced; /* the same memory within remotemem_write(), where that traces a thread; -1 otherwise */
	bool is_tracer;  /* the caller is the tracer of the main thread already */
	bool must_trace; /* the kernel has refused a write that was not a tracer's */
};

/* All of the bytes, or an error. */
int remotemem_get(const struct remotemem *m, uint64_t address, void *ret, size_t n);
/* -EACCES: the memory is there, and the kernel does not let us write to it. */
int remotemem_put(const struct remotemem *m, uint64_t address, const void *data, size_t n);

/*
 * Calls write, which puts as much as it wants, also to read-only memory; all of one moment belongs into one
 * call. It must return -EACCES as soon as remotemem_put() does, and is then called again from its beginning,
 * by a thread that is a tracer. proof: an address with REMOTEMEM_PROOF bytes that no other program has there,
 * in case that the process executes one. Returns what write does, if that is not negative; else err says why,
 * and what to do: -EACCES: the kernel refuses it also to a tracer; -EPERM: it does not let us be one; -ESRCH:
 * the process has ended or executed another program.
 */
enum { REMOTEMEM_PROOF = 64 };
int remotemem_write(struct remotemem *m, uint64_t proof, int (*write)(void *context), void *context,
		    struct err *err);

/* Does this kernel allow that? Tries it with a child of ours. Errors are those of remotemem_write(). */
int remotemem_check(struct err *err);
