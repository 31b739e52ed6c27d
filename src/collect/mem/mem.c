/*
 * mem.c - the mem collector: RSS part by part, the cgroup, faults and pressure over time (memwatch.h).
 */
#include "base/clock.h"
#include "collect/collector.h"
#include "collect/mem/memwatch.h"
#include "collect/process/processes.h"
#include "target/proc.h"

static bool is_chosen(const struct session *s, const struct collector *c)
{
	for (size_t i = 0; s->collectors[i]; i++)
		if (s->collectors[i] == c)
			return true;
	return false;
}

static int start(struct session *s, struct err *err)
{
	/* The fault collector watches the pressure itself. */
	s->mem = memwatch_new(s->profile, s->options->pids, s->options->pid_count, s->start_mono_ns,
			      !is_chosen(s, &collector_fault));
	/* A program that we start is not itself before its exec. */
	if (!s->options->program)
		memwatch_look(s->mem, clock_mono_ns(), MEMWATCH_WALK);
	return 0;
}

static int started(struct session *s, struct err *err)
{
	memwatch_look(s->mem, clock_mono_ns(), MEMWATCH_WALK);
	return 0;
}

static void tick(struct session *s, uint64_t now)
{
	struct proc_ids mains = { 0 };

	/* Those of a target that was restarted are others. */
	if (s->follow && processes_mains(s->processes, &mains))
		memwatch_watch(s->mem, mains.list.v, mains.list.n);
	vec_done(&mains.list);
	memwatch_look(s->mem, now, MEMWATCH_BUDGET);
}

static void stop(struct session *s)
{
	if (!s->mem)
		return;
	memwatch_look(s->mem, clock_mono_ns(), MEMWATCH_WALK);
	memwatch_free(s->mem);
	s->mem = NULL;
}

static void record(struct session *s, const void *data, size_t size)
{
	/* Nothing comes from the kernel. */
}

static void set_hz(struct session *s, uint64_t hz)
{
	/* No clock. */
}

static void pause_mem(struct session *s, bool pause)
{
	/* A look a second costs nothing that a pause would save. */
}

static const char *const programs[] = { NULL };

const struct collector collector_mem = {
	.name = "mem",
	.describe = "memory: RSS part by part, its cgroup, page faults and pressure, once a second",
	.only_reads = true,
	.programs = programs,
	.start = start,
	.started = started,
	.record = record,
	.set_hz = set_hz,
	.pause = pause_mem,
	.tick = tick,
	.stop = stop,
};
