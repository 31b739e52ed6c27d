#include "collect/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "collect/choose.h"
#include "collect/collector.h"
#include "collect/bpfengine.h"
#include "collect/budget/budget.h"
#include "collect/perf/fallback.h"
#include "collect/follow.h"
#include "collect/mem/cgroupwatch.h"
#include "collect/kernel/kernelmap.h"
#include "collect/blocks/blockmarks.h"
#include "collect/process/processes.h"
#include "collect/promise.h"
#include "collect/span/spanset.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/host.h"
#include "target/hurry.h"
#include "target/proc.h"

enum { AWAY_MS = 20 /* a program that comes back is wanted from its start */ };

/* Honest files are read in less; what is not ready then comes while the recording goes on. */
#define OPEN_PATIENCE_NS 10000000000ULL

static volatile sig_atomic_t interrupted, pause_wanted, check_wanted;

void session_interrupt(void)
{
	interrupted = 1;
}

void session_pause(bool pause)
{
	pause_wanted = pause;
}

void session_check_soon(void)
{
	check_wanted = 1;
}

const char *session_collector(size_t i, const char **ret_describe)
{
	if (i >= COLLECTOR_COUNT)
		return NULL;
	*ret_describe = collector_table[i]->describe;
	return collector_table[i]->name;
}

bool session_has_bpf(const struct session *s)
{
	return s->engine != NULL;
}

uint64_t session_start_ns(const struct session *s)
{
	return s->start_mono_ns;
}

bool session_records(const struct session *s, const char *name)
{
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		if (s->chosen[i] && !strcmp(collector_table[i]->name, name))
			return true;
	return false;
}

static int open_bpf(struct session *s, struct err *err)
{
	struct host host;
	int r;

	host_probe(&host);
	r = promise_machine(&host, err);
	if (r < 0)
		return r;
	r = bpfengine_open(s, &s->engine, err);
	if (r < 0)
		return r;
	return bpfengine_follow(s->engine, err);
}

/* BPF where it can be had, else the fallback; says which and why. */
static int choose_backend(struct session *s, struct err *err)
{
	struct err why = { 0 };
	int r;

	if (s->options->backend != SESSION_PERF) {
		r = open_bpf(s, &why);
		if (r >= 0)
			return 0;
		bpfengine_close(s->engine);
		s->engine = NULL;
		if (s->options->backend == SESSION_BPF) {
			if (err)
				*err = why;
			return r;
		}
	}
	if (s->options->function_count)
		return err_set(err, ENOTSUP, "--mark-function needs BPF%s%s", *why.text ? ": " : "", why.text);
	r = choose_without_bpf(s, why.text, err);
	if (r < 0)
		return r;
	if (s->options->follow)
		return err_set(err, ENOTSUP, "--follow needs BPF%s%s", *why.text ? ": " : "", why.text);
	if (*why.text)
		log_info("Recording without BPF: %s.", why.text);
	return fallback_open(s, &s->fallback, err);
}

static void describe_machine(struct profile *p)
{
	struct utsname u;

	if (uname(&u))
		return;
	p->host = profile_string(p, u.nodename);
	p->kernel = profile_string(p, u.release);
}

/* The files that nearly every program maps first: their tables are ready when it starts. */
static void prepare_program(struct session *s)
{
	struct proc_maps maps = { 0 };

	processes_prepare(s->processes, s->options->program);
	if (proc_maps_read(getpid(), true, &maps) < 0)
		return;
	for (size_t i = 0; i < maps.list.n; i++)
		if (strstr(maps.list.v[i].path, "/libc.so") || strstr(maps.list.v[i].path, "/ld-linux"))
			processes_prepare(s->processes, maps.list.v[i].path);
	proc_maps_done(&maps);
}

static void look_after_ourselves(void)
{
	if (hurry_look())
		log_warn(HURRY_WORDS);
}

/* Reading the targets' files takes as long as setting up BPF: both go on at the same time. */
static void foresee_targets(struct session *s)
{
	s->processes = processes_new(s->profile, !s->options->no_cache);
	if (s->options->program)
		prepare_program(s);
	for (size_t i = 0; i < s->options->pid_count && !s->options->program; i++)
		processes_foresee(s->processes, s->options->pids[i]);
}

static int add_targets(struct session *s, struct err *err)
{
	size_t added = 0;
	int r = 0;

	for (size_t i = 0; i < s->options->pid_count; i++) {
		r = processes_add(s->processes, s->options->pids[i], s->options->program != NULL, err);
		added += r >= 0;
	}
	if (added && !processes_settle(s->processes, OPEN_PATIENCE_NS))
		log_warn("some of the target's files take long to read: stacks through them are cut off until then");
	return added ? 0 : r;
}

int session_open(const struct session_options *options, struct profile *p, struct worker *w,
		 struct session **ret, struct err *err)
{
	struct session *s = mem_alloc(sizeof(*s));
	struct spanset functions; /* only to be checked */
	int r;

	s->options = options;
	s->profile = p;
	s->worker = w;
	s->hz = options->hz;
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		s->state[i] = mem_alloc(collector_table[i]->state_size);
	interrupted = pause_wanted = check_wanted = 0;
	look_after_ourselves();
	describe_machine(p);
	r = spanset_make(&functions, options->functions, options->function_count, false, err);
	spanset_done(&functions);
	if (r >= 0 && options->marks)
		r = blockmarks_open(options->marks, &s->mark, err);
	if (r >= 0)
		r = choose_collectors(s, err);
	if (r >= 0) {
		foresee_targets(s);
		r = choose_backend(s, err);
	}
	look_after_ourselves();
	if (r >= 0) {
		s->kernel = kernelmap_new(p);
		if (s->engine)
			bpfengine_show_programs(s->engine, s->kernel);
		if (s->engine)
			processes_set_sink(s->processes, &bpfengine_sink, s->engine);
		else
			processes_set_sink(s->processes, &fallback_sink, s->fallback);
		processes_set_finds_young(s->processes, s->engine && bpfengine_finds_young());
		r = add_targets(s, err);
		look_after_ourselves();
		s->groups = cgroupwatch_new(s);
		s->budget = budget_new(s);
	}
	if (r < 0) {
		session_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

static int start_collector(struct session *s, size_t i, struct err *err)
{
	s->running[i] = true;
	s->record[i] = collector_table[i]->record;
	return collector_table[i]->start(s, err);
}

/* Records that are still sent to the collector, while another one drains the ring, are dropped. */
static void stop_collector(struct session *s, size_t i)
{
	collector_table[i]->stop(s);
	s->running[i] = false;
	s->record[i] = NULL;
}

/* Without BPF the clock and the waits are the fallback's, and what only reads goes on. */
static int start_collectors(struct session *s, bool early, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < COLLECTOR_COUNT && r >= 0; i++) {
		unsigned flags = collector_table[i]->flags;

		if (s->chosen[i] && (s->engine || flags & COLLECTOR_READS) && !(flags & COLLECTOR_EARLY) == !early)
			r = start_collector(s, i, err);
	}
	return r;
}

/* Those that nobody named, and that are left out without BPF. */
static void tell_absent(struct session *s)
{
	for (size_t i = 0; i < COLLECTOR_COUNT; i++) {
		const struct collector *c = collector_table[i];

		if (c->absent && !s->chosen[i] && c->beside && c->beside(s->options))
			c->absent(s);
	}
}

int session_start(struct session *s, struct err *err)
{
	int r;

	tell_absent(s);
	collector_begin(s);
	cgroupwatch_begin(s->groups);
	s->follow = follow_new(s);
	r = start_collectors(s, true, err);
	if (r >= 0)
		r = start_collectors(s, false, err);
	if (r >= 0 && s->fallback)
		r = fallback_start(s->fallback, err);
	/* Once more: what was before the collectors saw anything is not in their figures either. */
	cgroupwatch_begin(s->groups);
	if (r >= 0)
		budget_start(s->budget);
	if (r >= 0 && s->options->ready)
		s->options->ready(s->options->ready_context, s);
	/* Last: what the log says before the recording begins has no place in it. */
	return r >= 0 && s->mark ? blockmarks_start(s->mark, err) : r;
}

static int poll_backend(struct session *s, int timeout_ms)
{
	return s->engine ? bpfengine_poll(s->engine, timeout_ms) : fallback_poll(s->fallback, timeout_ms);
}

static void apply_pause(struct session *s)
{
	bool pause = pause_wanted;

	if (pause == s->paused)
		return;
	s->paused = pause;
	if (s->fallback)
		fallback_pause(s->fallback, pause);
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		if (s->running[i] && collector_table[i]->pause)
			collector_table[i]->pause(s, pause);
}

static void show_progress(struct session *s, uint64_t now)
{
	double seconds = (now - s->start_mono_ns) / 1e9;
	const char *how = s->paused ? ", paused" : follow_is_away(s->follow) ? ", not running" : "";

	if (s->options->progress)
		s->options->progress(s->options->progress_context, how);
	else if (s->options->duration_ns)
		log_progress("recording: %.0f of %.0f s (Ctrl-C ends early and keeps everything)%s", seconds,
			     s->options->duration_ns / 1e9, how);
	else
		log_progress("recording: %.0f s (Ctrl-C ends)%s", seconds, how);
}

static uint64_t pace_of(const struct session *s)
{
	return s->options->pace_ns ? s->options->pace_ns : 1000000000;
}

/* Tasks of about once a second. */
static bool look_around(struct session *s, uint64_t now)
{
	check_wanted = 0;
	s->next_second_ns = now + pace_of(s);
	show_progress(s, now);
	if (!follow_look(s->follow, now, processes_check_alive(s->processes, now)))
		return false;
	cgroupwatch_look(s->groups);
	budget_look(s->budget, now);
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		if (s->running[i] && collector_table[i]->tick)
			collector_table[i]->tick(s, now);
	return true;
}

enum session_end session_step(struct session *s, int timeout_ms)
{
	uint64_t now;

	if (interrupted)
		return SESSION_END_INTERRUPT;
	look_after_ourselves();
	poll_backend(s, s->step_ms ? MIN(timeout_ms, s->step_ms) : timeout_ms);
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		if (s->running[i] && collector_table[i]->step)
			collector_table[i]->step(s);
	apply_pause(s);
	if (s->mark)
		blockmarks_step(s->mark, s->profile, s->start_mono_ns);
	now = clock_mono_ns();
	if (s->options->look)
		s->options->look(s->options->look_context, now - s->start_mono_ns);
	if (!s->next_second_ns)
		s->next_second_ns = now + pace_of(s);
	if ((now >= s->next_second_ns || processes_changed(s->processes)) && s->options->tick &&
	    s->options->tick(s->options->tick_context, s->profile) < 0)
		return SESSION_END_TICK;
	if ((now >= s->next_second_ns || check_wanted || (s->follow && processes_ended(s->processes))) &&
	    !look_around(s, now))
		return SESSION_END_GONE;
	follow_step(s->follow, now);
	return SESSION_GOES_ON;
}

int session_started(struct session *s, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < COLLECTOR_COUNT && !r; i++)
		if (s->running[i] && collector_table[i]->started)
			r = collector_table[i]->started(s, err);
	return r;
}

enum session_end session_loop(struct session *s)
{
	uint64_t end = s->options->duration_ns ? s->start_mono_ns + s->options->duration_ns : UINT64_MAX;
	uint64_t now = clock_mono_ns();
	enum session_end why = SESSION_GOES_ON;

	for (; why == SESSION_GOES_ON; now = clock_mono_ns()) {
		uint64_t left = end - now;

		if (now >= end)
			return interrupted ? SESSION_END_INTERRUPT : SESSION_END_TIME;
		why = session_step(s, left < 100000000 ? left / 1000000 + 1 : follow_is_away(s->follow) ? AWAY_MS : 100);
	}
	return why;
}

void session_peek(struct session *s)
{
	uint64_t now = clock_mono_ns();

	s->profile->duration_ns = now - s->start_mono_ns;
	if (s->fallback)
		fallback_peek(s->fallback, now);
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		if (s->running[i] && collector_table[i]->peek)
			collector_table[i]->peek(s, now);
}

static void note_counters(struct session *s, struct profile *p)
{
	if (s->engine) {
		profile_count_set(p, KEY_BPF_MISSED, bpfengine_missed(s->engine));
		profile_count_set(p, KEY_PROCESSES_NO_ROOM, bpfengine_full(s->engine));
	}
	if (s->fallback) {
		profile_count(p, KEY_SAMPLES_LOST, fallback_lost(s->fallback));
		if (s->chosen[COLLECTOR_wait])
			profile_count(p, KEY_WAITS_LOST, fallback_waits_lost(s->fallback));
		profile_count_set(p, KEY_NO_KERNEL_STACKS, !fallback_kernel(s->fallback));
	}
	profile_count_set(p, KEY_SAMPLE_HZ_ASKED, s->options->hz);
	profile_count_set(p, KEY_SAMPLE_HZ, s->hz);
	/* Processes that came and went between two looks are in the samples only. */
	profile_count_set(p, KEY_TARGET_CPU_NS, MAX(processes_cpu_ns(s->processes), s->sampled_ns));
	for (int i = 1; i < REASON_COUNT; i++)
		if (s->reasons[i])
			profile_count_set_of(p, KEY_TRUNCATED_OF, shared_reason_names[i], s->reasons[i]);
}

void session_tally(struct session *s, struct profile *to)
{
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		if (s->running[i] && collector_table[i]->tally)
			collector_table[i]->tally(s, to);
	budget_tally(s->budget, to);
	note_counters(s, to);
}

void session_files(const struct session *s, void (*take)(void *context, uint32_t module, int fd), void *context)
{
	processes_copy_files(s->processes, take, context);
}

void session_finish(struct session *s, void (*take)(void *context, uint32_t module, int fd), void *context)
{
	uint64_t now = clock_mono_ns();

	processes_check_alive(s->processes, now); /* what they used since the last look is a base of the budget */
	budget_finish(s->budget, now);
	pause_wanted = true;
	apply_pause(s);
	s->profile->duration_ns = now - s->start_mono_ns;
	cgroupwatch_look(s->groups);
	if (s->fallback)
		fallback_finish(s->fallback, now);
	else
		bpfengine_drain(s->engine);
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		if (s->running[i])
			stop_collector(s, i);
	follow_finish(s->follow, now);
	if (s->mark)
		blockmarks_finish(s->mark, s->profile, s->start_mono_ns);
	processes_finish(s->processes, now);
	note_counters(s, s->profile);
	processes_hand_over(s->processes, take, context);
}

struct kallsyms *session_take_symbols(struct session *s)
{
	return kernelmap_take_symbols(s->kernel);
}

void session_close(struct session *s)
{
	if (!s)
		return;
	blockmarks_close(s->mark);
	budget_free(s->budget);
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		if (collector_table[i]->close)
			collector_table[i]->close(s);
	follow_free(s->follow);
	kernelmap_free(s->kernel);
	cgroupwatch_free(s->groups);
	processes_free(s->processes);
	bpfengine_close(s->engine);
	fallback_close(s->fallback);
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		free(s->state[i]);
	free(s);
}
