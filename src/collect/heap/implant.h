/*
 * implant.h - the blob in a process: put there, found again, switched on and off, taken out of use.
 *
 * Life: open (maps the blob into the process, or takes over the one that is there;
 * hooks nothing) -> hook -> activate -> rescan now and then -> unhook -> close. The only moment
 * in which a thread of the process is stopped is the first open. On kernels that let only a tracer write to read-only
 * memory, writes trace a thread for a moment without stopping it (remotemem.h).
 *
 * If gasflame dies meanwhile, the slots keep pointing to hooks that still work, and after
 * some time only pass on; the next open finds all that is needed to go on or to put
 * everything back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct blob_shared;
struct err;
struct exact_thread;
struct implant;
struct worker;

/*
 * w reads the process's files; NULL: only what is there already, -ENOENT: there is nothing. A process without slots is
 * refused (-ENOTSUP) before anything in it is changed. -EBUSY: another gasflame has it. With NULL, and of a
 * child of fork, it may be an implant that can only be unhooked: implant_shared() is NULL then.
 */
int implant_open(pid_t pid, struct worker *w, struct implant **ret, struct err *err);
/* For a program that we start: expect before it executes, begin after; it stands still before its first instruction
 * then, until implant_let_go(). */
int implant_expect(pid_t pid, struct err *err);
int implant_begin(pid_t pid, struct worker *w, struct implant **ret, struct err *err);
/* The same when it has executed another program, and SIGSTOP keeps it from beginning with it. It goes on in any case. */
int implant_begin_again(pid_t pid, struct worker *w, struct implant **ret, struct err *err);
void implant_let_go(struct implant *i);
/* Does it still stand before its first instruction, with its only thread? */
bool implant_held(const struct implant *i);
/* Points the slots of the process to hooks; again later for what was loaded since. Returns how many are hooked. -EACCES, -EPERM: the
 * kernel refuses to write to them, err says why and what to do. */
int implant_hook(struct implant *i, struct worker *w, struct err *err);
/* interval_bytes: mean distance of samples, 0: every allocation. Forgets all samples from before. */
int implant_activate(struct implant *i, uint64_t interval_bytes, struct err *err);
/* Samples are drawn by another interval from each thread's next one on. */
int implant_set_interval(struct implant *i, uint64_t interval_bytes, struct err *err);
/* Makes all of our memory now, which the process would otherwise make by touching it: whoever is first pays for it
 * with his cgroup's limit. */
void implant_populate(struct implant *i);
/* So often that the hooks do not think us dead. */
void implant_alive(struct implant *i);
/* Hooks pass on from now on. */
void implant_deactivate(struct implant *i);

/*
 * Where a jemalloc of the process takes orders: address of its mallctl(), known once hooked; 0: there are no more.
 * Calls of it are made by a thread of the process, at its next allocation, where it holds no lock of the
 * allocator. Hooks must be in place and inactive.
 */
uint64_t implant_control_at(const struct implant *i, unsigned k);
struct implant_control {
	const char *name;
	void *old;           /* gets the value, NULL: not asked for */
	size_t old_size;     /* of it, exactly */
	const void *new;     /* NULL: nothing is set */
	size_t new_size;
	const char *text;    /* instead of new: a string */
};
/* mallctl()'s own error as a negative number (-ENOENT: it has no such name); with a sentence -ETIMEDOUT when no thread
 * allocated anything for wait_ns, -ESRCH: the process has ended, -EBUSY: it still works on another order, -EINTR:
 * implant_interrupt(). */
int implant_control(struct implant *i, uint64_t function, const struct implant_control *c, uint64_t wait_ns, struct err *err);
/* Ends the waiting for an answer that nobody has begun, now or the next time; for signal handlers. */
void implant_interrupt(void);

/* Is it one of these last, after which asking for something else is of no use? */
bool implant_gave_up(int r);

/* The same for statistics of which there is one for each number from first on: "arenas.bin." and ".size". Each is 4 or 8
 * bytes wide; all are of one moment. */
enum { IMPLANT_MANY = 64 };
struct implant_many {
	const char *name, *rest;
	uint32_t first, count; /* count: at most IMPLANT_MANY */
	size_t width;
};
int implant_control_many(struct implant *i, uint64_t function, const struct implant_many *m, uint64_t *values,
			 uint64_t wait_ns, struct err *err);

/* How many slots hold our hooks now. */
int implant_hooked(const struct implant *i);
/* Puts the slots back that still hold our hooks. Returns how many could not be; err says why. */
int implant_unhook(struct implant *i, struct err *err);
void implant_close(struct implant *i); /* NULL is fine */

/* Does nobody run our hooks any more: has the process ended, or executed another program? */
bool implant_gone(const struct implant *i);
/* Has the process, which is still there, another memory than the one with our hooks? It executed a program. */
bool implant_replaced(const struct implant *i);

struct blob_shared *implant_shared(struct implant *i);
/* Where each allocation is seen: what the process knows of a thread (false: it is gone), and where that one's stack is. */
bool implant_thread(const struct implant *i, uint32_t index, struct exact_thread *ret);
void implant_set_stack(struct implant *i, uint32_t index, uint64_t low, uint64_t top);
/* Allocations and bytes since activate, exactly. */
void implant_totals(const struct implant *i, uint64_t *ret_count, uint64_t *ret_bytes);
const char *implant_allocators(const struct implant *i);
uint64_t implant_stopped_ns(const struct implant *i); /* for how long the thread was stopped, 0: none was */

/* For uprobes: a path of the blob's file, valid while open, and offsets in it; ends in 0. */
const char *implant_path(const struct implant *i);
extern const uint64_t implant_alloc_offsets[], implant_free_offsets[]; /* of samples */
extern const uint64_t implant_exact_offsets[]; /* where each is seen: those whose stack is not known */
