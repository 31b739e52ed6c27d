/*
 * task.c - the task collector: what the async tasks of a program do and wait for (tokio), on a stock binary.
 *
 * The hooks that taskimplant.c puts into each target tell of each poll and each wake, with the processor's clock, in rings of
 * the target's threads that are read here every 10 ms. Some wakes, drawn by the time that was awaited, pass a uprobe, which takes
 * the waker's stack; spawns pass another one (task.bpf.c). taskstate.c makes lives of all that, and rows of the profile.
 *
 * Life of a target: enter (files with tokio are looked for, their vtables hooked) -> read -> leave. At the end each target is
 * left as it was found.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "collect/bpfengine.h"
#include "collect/collector.h"
#include "collect/probestack.h"
#include "collect/process/processes.h"
#include "collect/task/sharedtask.h"
#include "collect/task/taskclock.h"
#include "collect/task/taskfiles.h"
#include "collect/task/taskimplant.h"
#include "collect/task/taskpace.h"
#include "collect/task/taskstate.h"
#include "collect/task/tasktarget.h"
#include "collect/uprobes.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/proc.h"

#include "gasflame.skel.h"

enum {
	STEP_MS = 10,
	LAST_EVENTS_MS = 50,     /* how long threads may take to write their last events */
	MOST_POLLS = 256,        /* under way at a time that are looked at */
	ROOM = 4096,             /* events that are read at once */
	MOST_EVENTS = 1 << 18,   /* in one look; more come with the next one */
	MOST_THREADS = 1 << 16,
	MOST_TICKETS = 100000,   /* stacks whose events have not come */
	SPAWN_RARE = 6,          /* after the first ones, one in 64 spawns of a place has its stack walked */
	MOST_SPAWNS = 200000,    /* a second: beyond that the probes are taken away */
	HOOK_NS = 25,            /* what the hooks take of the target for an event */
	FIND_TRIES = 200,        /* looks for tokio in a program that is starting, one a step */
};

#define LONG_POLL_NS 1000000ULL

struct tasks {
	VEC(struct tasktarget) targets;
	struct taskfiles files;
	struct taskstate *state;
	struct taskpace pace;
	VEC(struct taskimplant_event) events; /* of one look */
	bool begun, entered;
	uint64_t read_ns;                     /* the last look */
	uint64_t end_ns;                      /* of the recording, 0: it goes on */
	uint64_t own_ns;                      /* CPU time of ours for events */
	uint64_t event_count;
	uint64_t lost;                        /* of targets that were left */
	uint64_t stacks, stacks_lost;
	uint64_t spawn_hits, spawn_ns;        /* at the last tick */
};

static struct tasks *own(const struct session *s)
{
	return s->state[COLLECTOR_task];
}

/* --- targets --- */

static struct tasktarget *target_of(struct tasks *a, uint32_t pid)
{
	for (size_t i = 0; i < a->targets.n; i++)
		if ((uint32_t)a->targets.v[i].pid == pid)
			return &a->targets.v[i];
	return NULL;
}

static int enter(struct session *s, struct tasktarget *t, struct err *err)
{
	struct tasks *a = own(s);
	int r = tasktarget_enter(s, t, &a->files, a->state, a->pace.interval_ns, err);

	if (r < 0)
		return r;
	a->entered = true;
	t->since_ns = clock_mono_ns();
	/* Where the recording has not begun, it begins later than now. */
	t->process = taskstate_process(a->state, a->begun ? collector_time_ns(s, clock_mono_ns()) : 0);
	taskfiles_attach(&a->files, s, a->state);
	return 0;
}

static int refuse(const struct session *s, struct err *err)
{
	static const char instead[] = "-e cpu,wait groups what threads do by their tasks, too";

	if (own(s)->files.refused.text[0])
		return err_set(err, ENOTSUP, "-e task is not possible here: %s; %s", own(s)->files.refused.text, instead);
	return err_set(err, ENOTSUP, "-e task needs a program with tokio (async Rust, version 1.23 or later): nothing in the target is one; "
				     "%s", instead);
}

static void prepare(struct session *s, struct gasflame_bpf *skeleton)
{
	uprobes_prepare(skeleton->progs.on_task_spawn);
}

static int check_programs(struct session *s, struct err *err)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);

	return probestack_check(skeleton->progs.on_task_wake, err) ?: probestack_check(skeleton->progs.on_task_spawn, err);
}

static int start(struct session *s, struct err *err)
{
	struct tasks *a = own(s);
	bool any = false;
	int r;

	a->state = taskstate_new(s->profile, s->options->long_poll_ns ? s->options->long_poll_ns : LONG_POLL_NS);
	taskpace_init(&a->pace);
	bpfengine_skeleton(s->engine)->bss->task_rare = SPAWN_RARE;
	if (!s->step_ms || s->step_ms > STEP_MS)
		s->step_ms = STEP_MS;
	/* Before anything is put into the target, or looked for in it. */
	r = taskclock_check(err) ?: check_programs(s, err);
	if (!r && s->options->program)
		taskfiles_foresee(&a->files, s, a->state, s->options->program);
	for (size_t i = 0; i < s->options->pid_count && !r; i++) {
		struct tasktarget t = { .pid = s->options->pids[i], .tries = s->options->program ? FIND_TRIES : 0 };

		if (!s->options->program) /* else nothing of it is there yet */
			r = enter(s, &t, err);
		any |= r >= 0;
		r = r == -ENOENT ? 0 : r;
		if (!r)
			vec_push(&a->targets, t);
	}
	return !r && !any ? refuse(s, err) : r;
}

/* A program has its vtables once its loader has filled them in. */
static void try_again(struct session *s, struct tasktarget *t)
{
	struct err why = { 0 };
	int r;

	if (t->implant)
		return;
	if (tasktarget_changed(s, t)) /* it may have executed another program */
		t->tries = FIND_TRIES;
	if (!t->tries)
		return;
	t->tries--;
	r = enter(s, t, &why);
	if (!r || r == -ESRCH)
		t->tries = 0;
	/* One without tokio is no news: it may execute another program. */
	if (r < 0 && r != -ESRCH && r != -ENOENT && !t->tries && !t->warned) {
		t->warned = true;
		log_warn("the tasks of process %d are not recorded: %s", t->pid, why.text);
	}
}

/* --- events --- */

/* Events in which a target says what cannot be are not understood. */
static bool is_sane(const struct tasktarget *t, const struct taskimplant_event *e, uint64_t now)
{
	return e->vtable < t->types.n && e->task && e->time_ns <= now && e->duration_ns <= now - e->time_ns;
}

/* The target says whose an event is, and might name threads without end: each must have been one of it. */
static bool is_thread(struct tasktarget *t, pid_t tid)
{
	char path[64];

	if (map_get(&t->tids, tid))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)t->pid, (int)tid);
	if (t->tids.n >= MOST_THREADS || access(path, F_OK) < 0)
		return false;
	map_put(&t->tids, tid, 0);
	return true;
}

static uint32_t thread_of(struct session *s, struct tasktarget *t, const struct taskimplant_event *e)
{
	uint64_t *known = map_put(&t->threads, e->tid, PROFILE_NONE);
	pid_t tid = e->tid;

	if (*known == PROFILE_NONE) {
		tid = tid > 0 && is_thread(t, tid) ? tid : t->pid;
		*known = processes_thread(s->processes, t->pid, tid, "", e->time_ns + e->duration_ns);
	}
	return *known;
}

/* The stack of a wake; 0: it was not taken. */
static uint32_t take_stack(struct session *s, struct tasktarget *t, uint32_t ticket)
{
	uint64_t *found = ticket ? map_get(&t->stacks, ticket) : NULL;
	uint32_t stack = found ? *found : 0;

	own(s)->stacks += stack != 0;
	own(s)->stacks_lost += ticket && !stack;
	if (found)
		map_remove(&t->stacks, ticket);
	return stack;
}

static struct taskstate_event translate(struct session *s, struct tasktarget *t, const struct taskimplant_event *e)
{
	static const uint32_t what[] = { [TASK_POLL] = TASKSTATE_POLL, [TASK_WAKE] = TASKSTATE_WAKE, [TASK_DEALLOC] = TASKSTATE_GONE };
	uint64_t begin_ns = collector_time_ns(s, e->time_ns);

	return (struct taskstate_event){
		.what = e->what < ARRAY_LEN(what) ? what[e->what] : 0, .process = t->process, .type = t->types.v[e->vtable],
		.vtable = e->vtable, .thread = thread_of(s, t, e), .task = e->task, .header = e->header, .time_ns = begin_ns,
		.duration_ns = collector_time_ns(s, e->time_ns + e->duration_ns) - begin_ns, .waker = e->waker,
		.stack = e->what == TASK_WAKE ? take_stack(s, t, e->ticket) : 0, .scale = e->scale };
}

/* Reads what there is; the stacks of these wakes are on their way before the events are. */
static void read_events(struct session *s, struct tasktarget *t)
{
	struct tasks *a = own(s);
	size_t n;

	vec_clear(&a->events);
	do {
		vec_reserve(&a->events, ROOM);
		n = taskimplant_read(t->implant, a->events.v + a->events.n, ROOM);
		a->events.n += n;
	} while (n == ROOM && a->events.n < MOST_EVENTS);
	bpfengine_consume(s->engine);
}

static void see_events(struct session *s, struct tasktarget *t)
{
	struct tasks *a = own(s);
	uint64_t now = clock_mono_ns();

	map_clear(&t->threads);
	for (size_t i = 0; i < a->events.n; i++) {
		struct taskstate_event e;

		if (!is_sane(t, &a->events.v[i], now)) {
			a->lost++;
			continue;
		}
		if (a->events.v[i].time_ns + a->events.v[i].duration_ns < s->start_mono_ns)
			continue; /* other collectors needed time before the recording could begin */
		e = translate(s, t, &a->events.v[i]);
		if (e.waker && a->events.v[i].waker_vtable < t->types.n)
			taskstate_meet(a->state, t->process, e.waker, t->types.v[a->events.v[i].waker_vtable]);
		taskstate_event(a->state, &e);
	}
	a->event_count += a->events.n;
	if (t->stacks.n > MOST_TICKETS)
		map_clear(&t->stacks);
}

/* Polls that are under way, for the series. */
static void look_at_polls(struct session *s, struct tasktarget *t)
{
	struct taskimplant_event list[MOST_POLLS];
	size_t n = taskimplant_polls(t->implant, list, ARRAY_LEN(list));
	uint64_t now = clock_mono_ns();

	for (size_t i = 0; i < n; i++) {
		struct taskstate_event e;

		if (!is_sane(t, &list[i], now))
			continue;
		e = translate(s, t, &list[i]);
		taskstate_under_way(own(s)->state, &e, e.time_ns + e.duration_ns);
	}
}

/* Polls that were under way at a moment, without those that have ended since. */
static size_t drop_ended(const struct tasks *a, struct taskimplant_event *polls, size_t n, uint64_t moment)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		bool ended = false;

		for (size_t k = 0; k < a->events.n && !ended; k++)
			ended = a->events.v[k].what == TASK_POLL && a->events.v[k].task == polls[i].task &&
				a->events.v[k].time_ns + a->events.v[k].duration_ns >= moment;
		if (!ended)
			polls[left++] = polls[i];
	}
	return left;
}

/* Reads events up to a moment, also those that threads are still writing. How many of the polls have not ended by then. */
static size_t read_rest(struct session *s, struct tasktarget *t, uint64_t end, struct taskimplant_event *polls, size_t n)
{
	for (int i = 0; i < LAST_EVENTS_MS; i++) {
		bool last = taskimplant_until(t->implant) >= end;

		read_events(s, t);
		see_events(s, t);
		n = drop_ended(own(s), polls, n, end);
		if (last)
			break;
		usleep(1000);
	}
	return n;
}

/* The process executed another program, or has ended. */
static void end_target(struct session *s, struct tasktarget *t)
{
	read_rest(s, t, clock_mono_ns(), NULL, 0);
	own(s)->lost += taskimplant_lost(t->implant);
	taskstate_end_process(own(s)->state, t->process, collector_time_ns(s, clock_mono_ns()));
	tasktarget_leave(t);
}

static void step(struct session *s)
{
	struct tasks *a = own(s);
	uint64_t began = clock_thread_cpu_ns(), now = clock_mono_ns(), until = now;

	a->begun = true;
	if (now < a->read_ns + STEP_MS * 1000000ULL / 2)
		return;
	a->read_ns = now;
	for (size_t i = 0; i < a->targets.n; i++) {
		struct tasktarget *t = &a->targets.v[i];

		try_again(s, t);
		if (!t->implant)
			continue;
		read_events(s, t);
		see_events(s, t);
		until = MIN(until, taskimplant_until(t->implant));
	}
	taskstate_until(a->state, collector_time_ns(s, until));
	if (taskpace_look(&a->pace, now, a->stacks + a->stacks_lost))
		for (size_t i = 0; i < a->targets.n; i++)
			if (a->targets.v[i].implant)
				taskimplant_set_interval(a->targets.v[i].implant, a->pace.interval_ns, NULL);
	a->own_ns += clock_thread_cpu_ns() - began;
}

/* --- records of the programs --- */

static void record_wake(struct session *s, const struct shared_task_wake *r)
{
	struct tasktarget *t = target_of(own(s), r->pid);
	uint32_t stack = r->stack ? bpfengine_stack(s->engine, r->stack) : PROFILE_NONE;

	if (t && stack != PROFILE_NONE)
		*map_put(&t->stacks, r->ticket, stack) = stack;
}

static void record_spawn(struct session *s, const struct shared_task_spawn *r)
{
	struct tasks *a = own(s);
	struct tasktarget *t = target_of(a, r->pid);
	uint32_t stack = r->stack ? bpfengine_stack(s->engine, r->stack) : PROFILE_NONE;
	struct taskplace *place;

	if (!t || !t->since_ns || r->place >= a->files.places.n || r->time_ns < MAX(t->since_ns, s->start_mono_ns) ||
	    (a->end_ns && r->time_ns > a->end_ns))
		return; /* its first poll is not seen */
	place = &a->files.places.v[r->place];
	if (stack != PROFILE_NONE)
		place->stack = stack;
	taskstate_spawn(a->state, t->process, place->type, processes_thread(s->processes, r->pid, r->tid, "", r->time_ns),
			collector_time_ns(s, r->time_ns), place->stack);
}

static void record(struct session *s, const void *data, size_t size)
{
	uint32_t kind = *(const uint32_t *)data;

	if (kind == RECORD_TASK_WAKE && size >= sizeof(struct shared_task_wake))
		record_wake(s, data);
	if (kind == RECORD_TASK_SPAWN && size >= sizeof(struct shared_task_spawn))
		record_spawn(s, data);
}

/* --- once a second --- */

/* Asks the process which of its silent tasks have finished. */
static void look_at_silent(struct session *s, struct tasktarget *t, bool all)
{
	_cleanup_free_ struct taskstate_silent *silent = NULL;
	_cleanup_free_ struct taskimplant_task *tasks = NULL;
	size_t n = taskstate_ask(own(s)->state, t->process, collector_time_ns(s, clock_mono_ns()), all, &silent);

	tasks = mem_resize(NULL, n + 1, sizeof(*tasks));
	for (size_t i = 0; i < n; i++)
		tasks[i] = (struct taskimplant_task){ .task = silent[i].task, .header = silent[i].header, .vtable = silent[i].vtable };
	taskimplant_look(t->implant, tasks, n);
	for (size_t i = 0; i < n; i++)
		silent[i].finished = tasks[i].life == TASK_FINISHED;
	taskstate_answer(own(s)->state, silent, n);
}

/* Probes that are passed too often would take a large part of the program's time. */
static void calm_down(struct session *s, uint64_t now)
{
	struct tasks *a = own(s);
	struct shared_task_counts c = { 0 };
	double seconds = a->spawn_ns ? (now - a->spawn_ns) / 1e9 : 0;

	if (a->files.given_up || !bpfengine_sum(bpfengine_skeleton(s->engine)->maps.task_counts, 0, &c, sizeof(c)))
		return;
	if (seconds > 0 && (c.spawns - a->spawn_hits) / seconds > MOST_SPAWNS) {
		a->files.given_up = true;
		taskfiles_detach(&a->files);
		taskstate_stop_counting(a->state);
		log_warn("tasks are spawned too often for that to be told (%.0f times a second, %d is the most): where they are spawned "
			 "is recorded up to here", (c.spawns - a->spawn_hits) / seconds, MOST_SPAWNS);
	}
	a->spawn_hits = c.spawns;
	a->spawn_ns = now;
}

static void tick(struct session *s, uint64_t now)
{
	struct tasks *a = own(s);
	uint64_t began = clock_thread_cpu_ns();

	for (size_t i = 0; i < a->targets.n; i++) {
		struct tasktarget *t = &a->targets.v[i];

		if (t->implant && taskimplant_gone(t->implant)) {
			bool replaced = taskimplant_replaced(t->implant);

			end_target(s, t);
			if (!replaced)
				continue;
			profile_count(s->profile, KEY_TASK_EXECS, 1);
			t->tries = FIND_TRIES;
		}
		if (!t->implant)
			continue;
		look_at_polls(s, t);
		look_at_silent(s, t, false);
		tasktarget_look(s, t, &a->files, a->state);
		taskfiles_attach(&a->files, s, a->state);
	}
	calm_down(s, now);
	taskstate_count(a->state);
	a->own_ns += clock_thread_cpu_ns() - began;
}

/* Processes that were found later are entered soon. */
static void joined(struct session *s)
{
	struct proc_ids ids = { 0 };

	processes_mains(s->processes, &ids);
	for (size_t i = 0; i < ids.list.n; i++)
		if (!target_of(own(s), ids.list.v[i]))
			vec_push(&own(s)->targets, (struct tasktarget){ .pid = ids.list.v[i], .tries = FIND_TRIES });
	vec_done(&ids.list);
}

/* --- the end --- */

/* Polls that are under way end with the recording. */
static void end_polls(struct session *s, struct tasktarget *t, const struct taskimplant_event *list, size_t n, uint64_t end)
{
	for (size_t i = 0; i < n; i++) {
		struct taskimplant_event poll = list[i];
		struct taskstate_event e;

		poll.duration_ns = end > poll.time_ns ? end - poll.time_ns : 0;
		if (!is_sane(t, &poll, end))
			continue;
		e = translate(s, t, &poll);
		taskstate_event(own(s)->state, &e);
	}
}

/* Polls that were under way when the hooks of a target were switched off. */
struct ending {
	struct taskimplant_event polls[MOST_POLLS];
	size_t n;
};

/* All targets end at one moment, and what they wrote by then is read after that. Targets that are gone have ended before. */
static void end_recording(struct session *s)
{
	struct tasks *a = own(s);
	struct ending *list = mem_resize(NULL, a->targets.n + 1, sizeof(*list));

	a->end_ns = clock_mono_ns();
	for (size_t i = 0; i < a->targets.n; i++) {
		struct tasktarget *t = &a->targets.v[i];

		if (t->implant && taskimplant_gone(t->implant))
			end_target(s, t);
		if (!t->implant)
			continue;
		list[i].n = taskimplant_polls(t->implant, list[i].polls, MOST_POLLS);
		taskimplant_deactivate(t->implant);
	}
	taskfiles_detach(&a->files);
	bpfengine_drain(s->engine);
	for (size_t i = 0; i < a->targets.n; i++) {
		struct tasktarget *t = &a->targets.v[i];

		if (!t->implant)
			continue;
		list[i].n = read_rest(s, t, a->end_ns, list[i].polls, list[i].n);
		end_polls(s, t, list[i].polls, list[i].n, a->end_ns);
		look_at_silent(s, t, true);
	}
	free(list);
	taskstate_finish(a->state, collector_time_ns(s, a->end_ns));
}

/* Of the first file that has one; "": none says it. */
static const char *version_of(const struct tasks *a)
{
	for (size_t i = 0; i < a->files.list.n; i++)
		if (a->files.list.v[i]->program.count && *a->files.list.v[i]->program.version)
			return a->files.list.v[i]->program.version;
	return "";
}

static void note_counts(struct session *s)
{
	struct tasks *a = own(s);
	struct profile *p = s->profile;
	struct shared_task_counts c = { 0 };
	size_t vtables = 0;

	bpfengine_sum(bpfengine_skeleton(s->engine)->maps.task_counts, 0, &c, sizeof(c));
	for (size_t i = 0; i < a->files.list.n; i++)
		vtables += a->files.list.v[i]->program.count;
	profile_count_set(p, KEY_TASK_VTABLES, vtables);
	profile_count_set(p, KEY_TASK_VERSION, tokio_version_number(version_of(a)));
	profile_count_set(p, KEY_TASK_LOST, a->lost);
	profile_count_set(p, KEY_TASK_STACKS, a->stacks);
	profile_count_set(p, KEY_TASK_STACKS_LOST, a->stacks_lost + c.lost);
	profile_count_set(p, KEY_TASK_SPAWN_HITS, c.spawns);
	profile_count_set(p, KEY_TASK_INTERVAL_NS, a->pace.interval_ns);
}

static void say_what_was_seen(const struct tasks *a)
{
	struct taskstate_totals x = taskstate_totals(a->state);
	char tasks[32], polls[32], wakes[32];

	log_info("%s task%s of %" PRIu64 " type%s (tokio%s%s): %s polls, %s wake-ups", str_count(tasks, x.tasks), x.tasks == 1 ? "" : "s",
		 x.types, x.types == 1 ? "" : "s", *version_of(a) ? " " : "", version_of(a), str_count(polls, x.polls),
		 str_count(wakes, x.wakes));
	if (a->lost)
		log_warn("%" PRIu64 " polls and wake-ups of tasks found no room in the rings of their threads: figures of tasks are too "
			 "small by as much", a->lost);
}

static void stop(struct session *s)
{
	struct tasks *a = own(s);
	struct err why = { 0 };

	end_recording(s);
	for (size_t i = 0; i < a->targets.n; i++) {
		if (a->targets.v[i].implant)
			a->lost += taskimplant_lost(a->targets.v[i].implant);
		tasktarget_leave(&a->targets.v[i]);
	}
	if (a->entered) {
		note_counts(s);
		say_what_was_seen(a);
	} else if (s->options->program && refuse(s, &why)) {
		log_warn("%s", why.text);
	}
	taskfiles_done(&a->files);
	taskstate_free(a->state);
	vec_done(&a->targets);
	vec_done(&a->events);
}

/* --- the budget --- */

static void thin(struct session *s, unsigned step)
{
	taskpace_thin(&own(s)->pace, step);
	bpfengine_skeleton(s->engine)->bss->task_rare = SPAWN_RARE + step;
}

static uint64_t looked_at(struct session *s)
{
	struct shared_task_counts c = { 0 };

	bpfengine_sum(bpfengine_skeleton(s->engine)->maps.task_counts, 0, &c, sizeof(c));
	return c.walked;
}

static void spent(const struct session *s, uint64_t *ret_target_ns, uint64_t *ret_own_ns, uint64_t *ret_events)
{
	*ret_events = own(s)->event_count;
	*ret_target_ns = own(s)->event_count * HOOK_NS;
	*ret_own_ns = own(s)->own_ns;
}

static const char *const programs[] = { "on_task_wake", "on_task_spawn", NULL };

const struct collector collector_task = {
	.name = "task",
	.describe = "polls, wakes and awaits of async tasks (tokio): puts hooks into the target (asked for by name only)",
	.flags = COLLECTOR_EARLY,
	.state_size = sizeof(struct tasks),
	.programs = programs,
	.prepare = prepare,
	.start = start,
	.record = record,
	.thin = thin,
	.thin_steps = 6,
	.looked_at = looked_at,
	.spent = spent,
	.step = step,
	/* No pause: the time of a task without some of its polls would be wrong. */
	.tick = tick,
	.joined = joined,
	.stop = stop,
};
