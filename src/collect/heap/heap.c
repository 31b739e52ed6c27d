/*
 * heap.c - the heap collector: what the targets allocate, what of it is alive, and for how long.
 *
 * The hooks that implant.c puts into each target sample allocations by their bytes and
 * tell of them at uprobes (heap.bpf.c). Here they become samples of five events, all in
 * bytes and with the stack of the allocation: "alloc" and "freed" as they happen,
 * "temporary" of those that were freed before their thread allocated anything else, and
 * at the end "heap", what is alive, and "peak", what was alive when it was most.
 *
 * Where each allocation is to be seen, the hooks tell of them in memory that we share (exactheap.c), and samples are sums of
 * 10 ms (heapsums.c).
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "collect/heap/blob/blob.h"
#include "collect/collector.h"
#include "collect/bpfengine.h"
#include "collect/heap/exactheap.h"
#include "collect/heap/heappace.h"
#include "collect/heap/heapsums.h"
#include "collect/heap/heaptarget.h"
#include "collect/heap/implant.h"
#include "collect/heap/jestats.h"
#include "collect/heap/liveheap.h"
#include "collect/probestack.h"
#include "collect/process/processes.h"
#include "collect/heap/residency.h"
#include "profile/keys.h"
#include "profile/profile.h"

#include "gasflame.skel.h"

enum { LEAST_STEP_MS = 1, MOST_STEP_MS = 8, LAST_EVENTS_MS = 50 };

#define MOST_INTERVAL (1ULL << 30)
#define STATS_NS      300000000ULL /* how long a target may take to say what its jemalloc holds */

struct heap {
	bool refused; /* this kernel is not known to bear our probes, and the heap is only wanted where it can be had */
	VEC(struct heaptarget) targets;
	struct liveheap live;
	uint32_t alloc_event, freed_event, temporary_event, heap_event, peak_event;
	uint32_t live_series, rate_series;
	uint64_t freed_unseen;
	uint64_t gone_count, gone_bytes; /* allocated by programs before an exec */
	struct residency residency;
	bool exact;          /* each allocation and each free is seen */
	struct heapsums sums; /* then */
	uint64_t lost;
	struct heappace pace;
	const char *raised;  /* why the interval is not the one that was asked for */
	uint32_t pid;        /* whose events are read */
	uint64_t execs;      /* of the program that we started: those that it was held at */
};

static struct heap *own(const struct session *s)
{
	return s->state[COLLECTOR_heap];
}

static int check_programs(struct session *s, struct err *err)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);
	int r = probestack_check(skeleton->progs.on_heap_alloc, err);

	r = r ?: probestack_check(skeleton->progs.on_heap_exact, err);
	return r ?: probestack_check(skeleton->progs.on_heap_free, err);
}

/* Each allocation whose stack the hooks do not know yet: more than any other collector sends. */
static void prepare(struct session *s, struct gasflame_bpf *skeleton)
{
	if (s->options->heap_interval <= 1)
		bpf_map__set_max_entries(skeleton->maps.ring, 32 << 20);
}

static int start(struct session *s, struct err *err)
{
	struct profile *p = s->profile;
	struct heap *h = own(s);
	int r = 0;

	h->exact = s->options->heap_interval <= 1;
	h->pace.steady = s->options->heap_steady;
	liveheap_init(&h->live, s->options->heap_interval);
	h->heap_event = profile_add_event(p, "heap", "bytes", "allocated during the recording and alive at its end", 0);
	h->alloc_event = profile_add_event(p, "alloc", "bytes", "allocated", 0);
	h->freed_event = profile_add_event(p, "freed", "bytes", "freed, by where it was allocated", 0);
	h->temporary_event = profile_add_event(p, "temporary", "bytes",
					       "freed before the thread's next allocation, by where it was allocated", 0);
	h->peak_event = profile_add_event(p, "peak", "bytes", "alive when it was most", 0);
	h->live_series = profile_series(p, KEY_HEAP_LIVE);
	h->rate_series = profile_series(p, KEY_HEAP_ALLOCATED);
	profile_count_set(p, KEY_HEAP_FROM_START, s->options->program != NULL);
	h->sums.events[HEAPSUMS_ALLOC] = h->alloc_event;
	h->sums.events[HEAPSUMS_FREED] = h->freed_event;
	h->sums.events[HEAPSUMS_TEMPORARY] = h->temporary_event;
	if (h->exact)
		s->step_ms = LEAST_STEP_MS;
	/* Before anything is put into the target. */
	r = check_programs(s, err);
	if (r < 0 && s->options->heap_optional) {
		h->refused = true;
		return 0;
	}
	if (r < 0)
		return r;
	if (s->options->program)
		return implant_expect(s->options->pids[0], err);
	for (size_t i = 0; i < s->options->pid_count && !r; i++) {
		struct heaptarget t = { .pid = s->options->pids[i] };

		r = implant_open(t.pid, s->worker, &t.implant, err);
		r = r ?: heaptarget_enter(s, &t, err);
		if (!r)
			vec_push(&h->targets, t);
	}
	return r;
}

static int started(struct session *s, struct err *err)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);
	struct heaptarget t = { .pid = s->options->pids[0] };
	struct err why = { 0 };
	int r;

	if (own(s)->refused) {
		check_programs(s, &why);
		log_warn("the heap is not recorded: %s", why.text);
		return 0;
	}
	r = implant_begin(t.pid, s->worker, &t.implant, err);
	r = r ?: heaptarget_enter(s, &t, err);
	/* It was let go on failure, too. One that is dead by now is no reason to say so: others see that. */
	if (r < 0 && s->options->heap_optional) {
		if (r != -ESRCH && err)
			log_warn("the heap is not recorded: %s", err->text);
		return 0;
	}
	if (r < 0)
		return r;
	/* Wrappers execute what is really to be run. */
	skeleton->links.on_heap_exec = bpf_program__attach(skeleton->progs.on_heap_exec);
	if (skeleton->links.on_heap_exec) {
		__atomic_store_n(&skeleton->bss->heap_exec_pid, t.pid, __ATOMIC_SEQ_CST);
		s->step_ms = LEAST_STEP_MS;
	}
	implant_let_go(t.implant);
	vec_push(&own(s)->targets, t);
	return 0;
}

static void add_sample(struct session *s, uint32_t event, uint64_t time_ns, const struct liveheap_object *o)
{
	profile_add_sample(s->profile, &(struct profile_sample){
		.event = event, .time_ns = time_ns, .thread = o->thread, .stack = o->stack, .value = o->bytes,
		.count = o->count });
}

static void freed(struct session *s, const struct liveheap_object *o, uint64_t time_ns, bool at_once)
{
	struct profile_histogram *h = profile_histogram(s->profile, KEY_HEAP_LIFETIME);
	uint64_t ns = time_ns > o->time_ns ? time_ns - o->time_ns : 0;

	add_sample(s, own(s)->freed_event, time_ns, o);
	if (at_once)
		add_sample(s, own(s)->temporary_event, time_ns, o);
	h->counts[ns ? 63 - __builtin_clzll(ns) : 0] += o->count;
}

/* --- where each is seen --- */

static void freed_exactly(struct session *s, const struct liveheap_object *o, uint64_t time_ns, bool at_once)
{
	struct heap *h = own(s);

	heapsums_free(&h->sums, o->part, o->bytes, h->live.peaks, time_ns > o->time_ns ? time_ns - o->time_ns : 0, at_once);
}

static void see_free(struct session *s, const struct exactheap_event *e, uint64_t time_ns)
{
	struct heap *h = own(s);
	size_t slot;
	const struct liveheap_object *o = liveheap_find(&h->live, h->pid, e->address, &slot);

	if (!o)
		return;
	freed_exactly(s, o, time_ns, e->at_once);
	liveheap_remove(&h->live, slot);
}

/* Each event: at tens of millions in a second, what is done here decides whether the target waits for us. */
static bool see(void *context, const struct exactheap_event *e)
{
	struct session *s = context;
	struct heap *h = own(s);
	struct liveheap_object object, old;
	uint64_t time_ns = collector_time_ns(s, e->time_ns), peaks = h->live.peaks;
	uint32_t part;

	heapsums_flush(&h->sums, &h->live, s->profile, time_ns);
	if (e->freed) {
		see_free(s, e, time_ns);
		return false;
	}
	object.size = e->size;
	object.time_ns = time_ns;
	object.thread = e->thread;
	object.stack = e->stack;
	object.interval = 0;
	if (e->freed_next && liveheap_pass(&h->live, h->pid, e->address, &object, &part)) {
		heapsums_pair(&h->sums, part, e->size, peaks, e->step_ns);
		return true;
	}
	if (liveheap_alloc(&h->live, h->pid, e->address, &object, &old)) {
		freed_exactly(s, &old, time_ns, false);
		h->freed_unseen++;
	}
	heapsums_alloc(&h->sums, object.part, object.bytes, peaks);
	return false;
}

/* How many events there were. */
static uint64_t read_events(struct session *s, struct heaptarget *t, bool all)
{
	if (!t->events)
		return 0;
	own(s)->pid = t->pid;
	return exactheap_drain(t->events, all, see, s);
}

/* The last ones: threads may still be writing theirs. */
static void read_last_events(struct session *s, struct heaptarget *t)
{
	if (!t->events)
		return;
	bpfengine_drain(s->engine);
	read_events(s, t, false);
	for (int i = 0; i < LAST_EVENTS_MS && exactheap_pending(t->events) && !implant_gone(t->implant); i++) {
		usleep(1000);
		read_events(s, t, false);
	}
	read_events(s, t, true);
	own(s)->lost += exactheap_lost(t->events, implant_gone(t->implant));
	heapsums_flush_now(&own(s)->sums, &own(s)->live, s->profile, collector_time_ns(s, clock_mono_ns()));
}

/* The process executed another program: what it had is gone. */
static void end_program(struct session *s, struct heaptarget *t)
{
	struct liveheap *live = &own(s)->live;
	uint64_t count, bytes, now = collector_time_ns(s, clock_mono_ns());

	read_last_events(s, t);
	implant_totals(t->implant, &count, &bytes);
	own(s)->gone_count += count;
	own(s)->gone_bytes += bytes;
	heaptarget_leave(t);
	for (size_t i = live->objects.n; i-- > 0;) {
		struct liveheap_object o = live->objects.v[i];

		if (o.pid == (uint32_t)t->pid && liveheap_free(live, o.pid, o.address, &o))
			freed(s, &o, now, false);
	}
}

static void enter_again(struct session *s, struct heaptarget *t)
{
	struct err err = { 0 };

	end_program(s, t);
	if (implant_open(t->pid, s->worker, &t->implant, &err) < 0 || heaptarget_enter(s, t, &err) < 0)
		log_warn("process %d executed another program, whose heap is not recorded: %s", t->pid, err.text);
	else
		log_warn("process %d executed another program: its heap is recorded from now on, not from its beginning",
			 t->pid);
	profile_count(s->profile, KEY_HEAP_EXECS, 1);
}

/* The program that we started executes another one, which is held before its beginning. */
static void follow_exec(struct session *s)
{
	uint64_t execs = __atomic_load_n(&bpfengine_skeleton(s->engine)->bss->heap_execs, __ATOMIC_SEQ_CST);
	struct heaptarget *t = own(s)->targets.v;
	struct err err = { 0 };

	if (execs == own(s)->execs)
		return;
	own(s)->execs = execs;
	if (t->implant)
		end_program(s, t);
	bpfengine_drain(s->engine); /* what it has mapped before is not so any more */
	if (!implant_begin_again(t->pid, s->worker, &t->implant, &err) && !heaptarget_enter(s, t, &err)) {
		implant_let_go(t->implant);
		return;
	}
	log_warn("process %d executed another program, whose heap is not recorded: %s", t->pid, err.text);
	profile_count(s->profile, KEY_HEAP_EXECS, 1);
}

/* --- how often --- */

/* What the target says, if it can be so. */
static uint64_t interval_of(const struct session *s, uint64_t said)
{
	return said >= s->options->heap_interval && said <= own(s)->live.interval ? said : own(s)->live.interval;
}

static uint64_t cpu_time_of(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t) < 0)
		return 0;
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static struct heappace_seen count_samples(struct session *s)
{
	struct shared_heap_counts counts = { 0 };
	struct heappace_seen seen = { .live = own(s)->live.objects.n };

	bpfengine_sum(bpfengine_skeleton(s->engine)->maps.heap_counts, 0, &counts, sizeof(counts));
	seen.samples = counts.samples;
	seen.lost = counts.ring_full + counts.busy;
	for (size_t i = 0; i < own(s)->targets.n; i++) {
		seen.cpu_ns += cpu_time_of(own(s)->targets.v[i].pid);
		if (own(s)->targets.v[i].implant)
			seen.no_room += implant_shared(own(s)->targets.v[i].implant)->full;
	}
	return seen;
}

static void set_interval(struct session *s, uint64_t interval)
{
	struct err why = { 0 };

	for (size_t i = 0; i < own(s)->targets.n; i++) {
		struct implant *implant = own(s)->targets.v[i].implant;

		if (implant && implant_set_interval(implant, interval, &why) < 0)
			log_debug("process %d keeps its interval: %s", own(s)->targets.v[i].pid, why.text);
	}
	own(s)->live.interval = interval;
}

/* What a sample stands for follows from the interval that it was drawn by, so figures stay unbiased when that rises; their error is
 * stated by the largest one. */
static void keep_pace(struct session *s, uint64_t now)
{
	struct heap *h = own(s);
	struct heappace_seen seen;
	const char *why;

	if (h->exact || h->live.interval >= MOST_INTERVAL || !heappace_due(&h->pace, now))
		return;
	seen = count_samples(s);
	why = heappace_look(&h->pace, now, &seen);
	if (!why)
		return;
	h->raised = why;
	set_interval(s, 2 * h->live.interval);
}

/* --- reading --- */

/* As often as needed: the process waits for us when too many are on their way. */
static void step(struct session *s)
{
	uint64_t n = 0;

	follow_exec(s);
	keep_pace(s, clock_mono_ns());
	for (size_t i = 0; i < own(s)->targets.n; i++) {
		n += read_events(s, &own(s)->targets.v[i], false);
		heaptarget_look(s, &own(s)->targets.v[i]);
	}
	if (!s->step_ms)
		return;
	heapsums_flush(&own(s)->sums, &own(s)->live, s->profile, collector_time_ns(s, clock_mono_ns()));
	s->step_ms = n ? LEAST_STEP_MS : MIN(2 * s->step_ms, MOST_STEP_MS);
}

static void record_stack(struct heap *h, const struct shared_heap_stack *r)
{
	/* A child that shares the memory of its parent, as after vfork, has another pid. */
	for (size_t i = 0; i < h->targets.n; i++)
		if (((uint32_t)h->targets.v[i].pid == r->pid || h->targets.n == 1) && h->targets.v[i].events)
			exactheap_record(h->targets.v[i].events, r);
}

/* --- samples --- */

static void record(struct session *s, const void *data, size_t size)
{
	const struct shared_heap *r = data;
	struct liveheap_object object, old;
	uint64_t time_ns;

	if (r->kind == RECORD_HEAP_STACK && size >= sizeof(struct shared_heap_stack))
		record_stack(own(s), data);
	if (r->kind != RECORD_HEAP || size < sizeof(*r))
		return;
	time_ns = collector_time_ns(s, r->time_ns);
	if (r->what != HEAP_ALLOCATED) {
		if (liveheap_free(&own(s)->live, r->pid, r->address, &object))
			freed(s, &object, time_ns, r->what == HEAP_FREED_AT_ONCE);
		return;
	}
	object = (struct liveheap_object){ .size = r->bytes, .time_ns = time_ns,
					   .thread = processes_thread(s->processes, r->pid, r->tid, "", r->time_ns),
					   .stack = bpfengine_stack(s->engine, r->stack),
					   .interval = interval_of(s, r->interval) };
	if (object.stack == PROFILE_NONE) {
		profile_count(s->profile, KEY_SAMPLES_LOST, 1);
		return;
	}
	if (liveheap_alloc(&own(s)->live, r->pid, r->address, &object, &old)) {
		freed(s, &old, time_ns, false);
		own(s)->freed_unseen++;
	}
	add_sample(s, own(s)->alloc_event, time_ns, &object);
}

static void note_totals(struct session *s, uint64_t now)
{
	uint64_t count, bytes, all = own(s)->gone_bytes, times = own(s)->gone_count;

	for (size_t i = 0; i < own(s)->targets.n; i++) {
		if (!own(s)->targets.v[i].implant)
			continue;
		implant_totals(own(s)->targets.v[i].implant, &count, &bytes);
		all += bytes;
		times += count;
	}
	profile_count_set(s->profile, KEY_HEAP_ALLOCATED_BYTES, all);
	profile_count_set(s->profile, KEY_HEAP_ALLOCATIONS, times);
	profile_add_point(s->profile, own(s)->live_series, collector_time_ns(s, now), own(s)->live.bytes);
	profile_add_point(s->profile, own(s)->rate_series, collector_time_ns(s, now), all);
}

static void note_residency(struct session *s, uint64_t now, bool must)
{
	struct heap *h = own(s);

	residency_note(&h->residency, s->profile, &h->live, collector_time_ns(s, now), must);
	if (must && h->targets.n)
		residency_classes(s->profile, &h->live,
				  h->targets.v[0].implant ? implant_allocators(h->targets.v[0].implant) : "");
}

static void tick(struct session *s, uint64_t now)
{
	for (size_t i = 0; i < own(s)->targets.n; i++) {
		struct heaptarget *t = &own(s)->targets.v[i];

		/* A program that we started is stopped when it executes another one. */
		if (t->implant && !bpfengine_skeleton(s->engine)->bss->heap_exec_pid && implant_replaced(t->implant))
			enter_again(s, t);
		if (t->implant)
			implant_alive(t->implant);
	}
	note_totals(s, now);
	note_residency(s, now, false);
}

static bool still_there(const struct heap *h, const struct liveheap_object *o)
{
	for (size_t i = 0; i < h->targets.n; i++) {
		const struct blob_object *home;

		if ((uint32_t)h->targets.v[i].pid != o->pid || !h->targets.v[i].implant)
			continue;
		home = implant_shared(h->targets.v[i].implant)->objects[blob_home(o->address)];
		return home[0].address == o->address || home[1].address == o->address;
	}
	return true;
}

/* An object whose free was lost on its way is not in the hooks' own table any more. */
static void drop_freed(struct session *s, uint64_t time_ns)
{
	struct liveheap *live = &own(s)->live;

	for (size_t i = live->objects.n; i-- > 0;) {
		struct liveheap_object o = live->objects.v[i];

		if (own(s)->exact || still_there(own(s), &o) || !liveheap_free(live, o.pid, o.address, &o))
			continue;
		freed(s, &o, time_ns, false);
		own(s)->freed_unseen++;
	}
}

static void add_peak(struct session *s)
{
	struct liveheap *h = &own(s)->live;

	liveheap_end_peak(h);
	for (size_t i = 0; i < h->parts.n; i++)
		if (h->parts.v[i].peak_bytes)
			profile_add_sample(s->profile, &(struct profile_sample){
				.event = own(s)->peak_event, .time_ns = h->peak_ns, .thread = h->parts.v[i].thread,
				.stack = h->parts.v[i].stack, .value = h->parts.v[i].peak_bytes,
				.count = MIN(h->parts.v[i].peak_count, UINT32_MAX) });
	profile_count_set(s->profile, KEY_HEAP_PEAK_SAMPLES, h->peak_objects);
	profile_count_set(s->profile, KEY_HEAP_PEAK_ERROR_BYTES, h->peak_variance > 0 ? sqrt(h->peak_variance) : 0);
}

static void note_counts(struct session *s)
{
	struct shared_heap_counts counts;

	if (!bpfengine_sum(bpfengine_skeleton(s->engine)->maps.heap_counts, 0, &counts, sizeof(counts)))
		return;
	profile_count(s->profile, KEY_HEAP_SAMPLES, counts.samples);
	profile_count(s->profile, KEY_HEAP_LOST, counts.ring_full + counts.busy + own(s)->lost);
	profile_count_set(s->profile, KEY_HEAP_INTERVAL_BYTES, own(s)->live.interval);
	if (!own(s)->raised)
		return;
	profile_count_set(s->profile, KEY_HEAP_INTERVAL_ASKED, s->options->heap_interval);
	log_info("allocations were sampled every %" PRIu64 " KB at last, not every %" PRIu64 " KB: %s", own(s)->live.interval >> 10,
		 s->options->heap_interval >> 10, own(s)->raised);
	profile_count_set(s->profile, KEY_HEAP_FREES_UNSEEN, own(s)->freed_unseen);
}

static void stop(struct session *s)
{
	struct heap *h = own(s);
	uint64_t now = clock_mono_ns();

	for (size_t i = 0; i < h->targets.n; i++)
		if (h->targets.v[i].implant)
			implant_deactivate(h->targets.v[i].implant);
	bpfengine_drain(s->engine);
	for (size_t i = 0; i < h->targets.n; i++)
		read_last_events(s, &h->targets.v[i]);
	if (h->targets.n)
		note_totals(s, now);
	drop_freed(s, collector_time_ns(s, now));
	note_residency(s, now, true);
	for (size_t i = 0; i < h->live.objects.n; i++)
		add_sample(s, h->heap_event, h->live.objects.v[i].time_ns, &h->live.objects.v[i]);
	add_peak(s);
	note_counts(s);
	for (size_t i = 0; i < h->targets.n; i++) {
		if (!h->targets.v[i].implant)
			continue;
		profile_count(s->profile, KEY_HEAP_SAMPLES_WITHOUT_ROOM, implant_shared(h->targets.v[i].implant)->full);
		profile_count(s->profile, KEY_HEAP_STOPPED_NS, implant_stopped_ns(h->targets.v[i].implant));
		/* Missing statistics are counted; the heap's figures do not depend on them. */
		jestats_note(s->profile, h->targets.v[i].implant, collector_time_ns(s, now), STATS_NS, NULL);
		heaptarget_leave(&h->targets.v[i]);
	}
	vec_done(&h->targets);
	liveheap_done(&h->live);
	heapsums_done(&h->sums);
}

static const char *const programs[] = { "on_heap_alloc", "on_heap_exact", "on_heap_exec", "on_heap_free", NULL };

const struct collector collector_heap = {
	.name = "heap",
	.describe = "live heap by stack, from now on: puts hooks into the target (asked for by name only)",
	.flags = COLLECTOR_EARLY,
	.state_size = sizeof(struct heap),
	.programs = programs,
	.prepare = prepare,
	.start = start,
	.started = started,
	.record = record,
	.step = step,
	/* No pause: a heap without some of its frees would be wrong. */
	.tick = tick,
	.stop = stop,
};
