/*
 * goroutine.c - the goroutine collector: how long goroutines wait, where and for what.
 *
 * A goroutine that waits for a channel, a mutex or the network leaves its thread to others, so no wait of a thread shows
 * it. The runtime's own gopark(), ready() and execute() do: uprobes are there, each on an instruction that the kernel
 * emulates (goplaces.h). Every park of the program passes three of them, recorded or not, so the collector is never
 * chosen by itself, says what it costs, and takes its probes away where they are passed more often than HITS a second.
 *
 * Long waits arrive one by one, up to LONG_WAITS a second, with the stack that ended them; all others as sums by stack
 * and reason, once a second. A goroutine is no thread: its samples are the first thread's of its process.
 *
 * The probe is on the file: other processes that run the same one pay for the trap, too, and are not recorded.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "collect/bpfengine.h"
#include "collect/collector.h"
#include "collect/goroutine/sharedgo.h"
#include "collect/probestack.h"
#include "collect/process/codefiles.h"
#include "collect/process/processes.h"
#include "collect/uprobes.h"
#include "elf/probe/goplaces.h"
#include "elf/worker/worker.h"
#include "profile/keys.h"
#include "profile/profile.h"

#include "gasflame.skel.h"

enum { LONG_WAITS = 2000, HITS = 600000, LOOK_TICKS = 5 };

/* A program of Go with probes. */
struct gofile {
	struct uprobes *probes; /* NULL: taken away again */
	uint32_t reason_count;
	char (*reasons)[GOPLACES_REASON]; /* owned */
};

struct goroutines {
	VEC(struct gofile) list;
	struct codefiles files;   /* that were looked at */
	uint32_t wait_event, idle_event, queue_event;
	uint32_t lost;            /* a stack that stands for those without one */
	unsigned ticks;
	uint64_t looked_ns, hits; /* at the last tick */
	uint64_t most_hits;       /* a second */
	uint64_t no_room;         /* at the last look for processes that are gone */
	bool given_up;
	uint32_t trouble;         /* of the last file of Go that cannot be used */
};

static struct goroutines *own(const struct session *s)
{
	return s->state[COLLECTOR_goroutine];
}

/* --- probes --- */

static int attach(struct session *s, int fd, const struct goplaces *g, struct err *err)
{
	struct goroutines *a = own(s);
	struct gofile f = { .reason_count = g->reason_count };
	uint64_t cookies[GOPLACES_COUNT];
	int r;

	for (uint32_t i = 0; i < GOPLACES_COUNT; i++)
		cookies[i] = a->list.n << GO_FILE_SHIFT | i;
	r = uprobes_attach(bpfengine_skeleton(s->engine)->progs.on_goroutine, fd, g->offset, cookies, GOPLACES_COUNT, &f.probes,
			   err);
	if (r < 0)
		return r;
	f.reasons = mem_alloc(sizeof(g->reasons));
	memcpy(f.reasons, g->reasons, sizeof(g->reasons));
	vec_push(&a->list, f);
	return 0;
}
_Static_assert((int)GOPLACES_PARK == GO_PARK && (int)GOPLACES_READY == GO_READY && (int)GOPLACES_RUN == GO_RUN, "cookies");

static int look_at_file(void *context, int fd, const char *path, struct err *err)
{
	struct session *s = context;
	_cleanup_free_ struct goplaces *g = mem_alloc(sizeof(*g));

	if (own(s)->list.n == SHARED_GO_FILES || worker_goplaces(s->worker, fd, g, NULL) < 0)
		return 0; /* not one that we can read: there are others */
	if (g->trouble == GOPLACES_USABLE)
		return attach(s, fd, g, err);
	if (g->trouble != GOPLACES_NO_GO)
		own(s)->trouble = g->trouble;
	return 0;
}

static int look_at(struct session *s, pid_t pid, struct err *err)
{
	return own(s)->given_up ? 0 : codefiles_of_process(&own(s)->files, pid, look_at_file, s, err);
}

static int refuse(const struct session *s, struct err *err)
{
	if (own(s)->trouble)
		return err_set(err, ENOTSUP, "-e goroutine is not possible here: %s; -e wait records the waits of its threads",
			       goplaces_trouble_text(own(s)->trouble));
	return err_set(err, ENOTSUP, "-e goroutine needs a Go program: nothing in the target is one; -e wait records the waits of threads");
}

static void prepare(struct session *s, struct gasflame_bpf *skeleton)
{
	uprobes_prepare(skeleton->progs.on_goroutine);
}

static int start(struct session *s, struct err *err)
{
	struct goroutines *a = own(s);
	struct profile *p = s->profile;
	int r = probestack_check(bpfengine_skeleton(s->engine)->progs.on_goroutine, err);

	a->wait_event = profile_add_event(p, "goroutine", "ns", "time goroutines were parked, from gopark to ready", 0);
	a->queue_event = profile_add_event(p, "goroutine-queue", "ns", "time goroutines were ready, but no thread ran them", 0);
	a->idle_event = profile_add_event(p, "goroutine-idle", "ns", "time the runtime's own goroutines had nothing to do", 0);
	a->lost = profile_stack(p, 0, profile_truncation_frame(p, "stack lost"));
	a->looked_ns = s->start_mono_ns;
	bpfengine_skeleton(s->engine)->bss->go_limit = LONG_WAITS;
	/* All begin at one moment, after the last was attached: a goroutine must not be ready before it was parked. */
	bpfengine_skeleton(s->engine)->bss->go_paused = true;
	/* The process is not that program yet: the file is, from its first instruction on. */
	if (!r && s->options->program)
		r = codefiles_of_program(&a->files, s->options->program, look_at_file, s, err);
	for (size_t i = 0; !s->options->program && i < s->options->pid_count && !r; i++)
		r = look_at(s, s->options->pids[i], err);
	bpfengine_skeleton(s->engine)->bss->go_paused = false;
	if (!r && !a->list.n && !s->options->program)
		r = refuse(s, err);
	if (!r && a->list.n)
		log_info("Each time that a goroutine is parked costs the program about 3 µs while -e goroutine runs.");
	return r;
}

static int started(struct session *s, struct err *err)
{
	return look_at(s, s->options->pids[0], err);
}

/* --- waits --- */

static const char *reason_of(const struct session *s, uint32_t reason, char number[32])
{
	uint32_t file = reason >> GO_REASON_BITS, n = reason & ((1 << GO_REASON_BITS) - 1);

	if (file < own(s)->list.n && n < own(s)->list.v[file].reason_count && *own(s)->list.v[file].reasons[n])
		return own(s)->list.v[file].reasons[n];
	snprintf(number, 32, "wait reason %u", n);
	return number;
}

/* Returns whether a goroutine with that reason is the runtime's own without work, or waits for nothing at all. */
static bool is_idle(const char *reason)
{
	static const char *const idle[] = { "finalizer wait", "cleanup wait", "GC sweep wait", "GC scavenge wait",
					    "trace reader (blocked)", "select (no cases)" };

	for (size_t i = 0; i < ARRAY_LEN(idle); i++)
		if (!strcmp(reason, idle[i]))
			return true;
	return str_ends(reason, "(idle)");
}

/* The stack, with the reason as what its leaf was about. */
static uint32_t stack_of(struct session *s, uint64_t hash, const char *reason)
{
	uint32_t stack = hash ? bpfengine_stack(s->engine, hash) : PROFILE_NONE;
	_cleanup_free_ char *note = mem_printf("[%s]", reason);

	return profile_stack(s->profile, stack == PROFILE_NONE ? own(s)->lost : stack,
			     profile_named_frame(s->profile, PROFILE_NONE, FRAME_NOTE, note));
}

/* Adds count waits of one stack and reason. */
static void add_waits(struct session *s, const struct shared_go_wait *r, uint64_t count)
{
	char number[32];
	const char *reason = reason_of(s, r->reason, number);
	struct profile_sample sample = { .time_ns = collector_time_ns(s, r->time_ns), .value = r->wait_ns,
					 .count = MIN(count, UINT32_MAX),
					 .event = is_idle(reason) ? own(s)->idle_event : own(s)->wait_event };

	sample.thread = processes_thread(s->processes, r->pid, r->pid, "", r->time_ns);
	sample.stack = stack_of(s, r->stack, reason);
	profile_add_sample(s->profile, &sample);
	if (r->waker_stack) {
		uint32_t waker = processes_thread(s->processes, r->pid, r->waker_tid, "", r->time_ns + r->wait_ns);
		uint32_t stack = bpfengine_stack(s->engine, r->waker_stack);

		profile_add_wake(s->profile, &(struct profile_wake){
			.time_ns = sample.time_ns, .blocked_ns = r->wait_ns, .queue_ns = r->queue_ns, .thread = sample.thread,
			.stack = sample.stack, .waker = waker, .waker_name = s->profile->threads.v[waker].name,
			.waker_stack = stack == PROFILE_NONE ? own(s)->lost : stack });
	}
	if (!r->queue_ns)
		return;
	sample.event = own(s)->queue_event;
	sample.time_ns += count > 1 ? 0 : r->wait_ns;
	sample.value = r->queue_ns;
	profile_add_sample(s->profile, &sample);
}

static void record(struct session *s, const void *data, size_t size)
{
	if (size >= sizeof(struct shared_go_wait))
		add_waits(s, data, 1);
}

static void add_entry(struct session *s, const void *key, const void *value)
{
	const struct shared_go_sum_key *k = key;
	const struct shared_go_sum *sum = value;

	add_waits(s, &(struct shared_go_wait){ .pid = k->pid, .time_ns = sum->first_ns, .wait_ns = sum->wait_ns,
					       .queue_ns = sum->queue_ns, .stack = k->stack, .reason = k->reason }, sum->count);
}

static void read_sums(struct session *s, int fd)
{
	bpfengine_empty(s, fd, sizeof(struct shared_go_sum_key), sizeof(struct shared_go_sum), add_entry);
}

static int side_fd(struct session *s, uint32_t side)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);

	return bpf_map__fd(side ? skeleton->maps.go_sums_1 : skeleton->maps.go_sums_0);
}

/* --- goroutines that are parked --- */

/* Calls fn for each; those for which it returns true are forgotten. */
static void each_parked(struct session *s, bool (*fn)(struct session *s, const struct shared_go_key *key,
						      const struct shared_go_parked *w, uint64_t now), uint64_t now)
{
	int fd = bpf_map__fd(bpfengine_skeleton(s->engine)->maps.go_parked);
	struct shared_go_key key, next, *previous = NULL;
	struct shared_go_parked w;
	bool more = !bpf_map_get_next_key(fd, NULL, &next);

	for (uint32_t n = 0; more && n < 2 * SHARED_GO_PARKED; n++) {
		key = next;
		previous = &key;
		more = !bpf_map_get_next_key(fd, previous, &next);
		if (!bpf_map_lookup_elem(fd, &key, &w) && fn(s, &key, &w, now))
			bpf_map_delete_elem(fd, &key);
	}
}


static bool is_any(struct session *s, const struct shared_go_key *key, const struct shared_go_parked *w, uint64_t now)
{
	return true;
}

/* The recording or its process ends, and it still waits, or is ready and was not run yet. */
static bool finish(struct session *s, const struct shared_go_key *key, const struct shared_go_parked *w, uint64_t now)
{
	uint32_t thread = processes_thread(s->processes, key->pid, key->pid, "", w->since_ns);
	uint64_t ended_ns = s->profile->processes.v[s->profile->threads.v[thread].process].end_ns, end;

	if (ended_ns)
		now = MIN(now, s->start_mono_ns + ended_ns);
	end = w->ready_ns ? w->ready_ns : now;

	if (now > w->since_ns && end >= w->since_ns && now >= end)
		add_waits(s, &(struct shared_go_wait){ .pid = key->pid, .time_ns = w->since_ns, .wait_ns = end - w->since_ns,
						       .queue_ns = now - end, .stack = w->stack, .reason = w->reason },
			  1);
	return true;
}

/* Goroutines of processes that have ended make room for others. */
static bool finish_gone(struct session *s, const struct shared_go_key *key, const struct shared_go_parked *w, uint64_t now)
{
	return !processes_knows(s->processes, key->pid) && finish(s, key, w, now);
}

/* --- its life --- */

static void detach(struct goroutines *a)
{
	for (size_t i = 0; i < a->list.n; i++) {
		uprobes_detach(a->list.v[i].probes);
		a->list.v[i].probes = NULL;
	}
}

/* Takes the probes away. What still waits is recorded up to now. */
static void end_now(struct session *s, uint64_t now)
{
	bpfengine_skeleton(s->engine)->bss->go_paused = true;
	detach(own(s));
	bpfengine_drain(s->engine);
	each_parked(s, finish, now);
}

/* Probes that are passed too often would take a large part of the program's time. */
static void calm_down(struct session *s, uint64_t now, const struct shared_go_counts *c)
{
	struct goroutines *a = own(s);
	double seconds = now > a->looked_ns ? (now - a->looked_ns) / 1e9 : 0;
	uint64_t rate = seconds > 0 ? (c->hits - a->hits) / seconds : 0;

	if (seconds < 0.5)
		return;
	a->looked_ns = now;
	a->hits = c->hits;
	a->most_hits = MAX(a->most_hits, rate);
	if (rate <= HITS || a->given_up)
		return;
	a->given_up = true;
	end_now(s, now);
	profile_count(s->profile, KEY_GOROUTINES_GIVEN_UP, 1);
	log_warn("goroutines are parked and run too often to be followed (the probes were passed %llu times a second, %d is the "
		 "most): their waits are recorded up to here", (unsigned long long)rate, HITS);
}

static void look_again(struct session *s)
{
	/* Libraries that were loaded, and what the program has executed since. */
	if (!(own(s)->list.n ? ++own(s)->ticks % LOOK_TICKS == 0 : s->options->program != NULL))
		return;
	own(s)->files.hurry = true;
	worker_set_timeout(s->worker, CODEFILES_HURRY_NS);
	for (size_t i = 0; i < s->options->pid_count; i++)
		look_at(s, s->options->pids[i], NULL);
	worker_set_timeout(s->worker, UINT64_MAX);
}

static void tick(struct session *s, uint64_t now)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);
	uint32_t side = skeleton->bss->go_side;
	struct shared_go_counts c;

	/* It has been at rest for a second: nobody adds to it any more. */
	read_sums(s, side_fd(s, !side));
	skeleton->bss->go_side = !side;
	if (s->options->full)
		skeleton->bss->go_limit = 0;
	look_again(s);
	if (!bpfengine_sum(skeleton->maps.go_counts, 0, &c, sizeof(c)))
		return;
	calm_down(s, now, &c);
	if (c.no_room > own(s)->no_room)
		each_parked(s, finish_gone, now);
	own(s)->no_room = c.no_room;
}

static void note_counts(struct session *s)
{
	struct profile *p = s->profile;
	struct shared_go_counts c;

	if (!bpfengine_sum(bpfengine_skeleton(s->engine)->maps.go_counts, 0, &c, sizeof(c)))
		return;
	profile_count(p, KEY_GOROUTINES_HITS, c.hits);
	profile_count(p, KEY_GOROUTINES_PARKS, c.parks);
	profile_count(p, KEY_GOROUTINES_NOT_READIED, c.unready);
	profile_count(p, KEY_GOROUTINES_BEFORE, c.before);
	profile_count(p, KEY_GOROUTINES_STACKS_WALKED, c.walked);
	profile_count(p, KEY_GOROUTINES_STACKS_REMEMBERED, c.remembered);
	profile_count(p, KEY_GOROUTINES_NO_ROOM, c.no_room);
	profile_count(p, KEY_GOROUTINES_LOST, c.lost);
	profile_count(p, KEY_GOROUTINES_MOST_HITS, own(s)->most_hits);
	profile_count(p, KEY_SAMPLES_LOST, c.lost);
	if (c.no_room)
		log_warn("%llu waits of goroutines were not recorded: more than %d were parked at a time",
			 (unsigned long long)c.no_room, SHARED_GO_PARKED);
}

static void stop(struct session *s)
{
	struct goroutines *a = own(s);
	uint64_t now = clock_mono_ns();
	struct err why = { 0 };

	end_now(s, now);
	/* Of a running one it was refused at the start. */
	if (!a->list.n && s->options->program) {
		refuse(s, &why);
		log_warn("%s", why.text);
	}
	read_sums(s, side_fd(s, 0));
	read_sums(s, side_fd(s, 1));
	note_counts(s);
	codefiles_done(&a->files);
	vec_done_each(&a->list, f, free(f->reasons));
}

/* What happens during a pause is not seen, so that nothing is known of who was parked before. */
static void pause_goroutines(struct session *s, bool pause)
{
	if (!pause)
		each_parked(s, is_any, 0);
	bpfengine_skeleton(s->engine)->bss->go_paused = pause || own(s)->given_up;
}

static const char *const programs[] = { "on_goroutine", NULL };
static const char *const maps[] = { "go_parked", "go_sums_0", "go_sums_1", NULL };

const struct collector collector_goroutine = {
	.name = "goroutine",
	.describe = "waits of goroutines by stack and reason (Go): probes cost the program about 3 µs each time that one is parked",
	.state_size = sizeof(struct goroutines),
	.programs = programs,
	.maps = maps,
	.prepare = prepare,
	.start = start,
	.started = started,
	.record = record,
	.pause = pause_goroutines,
	.tick = tick,
	.stop = stop,
};
