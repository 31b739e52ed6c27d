/*
 * hurry.h - a recorder that gets no CPU can neither record nor end.
 *
 * On a machine with ten thousand threads that want to run, a process gets a ten-thousandth of it, also with the best nice value.
 * hurry_look() tells by how long we stood in the run queue, and then goes before others for good (SCHED_RR, where that is permitted), with all
 * threads and children: what is not ours waits for no longer than we work, and the kernel leaves others a part of each second in any case.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Of so much time, so much in the run queue: worth to go before others? A function of its arguments. */
bool hurry_needed(uint64_t wall_ns, uint64_t queue_ns);
/* For the process as a whole, by its first thread, as often as one likes; the first time it only begins to measure. True: from now on we go before others. */
bool hurry_look(void);
/* What to say then. */
#define HURRY_WORDS "this machine has more to do than it can: the recorder got no CPU, and goes before others from now on"
