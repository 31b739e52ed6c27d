/* clock.h - the clocks: monotonic for intervals, wall for file names, CPU time for our own cost. */
#pragma once

#include <stdint.h>

struct timespec;

uint64_t clock_mono_ns(void);      /* CLOCK_MONOTONIC, the clock of bpf_ktime_get_ns() */
uint64_t clock_boot_ns(void);      /* CLOCK_BOOTTIME, of the times in /proc/PID/stat: goes on while the machine is suspended */
uint64_t clock_wall_ns(void);      /* CLOCK_REALTIME */
uint64_t clock_process_cpu_ns(void); /* CPU time of this process, all threads */
uint64_t clock_thread_cpu_ns(void);  /* of the calling thread */
/* The moment so many milliseconds from now on CLOCK_MONOTONIC, for pthread_cond_clockwait() and its like:
 * a wait by the wall clock ends early, or never, when the clock is set. */
void clock_after_ms(unsigned ms, struct timespec *ret);
