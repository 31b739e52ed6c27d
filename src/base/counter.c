#include "base/counter.h"

#include <math.h>

const char *const counter_names[COUNTERS] = {
	"task-clock",	 "minor-faults",    "major-faults",	     "context-switches",
	"migrations",	 "cycles",	    "instructions",	     "cache-references",
	"cache-misses",	 "L1-dcache-loads", "L1-dcache-load-misses", "branches",
	"branch-misses", "dTLB-loads",	    "dTLB-load-misses",
};

struct counter_value counter_decode(const struct counter_raw *raw)
{
	struct counter_value v = { .known = true };

	/* Never enabled: the thread did not run, and its count is 0. */
	if (!raw->enabled_ns)
		return (struct counter_value){ .value = (double)raw->value, .share = 1, .known = true };
	if (!raw->running_ns)
		return (struct counter_value){ .known = false };
	v.share = fmin((double)raw->running_ns / (double)raw->enabled_ns, 1);
	v.value = raw->running_ns >= raw->enabled_ns ? (double)raw->value : (double)raw->value / v.share;
	return v;
}

uint64_t counter_weight(uint64_t period, const struct counter_raw *before, const struct counter_raw *now)
{
	uint64_t enabled = now->enabled_ns - before->enabled_ns, running = now->running_ns - before->running_ns;
	double weight;

	/* A counter that was not there gives no sample; figures that say so are of another one, or of none. */
	if (now->enabled_ns < before->enabled_ns || now->running_ns < before->running_ns || !running ||
	    enabled <= running)
		return period;
	weight = (double)period * ((double)enabled / (double)running);
	return weight < 1e18 ? (uint64_t)(weight + 0.5) : period;
}

void counter_add(struct counter_value *sum, const struct counter_value *one)
{
	double counted = sum->value * sum->share + one->value * one->share;

	if (!one->known)
		return;
	if (!sum->known) {
		*sum = *one;
		return;
	}
	sum->value += one->value;
	/* Large counts dominate the share; a sum of 0 has the smallest share. */
	sum->share = sum->value > 0 ? counted / sum->value : fmin(sum->share, one->share);
}

const char *const counter_ratio_names[RATIOS] = { "instructions a cycle", "cache miss rate", "L1D miss rate",
						  "branch miss rate", "dTLB miss rate" };

static const enum counter parts[RATIOS][2] = {
	[RATIO_IPC] = { COUNTER_INSTRUCTIONS, COUNTER_CYCLES },
	[RATIO_CACHE_MISSES] = { COUNTER_CACHE_MISSES, COUNTER_CACHE_REFERENCES },
	[RATIO_L1D_MISSES] = { COUNTER_L1D_MISSES, COUNTER_L1D_LOADS },
	[RATIO_BRANCH_MISSES] = { COUNTER_BRANCH_MISSES, COUNTER_BRANCHES },
	[RATIO_TLB_MISSES] = { COUNTER_TLB_MISSES, COUNTER_TLB_LOADS },
};

enum counter counter_ratio_whole(enum counter_ratio r)
{
	return parts[r][1];
}

double counter_ratio(const struct counter_value values[COUNTERS], enum counter_ratio r)
{
	const struct counter_value *part = &values[parts[r][0]], *whole = &values[parts[r][1]];

	return part->known && whole->known && whole->value > 0 ? part->value / whole->value : NAN;
}

const char *counter_hint(enum counter_ratio r, double value)
{
	switch (r) {
	case RATIO_IPC:
		return value > 2   ? "above 2 is good"
		       : value < 1 ? "below 1 the processor stalls: it waits for memory, or for branches it "
				     "guessed wrong"
				   : NULL;
	case RATIO_CACHE_MISSES:
		return value > 0.1 ? "above 10 % the data lie too far apart: look at how they are laid out"
				   : NULL;
	case RATIO_L1D_MISSES:
		return value > 0.1 ? "above 10 % of loads miss the first cache: memory is accessed here and "
				     "there"
				   : NULL;
	case RATIO_BRANCH_MISSES:
		return value > 0.05 ? "above 5 % the flow of control is hard to guess" : NULL;
	case RATIO_TLB_MISSES:
		return value > 0.01 ? "above 1 % translating addresses costs time: large pages may help"
				    : NULL;
	case RATIOS:
		break;
	}
	return NULL;
}
