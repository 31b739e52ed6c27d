/*
 * taskrows.h - what tasks do becomes rows of a profile: samples, awaits one by one, marks, series and histograms.
 *
 *	poll       [task TYPE]                                ns, thread = the one that polled
 *	taskqueue  [task TYPE, what that thread did meanwhile]  ns: "task OTHER", or "[idle worker]"
 *	await      [task TYPE, the waker's stack]             ns, thread = the waker
 *	spawn      [the stack of the spawn, task TYPE]        tasks
 *
 * Short ones are summed by 10 ms, thread and stack; those of 1 ms or more stay one by one. Only some wakes have a stack:
 * these share the exact awaited time of their type and second, by what each of them stands for, so that the samples of a
 * type add up to its awaited time. Times are since the start of the recording. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct profile;
struct profile_taskwake;
struct taskrows;

enum { TASKROWS_WAKES = 20 /* awaits kept one by one in 10 ms */, TASKROWS_MARKS = 200 /* long polls in a second */ };
#define TASKROWS_LEAST_NS 100000 /* of an await that is kept one by one */

/* An await that ended. */
struct taskrows_await {
	uint32_t type, waker;  /* waker: thread */
	uint64_t woken_ns, ns;
	uint32_t stack;        /* the waker's, 0: not taken */
	double scale;          /* with a stack: how many such awaits it stands for */
};

struct taskrows *taskrows_new(struct profile *p, uint64_t long_poll_ns);
void taskrows_free(struct taskrows *r); /* NULL is fine */

/* The type of that name, made when it is first asked for. blocking: a long poll of it is no news. */
uint32_t taskrows_type(struct taskrows *r, const char *name, bool blocking);
const char *taskrows_name(const struct taskrows *r, uint32_t type);
bool taskrows_blocking(const struct taskrows *r, uint32_t type);

/* In the order in which they were over; of one task first the await, then the queue, then the poll. */
void taskrows_await(struct taskrows *r, const struct taskrows_await *a);
void taskrows_queue(struct taskrows *r, uint32_t type, uint32_t thread, uint64_t begin_ns, uint64_t ns);
/* own_ns: without the time in which the task was polled elsewhere already. */
void taskrows_poll(struct taskrows *r, uint32_t type, uint32_t thread, uint64_t begin_ns, uint64_t ns, uint64_t own_ns);
/* Some of what was told as awaited was not. */
void taskrows_await_less(struct taskrows *r, uint32_t type, uint64_t ns);
void taskrows_spawn(struct taskrows *r, uint32_t type, uint32_t thread, uint64_t time_ns, uint32_t stack);
/* An await of TASKROWS_LEAST_NS or more, after its queue: kept if it is among the longest of these 10 ms. */
void taskrows_wake(struct taskrows *r, const struct profile_taskwake *wake);
/* A poll that is under way, about once a second: for the series. */
void taskrows_under_way(struct taskrows *r, uint32_t type, uint32_t thread, uint64_t begin_ns, uint64_t now_ns);
/* Tasks that await, or are in a queue, when the recording ends. */
void taskrows_not_ended(struct taskrows *r, uint32_t type, bool queued, uint64_t end_ns, uint64_t ns, uint64_t count);

/* Everything that was over by then has been told: older rows go to the profile. */
void taskrows_until(struct taskrows *r, uint64_t time_ns);
void taskrows_finish(struct taskrows *r, uint64_t end_ns);
