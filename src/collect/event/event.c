/*
 * event.c - the event collector: events that were asked for by name (-e GROUP:NAME, --events FILE).
 *
 * The programs of event.bpf.c send events one by one up to a rate; what is beyond
 * it they add up by thread and stack, and here that becomes one sample for many. After the
 * capture has reached --max-size, only sums are made, and kept until the end.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/collector.h"
#include "collect/bpfengine.h"
#include "collect/event/eventset.h"
#include "collect/process/processes.h"
#include "collect/perf/ring.h"
#include "profile/keys.h"
#include "profile/profile.h"

#include "gasflame.skel.h"

struct total {
	struct shared_event_key key;
	struct shared_event_sum sum;
};

struct event {
	struct eventset *set; /* what was asked for, NULL = nothing */
	VEC(struct bpf_link *) links;
	uint32_t everybody; /* the profile's thread for what is nobody's, PROFILE_NONE = not needed yet */
	uint32_t lost;      /* a stack that stands for those without one */
	VEC(struct total) late; /* sums since the capture is full */
	struct map late_index;
	bool full, told;
	uint64_t summed;
};

static struct event *own(const struct session *s)
{
	return s->state[COLLECTOR_event];
}

/* --- choosing and starting --- */

static int choose(struct session *s, const char *word, const char *where, struct err *err)
{
	struct event *e = own(s);
	int r;

	if (!strcmp(word, collector_event.name))
		return err_set(err, EINVAL, "%ssay which event: -e GROUP:NAME (gasflame events lists them)", where);
	if (!eventset_is_event(word))
		return COLLECTOR_NOT_MINE;
	if (!e->set)
		e->set = eventset_new();
	r = eventset_add(e->set, word, where, err);
	return r < 0 ? r : e->set->sources.n ? COLLECTOR_CHOSEN : COLLECTOR_LACKING;
}

static void fill_attr(const struct session *s, const struct eventset_source *source,
		      struct perf_event_attr *attr)
{
	bool clock = source->type == PERF_TYPE_SOFTWARE && source->config == PERF_COUNT_SW_CPU_CLOCK;

	*attr = (struct perf_event_attr){ .type = source->type, .config = source->config, .sample_period = 1,
					  .exclude_kernel = source->user_only, .exclude_user = source->kernel_only,
					  .disabled = 1 };
	if (clock) {
		attr->sample_period = 1000000000 / s->hz;
	} else if (source->sampled) {
		attr->freq = 1;
		attr->sample_freq = s->hz;
	}
}

/* Opens a perf event with its program. 1: this CPU is not there. */
static int attach(struct session *s, uint32_t at, int cpu, struct err *err)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);
	const struct eventset_source *source = &own(s)->set->sources.v[at];
	struct bpf_program *program = source->type == PERF_TYPE_TRACEPOINT ? skeleton->progs.on_tracepoint :
									    skeleton->progs.on_perf_event;
	LIBBPF_OPTS(bpf_perf_event_opts, options, .bpf_cookie = at);
	struct perf_event_attr attr;
	struct bpf_link *link;
	int fd;

	fill_attr(s, source, &attr);
	fd = ring_perf_open(&attr, -1, cpu, -1, 0);
	if (fd == -ENODEV)
		return 1;
	if (fd < 0)
		return err_errno(err, -fd, "cannot open the event %s on CPU %d (perf_event_open)", source->name, cpu);
	link = bpf_program__attach_perf_event_opts(program, fd, &options);
	if (!link) {
		int r = err_errno(err, errno, "cannot attach to the event %s", source->name);

		fd_close(&fd);
		return r;
	}
	vec_push(&own(s)->links, link);
	/* The program runs all the same, and the kernel need not keep a count that nobody reads. */
	if (source->type == PERF_TYPE_TRACEPOINT)
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	return 0;
}

/* A tracepoint's program runs on every CPU, wherever its perf event is; others need one for each. */
static int attach_source(struct session *s, uint32_t at, struct err *err)
{
	int cpus = sysconf(_SC_NPROCESSORS_CONF), r = 0;
	bool once = own(s)->set->sources.v[at].type == PERF_TYPE_TRACEPOINT;

	for (int cpu = 0; cpu < cpus; cpu++) {
		r = attach(s, at, cpu, err);
		if (r < 0 || (r == 0 && once))
			return r;
	}
	return 0;
}

/* Its event of the profile. Another collector may have one of that name: of the two this is "event:NAME". */
static uint32_t add_event(struct profile *p, const struct eventset_use *use)
{
	_cleanup_free_ char *other = mem_printf("event:%s", use->name);
	bool taken = false;

	for (size_t i = 0; i < p->events.n; i++)
		taken |= !strcmp(profile_str(p, p->events.v[i].name), use->name);
	return profile_add_event(p, taken ? other : use->name, use->unit, use->describe, 0);
}

static int start(struct session *s, struct err *err)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);
	struct event *e = own(s);
	struct eventset *set = e->set;
	struct profile *p = s->profile;
	int list = bpf_map__fd(skeleton->maps.event_list), r = 0;

	e->everybody = PROFILE_NONE;
	e->lost = profile_stack(p, 0, profile_truncation_frame(p, "stack lost"));
	for (size_t i = 0; i < set->uses.n; i++)
		set->uses.v[i].event = add_event(p, &set->uses.v[i]);
	for (uint32_t i = 0; i < set->sources.n; i++)
		if (bpf_map_update_elem(list, &i, &set->sources.v[i].shared, BPF_ANY))
			return err_errno(err, errno, "cannot set up the events");
	skeleton->bss->event_limit = s->options->event_rate * (SHARED_EVENT_SLOT_NS / 1000000000);
	if (s->options->program) {
		struct bpf_link *link = bpf_program__attach(skeleton->progs.on_event_exec);

		if (!link)
			return err_errno(err, errno, "cannot attach to the kernel's sched_process_exec tracepoint");
		vec_push(&e->links, link);
		skeleton->bss->event_held = s->options->pids[0];
	}
	/* All begin at one moment, after the last was attached. */
	skeleton->bss->event_paused = 1;
	for (uint32_t i = 0; r >= 0 && i < set->sources.n; i++)
		r = attach_source(s, i, err);
	__atomic_store_n(&skeleton->bss->event_paused, 0, __ATOMIC_RELEASE);
	return r;
}

/* --- records --- */

static uint32_t everybody(struct session *s)
{
	struct profile *p = s->profile;
	uint32_t process;

	if (own(s)->everybody == PROFILE_NONE) {
		process = profile_add_process(p, &(struct profile_process){ .name = profile_string(p, "[machine]") });
		own(s)->everybody = profile_add_thread(p,
			&(struct profile_thread){ .process = process, .name = profile_string(p, "[whole machine]") });
	}
	return own(s)->everybody;
}

static void add_sample(struct session *s, const struct shared_event_key *key,
		       const struct shared_event_sum *sum)
{
	const struct eventset_use *use;
	const struct eventset_source *source;
	struct profile_sample sample = { .value = sum->value };
	char name[sizeof(sum->name)];

	if (key->event >= own(s)->set->uses.n || !sum->count)
		return;
	use = &own(s)->set->uses.v[key->event];
	source = &own(s)->set->sources.v[use->source];
	memcpy(name, sum->name, sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	sample.event = use->event;
	sample.time_ns = collector_time_ns(s, sum->first_ns);
	sample.count = MIN(sum->count, UINT32_MAX);
	if (source->shared.everywhere && !key->pid)
		sample.thread = everybody(s);
	else
		sample.thread = processes_thread(s->processes, key->pid, key->tid, name, sum->first_ns);
	sample.stack = bpfengine_stack(s->engine, key->stack);
	if (sample.stack == PROFILE_NONE)
		sample.stack = own(s)->lost;
	if (source->shared.note_size)
		sample.stack = profile_stack(s->profile, sample.stack,
					     profile_named_frame(s->profile, PROFILE_NONE, FRAME_NOTE,
								 eventset_note(key->note)));
	profile_add_sample(s->profile, &sample);
}

static void record(struct session *s, const void *data, size_t size)
{
	const struct shared_event_record *r = data;
	struct shared_event_key key;
	struct shared_event_sum sum;

	if (size < sizeof(*r))
		return;
	key = (struct shared_event_key){ .stack = r->stack, .pid = r->pid, .tid = r->tid, .event = r->event,
					 .note = r->note };
	sum = (struct shared_event_sum){ .count = 1, .value = r->value, .first_ns = r->time_ns };
	memcpy(sum.name, r->name, sizeof(sum.name));
	add_sample(s, &key, &sum);
}

/* --- sums --- */

static void keep_late(struct event *e, const struct shared_event_key *key, const struct shared_event_sum *sum)
{
	uint64_t *at = map_put(&e->late_index, map_hash_bytes(key, sizeof(*key)), e->late.n);

	if (*at == e->late.n) {
		vec_push(&e->late, (struct total){ *key, *sum });
		return;
	}
	e->late.v[*at].sum.count += sum->count;
	e->late.v[*at].sum.value += sum->value;
}

static void add_entry(struct session *s, const void *key, const void *value)
{
	const struct shared_event_sum *sum = value;

	own(s)->summed += sum->count;
	if (own(s)->full)
		keep_late(own(s), key, sum);
	else
		add_sample(s, key, sum);
}

static void read_sums(struct session *s, int fd)
{
	bpfengine_empty(s, fd, sizeof(struct shared_event_key), sizeof(struct shared_event_sum), add_entry);
}

static int side_fd(struct session *s, uint32_t side)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);

	return bpf_map__fd(side ? skeleton->maps.event_sums_1 : skeleton->maps.event_sums_0);
}

static void tick(struct session *s, uint64_t now)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);
	uint32_t side = skeleton->bss->event_side;

	if (s->options->full && !own(s)->full) {
		own(s)->full = true;
		skeleton->bss->event_limit = 0;
		log_warn("the capture has reached --max-size: from here on events are only counted by stack, "
			 "without their times");
	}
	/* It has been at rest for a second: nobody adds to it any more. */
	read_sums(s, side_fd(s, !side));
	skeleton->bss->event_side = !side;
	if (own(s)->summed && !own(s)->told && !own(s)->full) {
		own(s)->told = true;
		log_info("More than %u events a second: what is beyond is counted by stack in the kernel, second by "
			 "second.", (unsigned)s->options->event_rate);
	}
}

/* --- the end --- */

static void note(struct profile *to, const char *family, const char *event, uint64_t value)
{
	if (value)
		profile_count_of(to, family, event, value);
}

static void tally(struct session *s, struct profile *to)
{
	const struct bpf_map *map = bpfengine_skeleton(s->engine)->maps.event_totals;

	for (uint32_t i = 0; i < own(s)->set->uses.n; i++) {
		const char *name = own(s)->set->uses.v[i].name;
		struct shared_event_totals t;

		if (!bpfengine_sum(map, i, &t, sizeof(t)))
			continue;
		/* Recorded, though it never happened: that is a fact too. */
		profile_count(to, KEY_EVENT_HITS, t.hits);
		note(to, KEY_EVENT_ELSEWHERE_OF, name, t.elsewhere);
		note(to, KEY_EVENT_NEGATIVE_OF, name, t.negative);
		note(to, KEY_EVENT_SUMMED_OF, name, t.summed);
		note(to, KEY_EVENT_LOST_OF, name, t.lost);
		note(to, KEY_EVENT_REMEMBERED_OF, name, t.remembered);
		profile_count(to, KEY_SAMPLES_LOST, t.lost);
	}
}

static void stop(struct session *s)
{
	struct event *e = own(s);

	bpfengine_drain(s->engine);
	read_sums(s, side_fd(s, 0));
	read_sums(s, side_fd(s, 1));
	for (size_t i = 0; i < e->late.n; i++)
		add_sample(s, &e->late.v[i].key, &e->late.v[i].sum);
	tally(s, s->profile);
	e->late.n = 0;
}

/* The kernel takes 20 ms and more to let go of a tracepoint. The programs are paused, and what was recorded
 * is on disk by now: nobody need wait for that. */
static void close_events(struct session *s)
{
	struct event *e = own(s);

	for (size_t i = 0; i < e->links.n; i++) {
		if (i % 16 == 0)
			log_progress("letting go of events: %zu of %zu", i, e->links.n);
		bpf_link__destroy(e->links.v[i]);
	}
	log_progress_end();
	vec_done(&e->links);
	vec_done(&e->late);
	map_done(&e->late_index);
	eventset_free(e->set);
}

/* Programs run for a disabled tracepoint as well: they look for themselves. */
static void pause_events(struct session *s, bool pause)
{
	bpfengine_skeleton(s->engine)->bss->event_paused = pause;
}

static const char *const programs[] = { "on_tracepoint", "on_perf_event", "on_event_exec", NULL };
static const char *const maps[] = { "event_sums_0", "event_sums_1", "event_totals", "event_list", NULL };

const struct collector collector_event = {
	.name = "event",
	.describe = "any tracepoint, software or hardware event: -e GROUP:NAME, --events FILE",
	.state_size = sizeof(struct event),
	.programs = programs,
	.maps = maps,
	.choose = choose,
	.start = start,
	.record = record,
	.pause = pause_events,
	.tick = tick,
	.tally = tally,
	.stop = stop,
	.close = close_events,
};
