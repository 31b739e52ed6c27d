#include "target/hurry.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/fd.h"
#include "base/vec.h"
#include "target/proc.h"

/* With 25 threads a CPU beside us, nice -10 leaves us in the run queue for three quarters of the time: that is enough to
 * record. With thousands of threads that wake often it is nine tenths, sometimes a little less. */
enum { LOOK_NS = 200000000, STARVED_PERCENT = 80 };

bool hurry_needed(uint64_t wall_ns, uint64_t queue_ns)
{
	return wall_ns >= LOOK_NS && queue_ns > wall_ns / 100 * STARVED_PERCENT;
}

static pid_t spared = -1;

static bool raise_one(pid_t tid)
{
	return !sched_setscheduler(tid, SCHED_RR, &(struct sched_param){ .sched_priority = 1 });
}

static void raise_children(pid_t tid)
{
	_cleanup_free_ char *text = NULL;
	char path[64], *end;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", tid);
	if (fd_read_path(path, 1 << 16, &text, NULL))
		return;
	for (char *s = text; *s; s = end) {
		long pid = strtol(s, &end, 10);

		if (end == s)
			break;
		if (pid != spared)
			raise_one(pid);
	}
}

void hurry_spare(pid_t pid)
{
	spared = pid;
}

void hurry_leave(void)
{
	if (sched_getscheduler(0) == SCHED_RR)
		sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
}

static bool forbidden;

void hurry_forbid(void)
{
	forbidden = true;
}

bool hurry_forbidden(void)
{
	return forbidden;
}

bool hurry_raise(void)
{
	struct proc_ids tids = { 0 };

	if (forbidden || !raise_one(0))
		return false;
	if (proc_threads(getpid(), &tids) >= 0)
		for (size_t i = 0; i < tids.list.n; i++) {
			raise_one(tids.list.v[i]);
			raise_children(tids.list.v[i]);
		}
	vec_done(&tids.list);
	return true;
}

bool hurry_crowded(void)
{
	uint64_t cpu, queue;

	return proc_schedstat(getpid(), gettid(), &cpu, &queue) >= 0 && queue > cpu;
}

bool hurry_look(void)
{
	static uint64_t time_ns, queue_ns; /* at the last look */
	static bool raised;
	uint64_t now = clock_mono_ns(), cpu, queue;
	bool needed;

	if (forbidden || raised || now < time_ns + LOOK_NS || proc_schedstat(getpid(), gettid(), &cpu, &queue) < 0)
		return false;
	needed = time_ns && hurry_needed(now - time_ns, queue - queue_ns);
	time_ns = now;
	queue_ns = queue;
	raised = needed && hurry_raise();
	return raised;
}
