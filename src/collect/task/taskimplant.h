/*
 * taskimplant.h - hooks in the vtables of a process's async tasks: put there, read, and taken out again.
 *
 * Life: open (maps the blob into the process, or takes over the one that is there; hooks nothing) -> hook ->
 * activate -> read, often -> deactivate -> read the rest -> unhook -> close. The only moment in which a thread of
 * the process is stopped is the first open.
 *
 * Three functions of each vtable are seen: poll, schedule (a wake) and dealloc. Each thread writes its events into a
 * ring of its own, with the processor's time-stamp counter; read() merges them and turns ticks into CLOCK_MONOTONIC.
 * If gasflame dies, the slots keep pointing to hooks that still work; these pass on once they have heard nothing for
 * some seconds, and the next open, or `gasflame detach`, puts everything back.
 *
 * tokio frees a task within its last poll if nobody else holds it, and does not call dealloc through the vtable then.
 * So TASK_DEALLOC is seen of some tasks only; taskimplant_look() says which of the others are still alive.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct taskimplant;

/* A vtable at an address of the process, and the three functions that are expected in its first three words. */
struct taskimplant_vtable {
	uint64_t address;
	uint64_t poll, schedule, dealloc;
	/* Where a task has its number, from its header on (the tenth word of the vtable since tokio 1.23): numbers are never
	 * used twice, addresses are. 0: tasks are told apart by the address of their header. */
	uint32_t id_offset;
};

enum { TASKIMPLANT_VTABLES = 2048 }; /* that can be hooked in one process */

/* -EBUSY: another gasflame has it; -ENOTSUP: the processor's counter cannot be used. err says why, and what to do. */
int taskimplant_open(pid_t pid, struct taskimplant **ret, struct err *err);
/* The same of what is there already; -ENOENT: there is nothing. It may be the implant of a child of fork, which can only be
 * unhooked. */
int taskimplant_find(pid_t pid, struct taskimplant **ret, struct err *err);

/*
 * Points the slots of n more vtables to hooks; again later for libraries that were loaded since. An event's vtable is the
 * index in the order of all calls. Vtables that do not hold what is expected are left alone. Returns how many of the n are
 * hooked.
 */
int taskimplant_hook(struct taskimplant *t, const struct taskimplant_vtable *v, size_t n, struct err *err);

/*
 * Begins a recording: forgets all events from before. interval_ns: the mean awaited time between two wakes that run over
 * the uprobe; 0: none does. Attach the uprobe before.
 */
int taskimplant_activate(struct taskimplant *t, uint64_t interval_ns, struct err *err);
/* Wakes are drawn by another interval from each thread's next one on. */
int taskimplant_set_interval(struct taskimplant *t, uint64_t interval_ns, struct err *err);
/* Hooks pass on from now on; polls that are under way are not told any more. read() still returns what was written. */
void taskimplant_deactivate(struct taskimplant *t);

enum taskimplant_what { TASK_POLL = 1, TASK_WAKE, TASK_DEALLOC };

struct taskimplant_event {
	uint64_t time_ns;     /* CLOCK_MONOTONIC: of a poll its begin */
	uint64_t duration_ns; /* of a poll */
	uint64_t task;        /* its number, or where there is none its header */
	uint64_t header;      /* its address */
	uint64_t waker;       /* TASK_WAKE: the task that this thread polled meanwhile, 0: none */
	uint32_t waker_vtable; /* of that task; UINT32_MAX: there is none */
	uint32_t tid;         /* as we see it; 0: not known */
	uint32_t vtable;
	uint32_t what;        /* enum taskimplant_what */
	uint32_t ticket;      /* TASK_WAKE: the uprobe tells the waker's stack with this number; 0: it does not */
	double scale;         /* with a ticket: each ns that was awaited stands for so many, 1 / (1 - exp(-awaited / interval)) */
};

/*
 * Events of all threads, in the order in which they were over: of polls the order of their ends. Up to a moment
 * before which no thread can still write one: some ms ago. Returns fewer than room when there are no more now.
 * Called every 10 ms or so; also the sign that keeps the hooks awake.
 */
size_t taskimplant_read(struct taskimplant *t, struct taskimplant_event *ret, size_t room);
/* All events that were over by then (CLOCK_MONOTONIC) were returned by read(). */
uint64_t taskimplant_until(const struct taskimplant *t);
/* Events since activate that found no room, or were not understood. */
uint64_t taskimplant_lost(const struct taskimplant *t);
/* Polls that are under way now, as events of which duration_ns is the time until now. */
size_t taskimplant_polls(struct taskimplant *t, struct taskimplant_event *ret, size_t room);

/* Is a task alive that is known from events? Reads the state word of its header. */
enum taskimplant_life { TASK_ALIVE, TASK_FINISHED, TASK_UNKNOWN };
struct taskimplant_task {
	uint64_t task, header;
	uint32_t vtable;
	uint32_t life; /* out: enum taskimplant_life; unknown: the process is gone */
};
void taskimplant_look(struct taskimplant *t, struct taskimplant_task *v, size_t n);

/* How many slots hold our hooks now. */
int taskimplant_hooked(const struct taskimplant *t);
/* Puts the slots back that still hold our hooks. Returns how many could not be; err says why. */
int taskimplant_unhook(struct taskimplant *t, struct err *err);
void taskimplant_close(struct taskimplant *t); /* NULL is fine */

/* Does nobody run our hooks any more: has the process ended, or executed another program? */
bool taskimplant_gone(const struct taskimplant *t);
/* Has the process, which is still there, executed another program? */
bool taskimplant_replaced(const struct taskimplant *t);
uint64_t taskimplant_stopped_ns(const struct taskimplant *t); /* for how long a thread was stopped, 0: none was */

/*
 * For the uprobe: a path of the blob's file, valid while open, and the offset in it; ends in 0. Registers there: rax the
 * ticket, rdi the header; the stack is as it was where the waker called schedule: rsp points to its return address.
 */
const char *taskimplant_path(const struct taskimplant *t);
extern const uint64_t taskimplant_wake_offsets[];
