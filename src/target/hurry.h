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

struct hurry {
	uint64_t time_ns, queue_ns; /* at the last look; CLOCK_MONOTONIC */
	bool raised;
};

/* Waited more than it worked: worth to go before others? A function of its arguments. */
bool hurry_needed(uint64_t wall_ns, uint64_t queue_ns);
/* To be called as often as one likes. True: from now on we go before others. */
bool hurry_look(struct hurry *h);
