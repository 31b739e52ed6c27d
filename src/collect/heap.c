/*
 * heap.c - the heap collector: what the targets allocate, what of it is alive, and for how long.
 *
 * The hooks that implant.c puts into each target sample allocations by their bytes and
 * tell of them at uprobes (heap.bpf.c). Here they become samples of five events, all in
 * bytes and with the stack of the allocation: "alloc" and "freed" as they happen,
 * "temporary" of those that were freed before their thread allocated anything else, and
 * at the end "heap", what is alive, and "peak", what was alive when it was most.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "collect/blob/blob.h"
#include "collect/collector.h"
#include "collect/engine.h"
#include "collect/implant.h"
#include "collect/jestats.h"
#include "collect/liveheap.h"
#include "collect/processes.h"
#include "collect/residency.h"
#include "profile/profile.h"

#include "gasflame.skel.h"

enum { MAX_LINKS = 4, SEEN_STEP = 4096 };

#define STATS_NS 300000000ULL /* how long a target may take to say what its jemalloc holds */

struct target {
	pid_t pid;
	struct implant *implant;
	struct bpf_link *links[MAX_LINKS];
	uint32_t mappings; /* when its slots were looked for last */
	uint64_t seen;     /* exact: allocations that it was not told yet that we have them */
};

struct heap {
	VEC(struct target) targets;
	struct liveheap live;
	uint32_t alloc_event, freed_event, temporary_event, heap_event, peak_event;
	uint32_t live_series, rate_series;
	uint64_t freed_unseen;
	uint64_t gone_count, gone_bytes; /* allocated by programs before an exec */
	struct residency residency;
	bool exact;          /* each allocation and each free is seen */
	struct map last;     /* exact: tid to the address of its last allocation */
};

static int attach(struct target *t, struct bpf_program *program, const uint64_t *offsets, struct err *err)
{
	int n = 0;

	while (t->links[n])
		n++;
	for (; *offsets; offsets++) {
		t->links[n] = bpf_program__attach_uprobe(program, false, -1, implant_path(t->implant), *offsets);
		if (!t->links[n++])
			return err_errno(err, errno, "cannot attach to our hooks in process %d (uprobe)", t->pid);
	}
	return 0;
}

/* Leaves the process as it was, but for memory that nothing refers to any more. */
static void leave(struct target *t)
{
	int left;

	if (!t->implant)
		return;
	left = implant_unhook(t->implant);
	if (left)
		log_warn("%d slots of process %d could not be put back: `gasflame heap detach %d` tries again", left, t->pid,
			 t->pid);
	for (int i = 0; i < MAX_LINKS; i++)
		bpf_link__destroy(t->links[i]);
	implant_close(t->implant);
	t->implant = NULL;
}

/* Hooks its allocators and switches them on. Of t the pid and the implant are there; on failure it is left. */
static int enter(struct session *s, struct target *t, struct err *err)
{
	struct gasflame_bpf *skeleton = engine_skeleton(s->engine);
	int r = implant_hook(t->implant, s->worker, err);

	if (!r)
		r = err_set(err, ENOTSUP,
			    "process %d calls no allocator through a slot that we know: its allocator is linked in without symbols, "
			    "or called directly; `gasflame mem %d` and -e fault say where its memory grows",
			    t->pid, t->pid);
	if (r > 0)
		r = attach(t, skeleton->progs.on_heap_alloc, implant_alloc_offsets, err);
	if (!r)
		r = attach(t, skeleton->progs.on_heap_free, implant_free_offsets, err);
	if (!r) {
		processes_dirty(s->processes, t->pid);
		processes_refresh(s->processes);
		r = implant_activate(t->implant, s->options->heap_interval, err);
		if (s->options->heap_ours)
			implant_populate(t->implant);
	}
	if (r < 0) {
		leave(t);
		return r;
	}
	log_debug("process %d: %s", t->pid, implant_allocators(t->implant));
	return 0;
}

static int start(struct session *s, struct err *err)
{
	struct profile *p = s->profile;
	struct heap *h = s->heap = mem_alloc(sizeof(*h));
	int r = 0;

	h->exact = s->options->heap_interval <= 1;
	liveheap_init(&h->live, s->options->heap_interval);
	h->heap_event = profile_add_event(p, "heap", "bytes", "allocated during the recording and alive at its end", 0);
	h->alloc_event = profile_add_event(p, "alloc", "bytes", "allocated", 0);
	h->freed_event = profile_add_event(p, "freed", "bytes", "freed, by where it was allocated", 0);
	h->temporary_event = profile_add_event(p, "temporary", "bytes",
					       "freed before the thread's next allocation, by where it was allocated", 0);
	h->peak_event = profile_add_event(p, "peak", "bytes", "alive when it was most", 0);
	h->live_series = profile_add_series(p, "heap.live", "bytes");
	h->rate_series = profile_add_series(p, "heap.allocated", "bytes");
	profile_count_set(p, "heap.from start", s->options->program != NULL);
	if (s->options->program)
		return implant_expect(s->options->pids[0], err);
	for (size_t i = 0; i < s->options->pid_count && !r; i++) {
		struct target t = { .pid = s->options->pids[i] };

		r = implant_open(t.pid, false, &t.implant, err);
		r = r ?: enter(s, &t, err);
		if (!r)
			vec_push(&h->targets, t);
	}
	return r;
}

static int started(struct session *s, struct err *err)
{
	struct target t = { .pid = s->options->pids[0] };
	int r = implant_begin(t.pid, &t.implant, err);

	r = r ?: enter(s, &t, err);
	/* It was let go on failure, too. One that is dead by now is no reason to say so: others see that. */
	if (r < 0 && s->options->heap_optional) {
		if (r != -ESRCH && err)
			log_warn("the heap is not recorded: %s", err->text);
		return 0;
	}
	if (r < 0)
		return r;
	implant_let_go(t.implant);
	vec_push(&s->heap->targets, t);
	return 0;
}

static uint64_t since_start(const struct session *s, uint64_t mono_ns)
{
	return mono_ns > s->start_mono_ns ? mono_ns - s->start_mono_ns : 0;
}

static void add_sample(struct session *s, uint32_t event, uint64_t time_ns, const struct liveheap_object *o)
{
	profile_add_sample(s->profile, &(struct profile_sample){
		.event = event, .time_ns = time_ns, .thread = o->thread, .stack = o->stack, .value = o->bytes,
		.count = o->count });
}

static void freed(struct session *s, const struct liveheap_object *o, uint64_t time_ns, bool at_once)
{
	struct profile_histogram *h = profile_histogram(s->profile, "heap.lifetime", "ns");
	uint64_t ns = time_ns > o->time_ns ? time_ns - o->time_ns : 0;

	add_sample(s, s->heap->freed_event, time_ns, o);
	if (at_once)
		add_sample(s, s->heap->temporary_event, time_ns, o);
	h->counts[ns ? 63 - __builtin_clzll(ns) : 0] += o->count;
}

/* It waits for us when too many are on their way. */
static void note_seen(struct heap *h, uint32_t pid)
{
	for (size_t i = 0; i < h->targets.n; i++)
		if ((uint32_t)h->targets.v[i].pid == pid && h->targets.v[i].implant && ++h->targets.v[i].seen == SEEN_STEP) {
			implant_seen(h->targets.v[i].implant, SEEN_STEP);
			h->targets.v[i].seen = 0;
		}
}

static void record(struct session *s, const void *data, size_t size)
{
	const struct shared_heap *r = data;
	struct liveheap_object object, old;
	uint64_t time_ns;

	if (r->kind != RECORD_HEAP || size < sizeof(*r))
		return;
	time_ns = since_start(s, r->time_ns);
	if (r->what != HEAP_ALLOCATED) {
		if (liveheap_free(&s->heap->live, r->pid, r->address, &object))
			freed(s, &object, time_ns, s->heap->exact ? *map_put(&s->heap->last, r->tid, 0) == r->address :
								    r->what == HEAP_FREED_AT_ONCE);
		return;
	}
	if (s->heap->exact) {
		*map_put(&s->heap->last, r->tid, 0) = r->address;
		note_seen(s->heap, r->pid);
	}
	object = (struct liveheap_object){ .size = r->bytes, .time_ns = time_ns,
					   .thread = processes_thread(s->processes, r->pid, r->tid, "", r->time_ns),
					   .stack = engine_stack(s->engine, r->stack) };
	if (object.stack == PROFILE_NONE) {
		profile_count(s->profile, "samples.lost", 1);
		return;
	}
	if (liveheap_alloc(&s->heap->live, r->pid, r->address, &object, &old)) {
		freed(s, &old, time_ns, false);
		s->heap->freed_unseen++;
	}
	add_sample(s, s->heap->alloc_event, time_ns, &object);
}

/* The process executed another program: what it had is gone, and the new one has no hooks yet. */
static void enter_again(struct session *s, struct target *t, uint64_t now)
{
	struct liveheap *live = &s->heap->live;
	struct err err = { 0 };
	uint64_t count, bytes;

	implant_totals(t->implant, &count, &bytes);
	s->heap->gone_count += count;
	s->heap->gone_bytes += bytes;
	leave(t);
	for (size_t i = live->objects.n; i-- > 0;) {
		struct liveheap_object o = live->objects.v[i];

		if (o.pid == (uint32_t)t->pid && liveheap_free(live, o.pid, o.address, &o))
			freed(s, &o, since_start(s, now), false);
	}
	memset(t->links, 0, sizeof(t->links));
	if (implant_open(t->pid, false, &t->implant, &err) < 0 || enter(s, t, &err) < 0)
		log_warn("process %d executed another program, whose heap is not recorded: %s", t->pid, err.text);
	else
		log_warn("process %d executed another program: its heap is recorded from now on, not from its beginning",
			 t->pid);
	profile_count(s->profile, "heap.execs", 1);
}

static void note_totals(struct session *s, uint64_t now)
{
	uint64_t count, bytes, all = s->heap->gone_bytes, times = s->heap->gone_count;

	for (size_t i = 0; i < s->heap->targets.n; i++) {
		if (!s->heap->targets.v[i].implant)
			continue;
		implant_totals(s->heap->targets.v[i].implant, &count, &bytes);
		all += bytes;
		times += count;
	}
	profile_count_set(s->profile, "heap.allocated bytes", all);
	profile_count_set(s->profile, "heap.allocations", times);
	profile_add_point(s->profile, s->heap->live_series, since_start(s, now), s->heap->live.bytes);
	profile_add_point(s->profile, s->heap->rate_series, since_start(s, now), all);
}

static void note_residency(struct session *s, uint64_t now, bool must)
{
	struct heap *h = s->heap;

	residency_note(&h->residency, s->profile, &h->live, since_start(s, now), must);
	if (must && h->targets.n)
		residency_classes(s->profile, &h->live,
				  h->targets.v[0].implant ? implant_allocators(h->targets.v[0].implant) : "");
}

static void tick(struct session *s, uint64_t now)
{
	for (size_t i = 0; i < s->heap->targets.n; i++) {
		struct target *t = &s->heap->targets.v[i];
		uint32_t count = 0;

		if (t->implant && implant_replaced(t->implant))
			enter_again(s, t, now);
		if (!t->implant)
			continue;
		implant_alive(t->implant);
		/* Libraries that were loaded since have slots, too. */
		processes_mappings(s->processes, t->pid, &count);
		if (count != t->mappings)
			implant_hook(t->implant, s->worker, NULL);
		t->mappings = count;
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
	struct liveheap *live = &s->heap->live;

	for (size_t i = live->objects.n; i-- > 0;) {
		struct liveheap_object o = live->objects.v[i];

		if (s->heap->exact || still_there(s->heap, &o) || !liveheap_free(live, o.pid, o.address, &o))
			continue;
		freed(s, &o, time_ns, false);
		s->heap->freed_unseen++;
	}
}

static void add_peak(struct session *s)
{
	struct liveheap *h = &s->heap->live;

	liveheap_end_peak(h);
	for (size_t i = 0; i < h->parts.n; i++)
		if (h->parts.v[i].peak_bytes)
			profile_add_sample(s->profile, &(struct profile_sample){
				.event = s->heap->peak_event, .time_ns = h->peak_ns, .thread = h->parts.v[i].thread,
				.stack = h->parts.v[i].stack, .value = h->parts.v[i].peak_bytes,
				.count = MIN(h->parts.v[i].peak_count, UINT32_MAX) });
	profile_count_set(s->profile, "heap.peak samples", h->peak_objects);
	profile_count_set(s->profile, "heap.peak error bytes", h->peak_variance > 0 ? sqrt(h->peak_variance) : 0);
}

static void note_counts(struct session *s)
{
	int fd = bpf_map__fd(engine_skeleton(s->engine)->maps.heap_counts), cpus = libbpf_num_possible_cpus();
	_cleanup_free_ struct shared_heap_counts *counts = mem_alloc(MAX(cpus, 1) * sizeof(*counts));
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(fd, &zero, counts))
		return;
	for (int i = 0; i < cpus; i++) {
		profile_count(s->profile, "heap.samples", counts[i].samples);
		profile_count(s->profile, "heap.lost", counts[i].ring_full + counts[i].busy);
	}
	profile_count_set(s->profile, "heap.interval bytes", s->heap->live.interval);
	profile_count_set(s->profile, "heap.frees unseen", s->heap->freed_unseen);
}

static void stop(struct session *s)
{
	struct heap *h = s->heap;
	uint64_t now = clock_mono_ns();

	if (!h)
		return;
	for (size_t i = 0; i < h->targets.n; i++)
		if (h->targets.v[i].implant)
			implant_deactivate(h->targets.v[i].implant);
	engine_drain(s->engine);
	if (h->targets.n)
		note_totals(s, now);
	drop_freed(s, since_start(s, now));
	note_residency(s, now, true);
	for (size_t i = 0; i < h->live.objects.n; i++)
		add_sample(s, h->heap_event, h->live.objects.v[i].time_ns, &h->live.objects.v[i]);
	add_peak(s);
	note_counts(s);
	for (size_t i = 0; i < h->targets.n; i++) {
		if (!h->targets.v[i].implant)
			continue;
		profile_count(s->profile, "heap.samples without room", implant_shared(h->targets.v[i].implant)->full);
		profile_count(s->profile, "heap.stopped ns", implant_stopped_ns(h->targets.v[i].implant));
		/* What cannot be had is counted; nothing of the heap's figures depends on it. */
		jestats_note(s->profile, h->targets.v[i].implant, since_start(s, now), STATS_NS, NULL);
		leave(&h->targets.v[i]);
	}
	vec_done(&h->targets);
	liveheap_done(&h->live);
	map_done(&h->last);
	free(h);
	s->heap = NULL;
}

static void set_hz(struct session *s, uint64_t hz)
{
	/* No clock. */
}

static void pause_heap(struct session *s, bool pause)
{
	/* A heap with holes would be none: it goes on. */
}

static const char *const programs[] = { "on_heap_alloc", "on_heap_free", NULL };

const struct collector collector_heap = {
	.name = "heap",
	.describe = "live heap by stack, from now on: puts hooks into the target (asked for by name only)",
	.programs = programs,
	.early = true,
	.start = start,
	.started = started,
	.record = record,
	.set_hz = set_hz,
	.pause = pause_heap,
	.tick = tick,
	.stop = stop,
};
