/*
 * hw.c - the hw collector: what the processor and the kernel count, by stack, each counter sampled by itself.
 *
 * With more counters than the processor has, the kernel lets them take turns: each sample is
 * scaled by how long its counter was left out since the one before (counter_weight()). What this
 * machine does not have makes no event of the profile, rather than one that is 0; the kernel's own
 * (CPU time, faults, switches, migrations) are there on every machine.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/counter.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/collector.h"
#include "collect/bpfengine.h"
#include "collect/process/processes.h"
#include "collect/perf/ring.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/trace/counters.h"

#include "gasflame.skel.h"

/* The clock has the rate that was asked for; of the others, which are many, each has a part of it. */
enum { RATE_PART = 4, BATCH = 1024 };

_Static_assert((int)SHARED_HW_ONE_BY_ONE == (int)COUNTER_MINOR_FAULTS &&
		       (int)SHARED_HW_PROCESSOR == (int)COUNTER_CYCLES, "the same order");

struct opened {
	int fd; /* the link's */
	uint32_t counter;
	struct bpf_link *link;
};

struct hw {
	VEC(struct opened) opened;
	uint32_t events[COUNTERS]; /* of the profile, PROFILE_NONE = this machine has no such counter */
	int errors[COUNTERS];      /* why */
	int cpus;
	struct counter_raw *last;  /* by CPU and counter: with the sample before */
	uint32_t lost;             /* a stack that stands for those without one */
	bool only_clock;           /* there is no cpu collector whose samples stand for the target's CPU time */
};

static struct hw *own(const struct session *s)
{
	return s->state[COLLECTOR_hw];
}

/* --- starting --- */

/* As perf_event_open() takes it: a period, or of the processor's counters a frequency. */
static uint64_t rate_of(uint32_t counter, uint64_t hz)
{
	if (counter == COUNTER_TASK_CLOCK)
		return 1000000000 / hz;
	return counter_is_hardware(counter) ? MAX(hz / RATE_PART, 1) : 1;
}

static uint64_t gap_ns(uint64_t hz)
{
	return 1000000000 / MAX(hz / RATE_PART, 1);
}

/* Opens one counter of one CPU. 0, also where the CPU is not there; negative where the counter is not. */
static int open_counter(struct session *s, uint32_t counter, int cpu)
{
	struct bpf_program *program = bpfengine_skeleton(s->engine)->progs.on_hw;
	LIBBPF_OPTS(bpf_perf_event_opts, options, .bpf_cookie = counter);
	struct perf_event_attr attr = { .disabled = 1,
					.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
						       PERF_FORMAT_TOTAL_TIME_RUNNING };
	struct opened o = { .counter = counter };
	uint32_t type;
	uint64_t config;
	int fd, e;

	counter_event(counter, &type, &config);
	attr.type = type;
	attr.config = config;
	/* The clock of the CPU, which ticks whoever is there: the task's own is for tasks. */
	if (counter == COUNTER_TASK_CLOCK)
		attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.freq = counter_is_hardware(counter);
	attr.sample_period = rate_of(counter, s->hz); /* one field: of the others it is the frequency */
	fd = ring_perf_open(&attr, -1, cpu, -1, 0);
	if (fd < 0)
		return fd == -ENODEV ? 0 : fd;
	o.fd = fd;
	o.link = bpf_program__attach_perf_event_opts(program, fd, &options);
	if (!o.link) {
		e = errno;
		fd_close(&fd);
		return -e;
	}
	vec_push(&own(s)->opened, o);
	return 0;
}

static int add_counter(struct session *s, uint32_t counter)
{
	_cleanup_free_ char *name = mem_printf("hw:%s", counter_names[counter]);
	struct hw *h = own(s);
	size_t before = h->opened.n;
	bool clock = counter == COUNTER_TASK_CLOCK;
	int r = 0;

	h->events[counter] = PROFILE_NONE;
	for (int cpu = 0; cpu < h->cpus && !r; cpu++)
		r = open_counter(s, counter, cpu);
	if (r || h->opened.n == before)
		return r ? r : -ENODEV;
	h->events[counter] = profile_add_event(s->profile, name, clock ? "ns" : "count",
					       clock				 ? "CPU time, sampled" :
					       counter_is_hardware(counter) ? "by the processor's counters, sampled" :
									      "counted",
					       clock ? rate_of(counter, s->hz) : 0);
	return 0;
}

/* Once, whatever is missing. */
static void tell_missing(const struct hw *h)
{
	_cleanup_(buf_done) struct buf names = { 0 };
	size_t missing = 0;

	for (uint32_t c = COUNTER_CYCLES; c < COUNTERS; c++)
		if (h->events[c] == PROFILE_NONE) {
			buf_printf(&names, "%s%s", names.n ? ", " : "", counter_names[c]);
			missing++;
		}
	if (missing == COUNTERS - COUNTER_CYCLES)
		log_warn("this machine has no counters of the processor (most virtual machines do not): cycles, "
			 "instructions and misses are not recorded; CPU time, faults, switches and migrations are");
	else if (missing)
		log_warn("this processor does not count %s: the rest is recorded", names.data);
}

static int start(struct session *s, struct err *err)
{
	struct hw *h = own(s);

	h->only_clock = !collector_any(s, COLLECTOR_CLOCK);
	h->cpus = sysconf(_SC_NPROCESSORS_CONF);
	h->last = mem_alloc((size_t)h->cpus * COUNTERS * sizeof(*h->last));
	h->lost = profile_stack(s->profile, 0, profile_truncation_frame(s->profile, "stack lost"));
	bpfengine_skeleton(s->engine)->bss->hw_gap_ns = gap_ns(s->hz);
	for (uint32_t c = 0; c < COUNTERS; c++) {
		h->errors[c] = add_counter(s, c);
		/* The kernel's own must be there. */
		if (h->errors[c] && !counter_is_hardware(c))
			return err_errno(err, -h->errors[c], "cannot count %s (perf_event_open)", counter_names[c]);
	}
	tell_missing(h);
	for (size_t i = 0; i < h->opened.n; i++)
		ioctl(h->opened.v[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	return 0;
}

/* --- records --- */

static void add_sample(struct session *s, const struct shared_hw *r, uint64_t value)
{
	struct profile_sample sample = { .value = value };
	char name[sizeof(r->name)];

	memcpy(name, r->name, sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	sample.event = own(s)->events[r->counter];
	sample.time_ns = collector_time_ns(s, r->time_ns);
	sample.thread = processes_thread(s->processes, r->pid, r->tid, name, r->time_ns);
	sample.stack = bpfengine_stack(s->engine, r->stack);
	if (sample.stack == PROFILE_NONE)
		sample.stack = own(s)->lost;
	profile_add_sample(s->profile, &sample);
}

static void record(struct session *s, const void *data, size_t size)
{
	const struct shared_hw *r = data;
	struct counter_raw now, *last;
	uint64_t value;

	if (size < sizeof(*r) || r->counter >= COUNTERS || r->cpu >= (uint32_t)own(s)->cpus ||
	    own(s)->events[r->counter] == PROFILE_NONE)
		return;
	last = &own(s)->last[r->cpu * COUNTERS + r->counter];
	now = (struct counter_raw){ .enabled_ns = r->enabled_ns, .running_ns = r->running_ns };
	value = counter_weight(r->period, last, &now);
	*last = now;
	if (r->counter == COUNTER_TASK_CLOCK && own(s)->only_clock)
		s->sampled_ns += value;
	add_sample(s, r, value);
}

/* --- the end --- */

/* Takes the counts of threads at places since their last stacks there: with that stack. idle_ns: of places
 * not used for so long, which are forgotten then; 0: of all. */
static void take_pending(struct session *s, uint64_t now, uint64_t idle_ns)
{
	int fd = bpf_map__fd(bpfengine_skeleton(s->engine)->maps.hw_pending), e;
	_cleanup_free_ struct shared_hw_key *keys = mem_resize(NULL, BATCH, sizeof(*keys));
	_cleanup_free_ struct shared_hw_pending *values = mem_resize(NULL, BATCH, sizeof(*values));
	uint32_t at = 0, count;
	bool first = true;

	do {
		count = BATCH;
		e = bpf_map_lookup_batch(fd, first ? NULL : &at, &at, keys, values, &count, NULL);
		if (e && errno != ENOENT)
			break;
		first = false;
		for (uint32_t i = 0; i < count; i++) {
			const struct shared_hw r = { .tid = keys[i].tid, .pid = values[i].pid, .stack = values[i].stack,
						     .counter = keys[i].counter, .time_ns = values[i].last_ns };

			if (r.counter >= COUNTERS || (idle_ns && values[i].last_ns + idle_ns > now))
				continue;
			bpf_map_delete_elem(fd, &keys[i]);
			if (values[i].count)
				add_sample(s, &r, values[i].count);
		}
	} while (!e);
}

static void tick(struct session *s, uint64_t now)
{
	take_pending(s, now, 1000000000);
}

/* How much of the time each counter had its turn, in millionths, over all CPUs. */
static void note_turns(struct session *s)
{
	struct hw *h = own(s);
	bool turns = false;

	for (uint32_t c = COUNTER_CYCLES; c < COUNTERS; c++) {
		struct counter_raw sum = { 0 }, one;
		struct counter_value v;

		if (h->events[c] == PROFILE_NONE)
			continue;
		for (size_t i = 0; i < h->opened.n; i++)
			if (h->opened.v[i].counter == c &&
			    fd_read_all(h->opened.v[i].fd, &one, sizeof(one)) == sizeof(one)) {
				sum.enabled_ns += one.enabled_ns;
				sum.running_ns += one.running_ns;
			}
		v = counter_decode(&sum);
		profile_count_set_of(s->profile, KEY_HW_SHARE_OF, counter_names[c], v.known ? v.share * 1e6 + 0.5 : 0);
		turns |= v.known && v.share < 0.995;
		if (!v.known)
			log_warn("%s never had its turn on the processor's counters, and is not known",
				 counter_names[c]);
	}
	if (turns)
		log_info("There are more events than counters: they took turns, and what was counted is scaled to "
			 "the whole time (gasflame stat FILE says how much).");
}

static void stop(struct session *s)
{
	struct shared_hw_counts counts;
	struct hw *h = own(s);

	note_turns(s);
	take_pending(s, 0, 0);
	for (size_t i = 0; i < h->opened.n; i++)
		bpf_link__destroy(h->opened.v[i].link);
	if (bpfengine_sum(bpfengine_skeleton(s->engine)->maps.hw_counts, 0, &counts, sizeof(counts))) {
		profile_count(s->profile, KEY_SAMPLES_TAKEN, counts.samples);
		profile_count(s->profile, KEY_SAMPLES_LOST, counts.lost);
	}
	vec_done(&h->opened);
	free(h->last);
}

static void set_hz(struct session *s, uint64_t hz)
{
	bpfengine_skeleton(s->engine)->bss->hw_gap_ns = gap_ns(hz);
	for (size_t i = 0; i < own(s)->opened.n; i++) {
		uint64_t rate = rate_of(own(s)->opened.v[i].counter, hz);

		ioctl(own(s)->opened.v[i].fd, PERF_EVENT_IOC_PERIOD, &rate);
	}
}

static void pause_counters(struct session *s, bool pause)
{
	for (size_t i = 0; i < own(s)->opened.n; i++)
		ioctl(own(s)->opened.v[i].fd, pause ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE, 0);
}

static const char *const programs[] = { "on_hw", NULL };
static const char *const maps[] = { "hw_scratch", "hw_counts", "hw_pending", NULL };

const struct collector collector_hw = {
	.name = "hw",
	.describe = "cycles, instructions, misses, faults and switches by stack (gasflame stat FILE)",
	.state_size = sizeof(struct hw),
	.programs = programs,
	.maps = maps,
	.start = start,
	.record = record,
	.set_hz = set_hz,
	.pause = pause_counters,
	.tick = tick,
	.stop = stop,
};
