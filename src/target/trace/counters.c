#include "target/trace/counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/fd.h"

#define CACHE(which, result)                                              \
	(PERF_COUNT_HW_CACHE_##which | PERF_COUNT_HW_CACHE_OP_READ << 8 | \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)

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

void counter_event(enum counter c, uint32_t *ret_type, uint64_t *ret_config)
{
	*ret_type = events[c].type;
	*ret_config = events[c].config;
}

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

bool counters_raw(const struct counters *c, enum counter which, struct counter_raw *ret)
{
	/* These happen in the kernel: without it the count is a meaningless 0. */
	if (c->user_only && (which == COUNTER_SWITCHES || which == COUNTER_MIGRATIONS))
		return false;
	return c->fds[which] >= 0 && fd_read_all(c->fds[which], ret, sizeof(*ret)) == sizeof(*ret);
}

void counters_read(const struct counters *c, struct counter_value ret[COUNTERS])
{
	for (size_t i = 0; i < COUNTERS; i++) {
		struct counter_raw raw;

		ret[i] = (struct counter_value){ 0 };
		if (counters_raw(c, i, &raw))
			ret[i] = counter_decode(&raw);
	}
}

void counters_close(struct counters *c)
{
	for (size_t i = 0; i < COUNTERS; i++)
		fd_close(&c->fds[i]);
}
