/*
 * mem.c - the mem collector: RSS part by part, the cgroup, faults and pressure over time (memwatch.h).
 */
#include "base/clock.h"
#include "collect/collector.h"
#include "collect/mem/memwatch.h"
#include "collect/process/processes.h"
#include "target/proc.h"

struct mem {
	struct memwatch *watch;
	uint64_t walk_ns; /* with a pace of its own: not before */
};

/* A recording that is to cost little knows the parts twice a minute. */
static const uint64_t walk_pace_ns = 30000000000;

static struct mem *own(const struct session *s)
{
	return s->state[COLLECTOR_mem];
}

static int start(struct session *s, struct err *err)
{
	/* Where another collector records the pressure, it is not recorded twice. */
	own(s)->watch = memwatch_new(s->profile, s->options->pids, s->options->pid_count, s->start_mono_ns,
				     !collector_any(s, COLLECTOR_PRESSURE));
	/* A program that we start is not itself before its exec. */
	if (!s->options->program)
		memwatch_look(own(s)->watch, clock_mono_ns(), MEMWATCH_WALK);
	return 0;
}

static int started(struct session *s, struct err *err)
{
	memwatch_look(own(s)->watch, clock_mono_ns(), MEMWATCH_WALK);
	return 0;
}

static void tick(struct session *s, uint64_t now)
{
	struct proc_ids mains = { 0 };
	bool cheap = s->options->pace_ns && now < own(s)->walk_ns;

	/* A restarted target has other processes. */
	if (s->follow && processes_mains(s->processes, &mains))
		memwatch_watch(own(s)->watch, mains.list.v, mains.list.n);
	vec_done(&mains.list);
	memwatch_look(own(s)->watch, now, cheap ? MEMWATCH_CHEAP : MEMWATCH_BUDGET);
	if (!cheap)
		own(s)->walk_ns = now + walk_pace_ns;
}

static void stop(struct session *s)
{
	memwatch_look(own(s)->watch, clock_mono_ns(), MEMWATCH_WALK);
	memwatch_free(own(s)->watch);
}

const struct collector collector_mem = {
	.name = "mem",
	.describe = "memory: RSS part by part, its cgroup, page faults and pressure, once a second",
	.flags = COLLECTOR_READS,
	.state_size = sizeof(struct mem),
	.start = start,
	.started = started,
	/* No pause: a look a second costs nothing that it would save. */
	.tick = tick,
	.stop = stop,
};
