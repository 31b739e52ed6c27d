/*
 * counter.h - counters of the processor and the kernel: names, arithmetic, and the meaning of the figures.
 *
 * A processor has fewer counters than there are events, so the kernel multiplexes them; a count is scaled to
 * the whole time, and share says for how much of it the counter ran. An unknown value is never 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum counter {
	COUNTER_TASK_CLOCK, /* ns */
	COUNTER_MINOR_FAULTS,
	COUNTER_MAJOR_FAULTS,
	COUNTER_SWITCHES,
	COUNTER_MIGRATIONS,
	COUNTER_CYCLES, /* hardware from here on */
	COUNTER_INSTRUCTIONS,
	COUNTER_CACHE_REFERENCES,
	COUNTER_CACHE_MISSES,
	COUNTER_L1D_LOADS,
	COUNTER_L1D_MISSES,
	COUNTER_BRANCHES,
	COUNTER_BRANCH_MISSES,
	COUNTER_TLB_LOADS,
	COUNTER_TLB_MISSES,
	COUNTERS,
};
extern const char *const counter_names[COUNTERS];
static inline bool counter_is_hardware(enum counter c)
{
	return c >= COUNTER_CYCLES;
}

/* As the kernel hands it over. */
struct counter_raw {
	uint64_t value, enabled_ns, running_ns;
};

struct counter_value {
	double value; /* scaled to the whole time */
	double share; /* of that time it was counted; 1 = all, nothing is scaled */
	bool known;   /* false: no such counter here, or it never had its turn; never shown as 0 */
};
struct counter_value counter_decode(const struct counter_raw *raw);
/* Returns the weight of a sample of a period, when its counter was multiplexed since the sample before on
 * that CPU. */
uint64_t counter_weight(uint64_t period, const struct counter_raw *before, const struct counter_raw *now);
/* Of several threads: a thread that never ran has nothing to add. */
void counter_add(struct counter_value *sum, const struct counter_value *one);

/* --- ratios --- */

enum counter_ratio {
	RATIO_IPC,
	RATIO_CACHE_MISSES, /* these are shares of 1 */
	RATIO_L1D_MISSES,
	RATIO_BRANCH_MISSES,
	RATIO_TLB_MISSES,
	RATIOS,
};
extern const char *const counter_ratio_names[RATIOS];
double counter_ratio(const struct counter_value values[COUNTERS], enum counter_ratio r); /* NAN: not known */
enum counter counter_ratio_whole(enum counter_ratio r); /* the counter in the denominator */
/* A sentence on a ratio, NULL where there is nothing to say. */
const char *counter_hint(enum counter_ratio r, double value);
