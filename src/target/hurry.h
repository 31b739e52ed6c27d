/*
 * hurry.h - gives a recorder that gets no CPU time a real-time priority.
 *
 * On a machine with ten thousand runnable threads, a process gets a ten-thousandth of the CPU time, even with
 * the best nice value, and can neither record nor end. hurry_look() measures how long we waited in the run
 * queue, and then raises all our threads and children to SCHED_RR for good, where that is permitted. Other
 * processes wait only while we work, and the kernel leaves them a part of each second in any case. A program that we
 * started to record is a child, too, and must not go before others: hurry_spare() and hurry_leave().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Of so much time, so much in the run queue: worth to go before others? A function of its arguments. */
bool hurry_needed(uint64_t wall_ns, uint64_t queue_ns);
/* Call it from the first thread, as often as you like; the first call only begins to measure. True: our priority was
 * raised. */
bool hurry_look(void);
/* Raises us now. Threads and children that start later inherit the priority. False: that is not permitted. */
bool hurry_raise(void);
/* Never raises us, nor is anything else done to go before others: for who is to go unnoticed, also where the machine is crowded. */
void hurry_forbid(void);
bool hurry_forbidden(void);
/* This child keeps its own priority. */
void hurry_spare(pid_t pid);
/* In a child, before it becomes another program: what we got is not for it. */
void hurry_leave(void);
/* Did the calling thread stand in the run queue for longer than it ran, of all its life? */
bool hurry_crowded(void);
/* The warning for when our priority was raised. */
#define HURRY_WORDS \
	"this machine is overloaded: the recorder got no CPU time, and runs with real-time priority from now on"
