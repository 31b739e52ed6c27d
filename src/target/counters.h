/*
 * counters.h - the processor's counters and the kernel's, of threads: opened, read, and what they mean.
 *
 * A processor has fewer counters than there are events, so the kernel lets them take turns; what was counted
 * is scaled to the whole time, and share says how much of it was really counted. Pairs that make a ratio
 * (instructions and cycles, misses and accesses) take their turns together, so that the ratio is of the same
 * moments.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
/* Of several threads: a thread that never ran has nothing to add. */
void counter_add(struct counter_value *sum, const struct counter_value *one);

/* --- what they mean --- */

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
/* A sentence on a ratio, NULL where there is nothing to say. */
const char *counter_hint(enum counter_ratio r, double value);

/* --- of a thread --- */

struct counters {
	int fds[COUNTERS];    /* -1: it could not be opened, */
	int errors[COUNTERS]; /* for this errno */
	bool user_only;       /* the kernel's part may not be counted */
};

/*
 * Counts thread tid, and those that it starts from now on. on_exec: only from its next exec on. 0, or the
 * negative errno of the first counter that everybody has. counters_close() in any case.
 */
int counters_open(struct counters *c, pid_t tid, bool on_exec);
void counters_read(const struct counters *c, struct counter_value ret[COUNTERS]);
void counters_close(struct counters *c);
