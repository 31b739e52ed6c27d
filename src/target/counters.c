#include "target/counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#define CACHE(which, result)                                              \
	(PERF_COUNT_HW_CACHE_##which | PERF_COUNT_HW_CACHE_OP_READ << 8 | \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)

const char *const counter_names[COUNTERS] = {
	"task-clock",	 "minor-faults",    "major-faults",	     "context-switches",
	"migrations",	 "cycles",	    "instructions",	     "cache-references",
	"cache-misses",	 "L1-dcache-loads", "L1-dcache-load-misses", "branches",
	"branch-misses", "dTLB-loads",	    "dTLB-load-misses",
};

static const struct {
	uint32_t type;
	uint64_t config;
	enum counter leader; /* takes its turns with that one; itself: alone, or first */
} events[COUNTERS] = {
	[COUNTER_TASK_CLOCK] = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, COUNTER_TASK_CLOCK },
	[COUNTER_MINOR_FAULTS] = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, COUNTER_MINOR_FAULTS },
	[COUNTER_MAJOR_FAULTS] = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, COUNTER_MAJOR_FAULTS },
	[COUNTER_SWITCHES] = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, COUNTER_SWITCHES },
	[COUNTER_MIGRATIONS] = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, COUNTER_MIGRATIONS },
	[COUNTER_CYCLES] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, COUNTER_CYCLES },
	[COUNTER_INSTRUCTIONS] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, COUNTER_CYCLES },
	[COUNTER_CACHE_REFERENCES] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES,
				       COUNTER_CACHE_REFERENCES },
	[COUNTER_CACHE_MISSES] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, COUNTER_CACHE_REFERENCES },
	[COUNTER_L1D_LOADS] = { PERF_TYPE_HW_CACHE, CACHE(L1D, ACCESS), COUNTER_L1D_LOADS },
	[COUNTER_L1D_MISSES] = { PERF_TYPE_HW_CACHE, CACHE(L1D, MISS), COUNTER_L1D_LOADS },
	[COUNTER_BRANCHES] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, COUNTER_BRANCHES },
	[COUNTER_BRANCH_MISSES] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, COUNTER_BRANCHES },
	[COUNTER_TLB_LOADS] = { PERF_TYPE_HW_CACHE, CACHE(DTLB, ACCESS), COUNTER_TLB_LOADS },
	[COUNTER_TLB_MISSES] = { PERF_TYPE_HW_CACHE, CACHE(DTLB, MISS), COUNTER_TLB_LOADS },
};

/* --- arithmetic --- */

struct counter_value counter_decode(const struct counter_raw *raw)
{
	struct counter_value v = { .known = true };

	/* Never enabled: the thread did not run, and 0 is what it did. */
	if (!raw->enabled_ns)
		return (struct counter_value){ .value = (double)raw->value, .share = 1, .known = true };
	if (!raw->running_ns)
		return (struct counter_value){ .known = false };
	v.share = fmin((double)raw->running_ns / (double)raw->enabled_ns, 1);
	v.value = raw->running_ns >= raw->enabled_ns ? (double)raw->value : (double)raw->value / v.share;
	return v;
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
	/* Who counted much decides; of nothing all was counted, unless one says otherwise. */
	sum->share = sum->value > 0 ? counted / sum->value : fmin(sum->share, one->share);
}

const char *const counter_ratio_names[RATIOS] = { "instructions a cycle", "cache miss rate", "L1D miss rate",
						  "branch miss rate", "dTLB miss rate" };

double counter_ratio(const struct counter_value values[COUNTERS], enum counter_ratio r)
{
	static const enum counter parts[RATIOS][2] = {
		[RATIO_IPC] = { COUNTER_INSTRUCTIONS, COUNTER_CYCLES },
		[RATIO_CACHE_MISSES] = { COUNTER_CACHE_MISSES, COUNTER_CACHE_REFERENCES },
		[RATIO_L1D_MISSES] = { COUNTER_L1D_MISSES, COUNTER_L1D_LOADS },
		[RATIO_BRANCH_MISSES] = { COUNTER_BRANCH_MISSES, COUNTER_BRANCHES },
		[RATIO_TLB_MISSES] = { COUNTER_TLB_MISSES, COUNTER_TLB_LOADS },
	};
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

/* --- the kernel --- */

static int open_event(enum counter which, pid_t tid, int group, bool on_exec, bool user_only)
{
	struct perf_event_attr attr = {
		.type = events[which].type,
		.size = sizeof(attr),
		.config = events[which].config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.inherit = 1,
		/* The members of a group follow its first. */
		.disabled = on_exec && group < 0,
		.enable_on_exec = on_exec && group < 0,
		.exclude_kernel = user_only,
		.exclude_hv = user_only,
	};

	return syscall(SYS_perf_event_open, &attr, tid, -1, group, PERF_FLAG_FD_CLOEXEC);
}

int counters_open(struct counters *c, pid_t tid, bool on_exec)
{
	c->user_only = false;
	for (size_t i = 0; i < COUNTERS; i++) {
		c->fds[i] = -1;
		c->errors[i] = 0;
	}
	for (enum counter i = 0; i < COUNTERS; i++) {
		int group = events[i].leader != i ? c->fds[events[i].leader] : -1;

		c->fds[i] = open_event(i, tid, group, on_exec, c->user_only);
		if (c->fds[i] < 0 && (errno == EACCES || errno == EPERM) && !c->user_only) {
			c->user_only = true;
			c->fds[i] = open_event(i, tid, group, on_exec, true);
		}
		/* A machine with few counters cannot give both of a pair at once: then in turns. */
		if (c->fds[i] < 0 && group >= 0)
			c->fds[i] = open_event(i, tid, -1, on_exec, c->user_only);
		c->errors[i] = c->fds[i] < 0 ? errno : 0;
		if (!i && c->fds[i] < 0)
			return -c->errors[i];
	}
	return 0;
}

void counters_read(const struct counters *c, struct counter_value ret[COUNTERS])
{
	for (size_t i = 0; i < COUNTERS; i++) {
		struct counter_raw raw;

		ret[i] = (struct counter_value){ 0 };
		/* These happen in the kernel: without it the counter stands at a 0 that means nothing. */
		if (c->user_only && (i == COUNTER_SWITCHES || i == COUNTER_MIGRATIONS))
			continue;
		if (c->fds[i] >= 0 && fd_read_all(c->fds[i], &raw, sizeof(raw)) == sizeof(raw))
			ret[i] = counter_decode(&raw);
	}
}

void counters_close(struct counters *c)
{
	for (size_t i = 0; i < COUNTERS; i++)
		fd_close(&c->fds[i]);
}
