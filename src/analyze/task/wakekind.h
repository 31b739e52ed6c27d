/*
 * wakekind.h - what a task awaited, by the functions on the stack of its waker: a timer, a socket, a channel.
 *
 * A waker's stack ends in the runtime's own functions that put a task into a queue. Those above them belong to what the
 * task awaited, as far as they were not inlined.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct profile;

enum wakekind {
	WAKEKIND_OTHER,     /* nothing on the stack says it */
	WAKEKIND_TIMER,
	WAKEKIND_IO,        /* the driver that reads epoll's events */
	WAKEKIND_SIGNAL,    /* a signal of the system, the end of a child */
	WAKEKIND_JOIN,      /* a JoinHandle: a task finished */
	WAKEKIND_ONESHOT,
	WAKEKIND_CHANNEL,   /* a message */
	WAKEKIND_ROOM,      /* room in a channel that was full */
	WAKEKIND_LOCK,      /* an async mutex, a semaphore */
	WAKEKIND_NOTIFY,    /* Notify, watch, broadcast, a cancellation */
	WAKEKIND_YIELD,     /* it had given way to others */
	WAKEKIND_DRIVER,    /* a timer or I/O: a worker woke it in its driver, or outside of polls without a stack that says more */
	WAKEKIND_NOT_ENDED, /* it awaits still */
	WAKEKIND_NO_STACK,
	WAKEKIND_COUNT,
};

/* "timer", "not-ended": in JSON; "a timer", "a message": for people, after "awaited". */
const char *wakekind_key(enum wakekind kind);
const char *wakekind_name(enum wakekind kind);

/* Of the frames of a stack between its leaf and `until`, a node above it (0: all of them). *ret_function (may be NULL): the
 * nearest function of the program's own, else of a library that is not the runtime's machinery of wake-ups; "" = none, or the
 * kind says all. */
enum wakekind wakekind_of_stack(const struct profile *p, uint32_t stack, uint32_t until, const char **ret_function);

/* Was it awaited from outside of the program, or from the clock? */
bool wakekind_is_outer(enum wakekind kind);
/* Does a task that awaits this kind depend on the work of others? Not on a timer, and not on the world outside. */
bool wakekind_is_inner(enum wakekind kind);
