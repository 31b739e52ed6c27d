/*
 * kernelwait.h - classifies a wait by the kernel's own functions.
 *
 * Names differ between kernels (5.15 to 6.18 are known here) and compilers add
 * ".isra.0" and the like, so they are matched by prefix, in tables. Everything
 * here is a function of names alone.
 */
#pragma once

#include <stdbool.h>

/* The kind of wait as far as the kernel knows. Patterns of user code refine it. */
enum kernel_wait {
	KERNEL_UNKNOWN,   /* no name, or none that says anything */
	KERNEL_FUTEX,     /* a lock or a condition: user code knows which */
	KERNEL_LOCK,      /* a lock within the kernel, or one that the kernel knows (PI futex, semaphore) */
	KERNEL_EPOLL,     /* an event loop */
	KERNEL_POLL,      /* poll, select */
	KERNEL_ACCEPT,    /* a new connection */
	KERNEL_SIGNAL,    /* a signal: sigwait, pause */
	KERNEL_NETWORK,
	KERNEL_SLEEP,
	KERNEL_PIPE,
	KERNEL_PROCESS,   /* a child, an exit, a debugger */
	KERNEL_DISK_READ,
	KERNEL_DISK_WRITE,
	KERNEL_FAULT,     /* a page of a file or of swap that is not in memory */
	KERNEL_RECLAIM,   /* memory must be freed first */
	KERNEL_QUEUE,     /* it could run: preempted, or gave way */
	KERNEL_WAIT_COUNT,
};

/* Returns the name of the kind in a waits= line of a pattern. */
const char *kernel_wait_key(enum kernel_wait w);

/*
 * The kernel functions of a stack, innermost first, are fed one by one; the
 * result combines them.
 *
 *	struct kernel_reader r = { 0 };
 *	while (more) kernel_read(&r, name);
 *	enum kernel_wait w = kernel_wait_of(&r);
 */
struct kernel_reader {
	enum kernel_wait decided; /* by a function that leaves no doubt */
	bool disk;                /* waits for a block device; what for is said further out */
};
void kernel_read(struct kernel_reader *r, const char *name);
enum kernel_wait kernel_wait_of(const struct kernel_reader *r);

/* The scheduler and the tracing that lie below every wait and say nothing about it. */
bool kernel_is_machinery(const char *name);
/* The same for wake-ups. */
bool kernel_is_waking(const char *name);
