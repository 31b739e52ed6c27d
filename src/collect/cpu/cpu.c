/*
 * cpu.c - the cpu collector: a clock on every CPU, a stack at each tick.
 *
 * cpu-clock rather than cycles: it is there on every machine, its period is time,
 * so that a sample's weight is nanoseconds whatever the frequency of the CPU.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "collect/bpfengine.h"
#include "collect/collector.h"
#include "collect/cpu/copies.h"
#include "collect/perf/ring.h"
#include "collect/shared.h"
#include "profile/keys.h"
#include "profile/profile.h"

#include "gasflame.skel.h"

struct cpu {
	int *clocks; /* one perf event for each CPU */
	int count;
	struct copies *copies; /* stacks that are unwound later */
};

static struct cpu *own(const struct session *s)
{
	return s->state[COLLECTOR_cpu];
}

static int start_clock(struct session *s, int cpu, int program, struct err *err)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = 1000000000 / s->hz, .disabled = 1,
					.exclude_idle = 1 /* a tick that interrupts nobody costs nobody anything */ };
	int fd = ring_perf_open(&attr, -1, cpu, -1, 0);

	if (fd == -ENODEV)
		return 0;
	if (fd < 0)
		return err_errno(err, -fd, "cannot start the clock of CPU %d (perf_event_open)", cpu);
	own(s)->clocks[own(s)->count++] = fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return err_errno(err, errno, "cannot attach to the clock of CPU %d", cpu);
	return 0;
}

static int start(struct session *s, struct err *err)
{
	int cpus = sysconf(_SC_NPROCESSORS_CONF), r;
	int program = bpf_program__fd(bpfengine_skeleton(s->engine)->progs.on_cpu_clock);

	collector_add_cpu_event(s);
	bpfengine_skeleton(s->engine)->bss->cpu_period_ns = 1000000000 / s->hz;
	own(s)->copies = copies_new(s);
	own(s)->clocks = mem_alloc(cpus * sizeof(*own(s)->clocks));
	for (int cpu = 0; cpu < cpus; cpu++) {
		r = start_clock(s, cpu, program, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void record(struct session *s, const void *data, size_t size)
{
	const struct shared_record *r = data;
	uint32_t stack;

	if (size < sizeof(*r))
		return;
	if (r->kind == RECORD_COPY) {
		copies_take(own(s)->copies, data, size);
		return;
	}
	stack = bpfengine_stack(s->engine, r->stack);
	if (stack == PROFILE_NONE) /* the record that had the frames was lost */
		profile_count(s->profile, KEY_SAMPLES_LOST, 1);
	else
		collector_cpu_sample(s, r, stack);
}

static void each_clock(struct session *s, unsigned long request, uint64_t *argument)
{
	for (int i = 0; i < own(s)->count; i++)
		ioctl(own(s)->clocks[i], request, argument);
}

static void set_hz(struct session *s, uint64_t hz)
{
	uint64_t period = 1000000000 / hz;

	bpfengine_skeleton(s->engine)->bss->cpu_period_ns = period;
	each_clock(s, PERF_EVENT_IOC_PERIOD, &period);
}

static void step(struct session *s)
{
	copies_step(own(s)->copies, false);
}

static void pause_clocks(struct session *s, bool pause)
{
	each_clock(s, pause ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE, NULL);
}

static void tally(struct session *s, struct profile *to)
{
	struct shared_counts counts;

	if (!bpfengine_sum(bpfengine_skeleton(s->engine)->maps.cpu_counts, 0, &counts, sizeof(counts)))
		return;
	profile_count(to, KEY_SAMPLES_TAKEN, counts.samples);
	profile_count(to, KEY_SAMPLES_LOST, counts.ring_full);
	profile_count(to, KEY_SAMPLES_STACKS_SENT, counts.stacks_sent);
	profile_count(to, KEY_SAMPLES_GUESSED, counts.guessed);
	profile_count(to, KEY_SAMPLES_DERIVED, counts.derived);
	profile_count(to, KEY_SAMPLES_COPIED, counts.copies);
	profile_count(to, KEY_SAMPLES_NO_MEMORY, counts.no_memory);
}

static void stop(struct session *s)
{
	for (int i = 0; i < own(s)->count; i++)
		fd_close(&own(s)->clocks[i]);
	free(own(s)->clocks);
	copies_step(own(s)->copies, true);
	tally(s, s->profile);
}

static void close_copies(struct session *s)
{
	copies_free(own(s)->copies);
}

static const char *const programs[] = { "on_cpu_clock", NULL };
static const char *const maps[] = { "cpu_trails", NULL };

const struct collector collector_cpu = {
	.name = "cpu",
	.describe = "CPU time by stack, sampled by a clock",
	.flags = COLLECTOR_CLOCK,
	.state_size = sizeof(struct cpu),
	.programs = programs,
	.maps = maps,
	.start = start,
	.record = record,
	.set_hz = set_hz,
	.pause = pause_clocks,
	.step = step,
	.tally = tally,
	.stop = stop,
	.close = close_copies,
};
