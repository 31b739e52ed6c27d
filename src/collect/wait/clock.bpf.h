/*
 * clock.bpf.h - the time of a switch, from the clock that the scheduler has just read.
 *
 * Reading the clock was the largest part of a switch: 30 to 90 ns in a virtual machine, as it waits for all loads before it.
 * The scheduler has read its own a moment before, at the begin of the same switch (rq->clock). CLOCK_MONOTONIC runs beside
 * it and is read once in a millisecond on each CPU, to know how far the two are apart.
 *
 * A reading comes later than that of the scheduler, by some 100 ns and at times by microseconds, so the smallest distance
 * is the best. It is kept, and grows only as fast as two clocks can drift apart. The times of one CPU never go back; those of
 * two CPUs may differ by as much as a reading is late, so callers must not subtract a time of another CPU unchecked.
 *
 * Part of wait.bpf.c.
 */
#pragma once

#include "collect/kernel.bpf.h"

enum {
	CLOCK_HOLD_NS = 1000000, /* as long is a distance used */
	CLOCK_DRIFT_BITS = 10,   /* 2^-10 is twice what a clock may be slewed by */
	CLOCK_LATE_NS = 100000,  /* by more a reading is late where a hypervisor took the CPU away; twice in a row, a clock has jumped */
};

struct switch_clock {
	uint64_t read;   /* rq->clock when CLOCK_MONOTONIC was last read, 0 = never */
	uint64_t offset; /* CLOCK_MONOTONIC - rq->clock */
	uint64_t last;   /* the time of the last switch */
	uint64_t doubt;  /* the last reading seemed too late, and was not used */
};

BPF_MAP(switch_clocks, PERCPU_ARRAY, 1, uint32_t, struct switch_clock);

static __always_inline void clock_compare(struct switch_clock *c, uint64_t clock)
{
	uint64_t offset = bpf_ktime_get_ns() - clock, rise = offset - c->offset, drift = (clock - c->read) >> CLOCK_DRIFT_BITS;

	if (!c->read || rise >> 63) {
		c->offset = offset;
	} else if (rise <= CLOCK_LATE_NS) {
		c->offset += rise < drift ? rise : drift;
	} else if (!c->doubt) {
		c->doubt = 1; /* the next switch compares again */
		return;
	} else {
		c->offset = offset;
	}
	c->doubt = 0;
	c->read = clock;
}

/* The time of the switch at hand by CLOCK_MONOTONIC. prev: the task that leaves this CPU. */
static __always_inline uint64_t clock_of_switch(struct task_struct *prev)
{
	uint32_t zero = 0;
	struct switch_clock *c = bpf_map_lookup_elem(&switch_clocks, &zero);
	uint64_t clock, now;

	if (!c || !bpf_core_field_exists(prev->se.cfs_rq) || !bpf_core_field_exists(prev->se.cfs_rq->rq))
		return bpf_ktime_get_ns();
	clock = prev->se.cfs_rq->rq->clock;
	if (clock - c->read >= CLOCK_HOLD_NS)
		clock_compare(c, clock);
	now = clock + c->offset;
	if (now < c->last)
		now = c->last;
	c->last = now;
	return now;
}
