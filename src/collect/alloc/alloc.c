/*
 * alloc.c - the alloc collector: allocations by stack, without a write to the target.
 *
 * jemalloc from 5.3 on, with any options, calls te_event_trigger() each time that a thread has allocated
 * about 64 KiB: a uprobe there is a sampler of bytes. On x86-64 it is placed only on an instruction that the kernel
 * emulates, which costs about a microsecond; any other would be single-stepped, for twenty, and is refused.
 * The result is a rate, not the live heap; and it is periodic, not random: allocations that keep step with 64
 * KiB may be seen too often or never.
 *
 * The probe is on the file: other processes that run the same one pay for the trap, too, and are not
 * recorded.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/process/codefiles.h"
#include "collect/collector.h"
#include "collect/bpfengine.h"
#include "collect/probestack.h"
#include "collect/process/processes.h"
#include "elf/probe/allocator.h"
#include "elf/worker/worker.h"
#include "profile/keys.h"
#include "profile/profile.h"

#include "gasflame.skel.h"

/* Where a probe is, and the code of the allocator around it. */
struct place {
	uint64_t address;
	uint32_t own_count;
	struct allocator_range own[ALLOCATOR_OWN];
};

struct alloc {
	VEC(struct bpf_link *) links;
	struct codefiles files; /* that were looked at */
	uint32_t event, series;
	uint64_t bytes, samples;
	VEC(struct place) places; /* with a probe */
	char refused[256]; /* why a place that was found cannot be used */
};

static struct alloc *own(const struct session *s)
{
	return s->state[COLLECTOR_alloc];
}

/* Attaches to one probe of one file. */
static int attach(struct session *s, int fd, const struct allocator_probe *probe,
		  const struct allocator_info *info, struct err *err)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/fd/%d", getpid(), fd);
	unsigned skip = allocator_probe_skip(probe);
	struct place place = { .address = probe->address + skip, .own_count = info->own_count };
	struct bpf_link *link;

	memcpy(place.own, info->own, sizeof(place.own));
	if (!allocator_probe_cheap(probe)) {
		snprintf(own(s)->refused, sizeof(own(s)->refused),
			 "its te_event_trigger begins with an instruction (%02x %02x %02x) that the kernel "
			 "would have to single-step, for some 20 µs each time",
			 probe->code[skip], probe->code[skip + 1], probe->code[skip + 2]);
		return 0;
	}
	link = bpf_program__attach_uprobe(bpfengine_skeleton(s->engine)->progs.on_alloc_rate, false, -1, path,
					  probe->offset + skip);
	if (!link)
		return err_errno(err, errno, "cannot attach to the allocator (uprobe)");
	vec_push(&own(s)->links, link);
	vec_push(&own(s)->places, place);
	return 0;
}

static int look_at_file(void *context, int fd, const char *path, struct err *err)
{
	struct session *s = context;
	_cleanup_free_ struct allocator_info *info = mem_alloc(sizeof(*info));
	int r = 0;

	if (worker_allocator(s->worker, fd, info, NULL) < 0)
		return 0; /* not one that we can read: there are others */
	for (uint32_t k = 0; !r && k < info->probe_count; k++)
		r = attach(s, fd, &info->probes[k], info, err);
	return r;
}

static int look_at(struct session *s, pid_t pid, struct err *err)
{
	return codefiles_of_process(&own(s)->files, pid, look_at_file, s, err);
}

static int refuse(const struct session *s, struct err *err)
{
	if (*own(s)->refused)
		return err_set(err, ENOTSUP, "-e alloc is not possible here: %s; -e heap is",
			       own(s)->refused);
	return err_set(err, ENOTSUP,
		       "-e alloc needs jemalloc from 5.3 on, with its symbols, in the target: nothing in it "
		       "has a function te_event_trigger (glibc's malloc and stripped libraries have no such "
		       "place); -e heap records allocations of these, too");
}

static int start(struct session *s, struct err *err)
{
	struct profile *p = s->profile;
	struct alloc *a = own(s);
	int r = 0;

	a->event = profile_add_event(
		p, "alloc-rate", "bytes",
		"allocated, a sample for about each 64 KiB of a thread (periodic, not random)", 0);
	a->series = profile_series(p, KEY_ALLOC_ALLOCATED);
	r = probestack_check(bpfengine_skeleton(s->engine)->progs.on_alloc_rate, err);
	if (r < 0)
		return r;
	/* The process is not that program yet: the file is, from its first instruction on. */
	if (s->options->program)
		return codefiles_of_program(&a->files, s->options->program, look_at_file, s, err);
	for (size_t i = 0; i < s->options->pid_count && !r; i++)
		r = look_at(s, s->options->pids[i], err);
	if (!r && !a->links.n)
		r = refuse(s, err);
	return r;
}

static int started(struct session *s, struct err *err)
{
	return look_at(s, s->options->pids[0], err);
}

static bool is_own(const struct place *place, uint64_t address)
{
	for (uint32_t i = 0; i < place->own_count; i++)
		if (address >= place->own[i].start && address < place->own[i].end)
			return true;
	return false;
}

/* The stack without the allocator's own functions at its end: it is about who called them. */
static uint32_t strip(const struct session *s, uint32_t stack)
{
	const struct profile *p = s->profile;
	const struct profile_frame *leaf = &p->frames.v[p->stacks.v[stack].frame], *f;
	const struct place *place = NULL;

	for (size_t i = 0; i < own(s)->places.n && !place; i++)
		if (own(s)->places.v[i].address == leaf->address)
			place = &own(s)->places.v[i];
	if (!place || !p->stacks.v[stack].parent)
		return stack;
	stack = p->stacks.v[stack].parent;
	while (p->stacks.v[stack].parent) {
		f = &p->frames.v[p->stacks.v[stack].frame];
		if (f->kind != FRAME_USER || f->module != leaf->module || !is_own(place, f->address))
			break;
		stack = p->stacks.v[stack].parent;
	}
	return stack;
}

static void record(struct session *s, const void *data, size_t size)
{
	const struct shared_alloc *r = data;
	struct profile_sample sample;

	if (size < sizeof(*r))
		return;
	sample = (struct profile_sample){ .event = own(s)->event,
					  .time_ns = collector_time_ns(s, r->time_ns),
					  .value = r->bytes,
					  .thread = processes_thread(s->processes, r->pid, r->tid, "",
								     r->time_ns),
					  .stack = bpfengine_stack(s->engine, r->stack),
					  .count = 1 };
	if (sample.stack == PROFILE_NONE) {
		profile_count(s->profile, KEY_SAMPLES_LOST, 1);
		return;
	}
	sample.stack = strip(s, sample.stack);
	own(s)->bytes += r->bytes;
	own(s)->samples++;
	profile_add_sample(s->profile, &sample);
}

static void tick(struct session *s, uint64_t now)
{
	/* A library that was loaded since. */
	if (s->options->program || !own(s)->links.n) {
		own(s)->files.hurry = true;
		worker_set_timeout(s->worker, CODEFILES_HURRY_NS);
		look_at(s, s->options->pids[0], NULL);
		worker_set_timeout(s->worker, UINT64_MAX);
	}
	profile_add_point(s->profile, own(s)->series, collector_time_ns(s, now), own(s)->bytes);
}

static void note_counts(struct session *s)
{
	struct shared_alloc_counts counts;

	if (!bpfengine_sum(bpfengine_skeleton(s->engine)->maps.alloc_counts, 0, &counts, sizeof(counts)))
		return;
	profile_count(s->profile, KEY_ALLOC_HITS, counts.hits);
	profile_count(s->profile, KEY_ALLOC_LOST, counts.lost);
	profile_count(s->profile, KEY_ALLOC_ODD, counts.odd);
	profile_count_set(s->profile, KEY_ALLOC_BYTES, own(s)->bytes);
	profile_count_set(s->profile, KEY_ALLOC_INTERVAL_BYTES, own(s)->samples ? own(s)->bytes / own(s)->samples : 0);
}

static void stop(struct session *s)
{
	struct err why = { 0 };

	for (size_t i = 0; i < own(s)->links.n; i++)
		bpf_link__destroy(own(s)->links.v[i]);
	bpfengine_drain(s->engine);
	/* Of a running one it was refused at the start. */
	if (!own(s)->links.n && s->options->program) {
		refuse(s, &why);
		log_warn("%s", why.text);
	}
	profile_add_point(s->profile, own(s)->series, collector_time_ns(s, clock_mono_ns()), own(s)->bytes);
	note_counts(s);
	vec_done(&own(s)->links);
	codefiles_done(&own(s)->files);
	vec_done(&own(s)->places);
}

static void pause_alloc(struct session *s, bool pause)
{
	bpfengine_skeleton(s->engine)->bss->alloc_paused = pause;
}

static const char *const programs[] = { "on_alloc_rate", NULL };

const struct collector collector_alloc = {
	.name = "alloc",
	.describe = "allocation rate by stack, of jemalloc with symbols: changes nothing in the target",
	.state_size = sizeof(struct alloc),
	.programs = programs,
	.start = start,
	.started = started,
	.record = record,
	.pause = pause_alloc,
	.tick = tick,
	.stop = stop,
};
