#include "collect/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/text/str.h"
#include "collect/collector.h"
#include "collect/engine.h"
#include "collect/event/eventset.h"
#include "collect/perf/fallback.h"
#include "collect/follow.h"
#include "collect/mem/groupwatch.h"
#include "collect/kernelmap.h"
#include "collect/blocks/mark.h"
#include "collect/process/processes.h"
#include "collect/span/spanset.h"
#include "profile/profile.h"
#include "target/trace/eventspec.h"
#include "target/host.h"
#include "target/hurry.h"
#include "target/proc.h"

enum { EVENTS_FILE_LIMIT = 4 << 20, AWAY_MS = 20 /* a program that comes back is wanted from its start */ };

/* The table of collectors. */
const struct collector *const session_collectors[] = { &collector_wait, &collector_cpu, &collector_io,
						       &collector_fault, &collector_alloc, &collector_heap,
						       &collector_mem, &collector_hw, &collector_span, &collector_event,
						       NULL };
/* Honest files are read in less; what is not ready then comes while the recording goes on. */
#define OPEN_PATIENCE_NS 10000000000ULL
enum { COLLECTORS = ARRAY_LEN(session_collectors) };

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
	if (i + 1 >= COLLECTORS)
		return NULL;
	*ret_describe = session_collectors[i]->describe;
	return session_collectors[i]->name;
}

const char *const shared_reason_names[REASON_COUNT] = {
	[REASON_COMPLETE] = "complete",
	[REASON_NO_MAPPING] = "address in no known mapping",
	[REASON_NO_TABLE_YET] = "unwind table not ready yet",
	[REASON_NO_RULE] = "no unwind information there",
	[REASON_UNSUPPORTED] = "unwind rule not supported",
	[REASON_LOST_REGISTER] = "register not known there",
	[REASON_BAD_STACK] = "stack memory not readable",
	[REASON_NOT_RISING] = "stack does not rise",
	[REASON_FRAME_POINTER] = "no table and no frame pointer",
	[REASON_TOO_DEEP] = "deeper than the limit",
	[REASON_NO_REGISTERS] = "no user registers",
	[REASON_ENDING] = "the thread was ending",
	[REASON_DUMP_SHORT] = "deeper than the stack dump",
};

bool session_has_bpf(const struct session *s)
{
	return s->engine != NULL;
}

bool session_records(const struct session *s, const char *name)
{
	for (size_t i = 0; s->collectors[i]; i++)
		if (!strcmp(s->collectors[i]->name, name))
			return true;
	return false;
}

static int unknown_collector(const char *name, struct err *err)
{
	struct buf all = { 0 };
	int r;

	for (size_t i = 0; session_collectors[i]; i++)
		buf_printf(&all, "%s%s", i ? ", " : "", session_collectors[i]->name);
	r = err_set(err, EINVAL, "there is no collector or event '%s'; there are: %s, and events (gasflame events lists them)",
		    name, all.data);
	buf_done(&all);
	return r;
}

struct choice {
	struct session *session;
	const char *file; /* that the words come from, NULL = the command line */
	bool chosen[COLLECTORS];
};

/* A collector, or an event, which is for the event collector. */
static int choose_word(void *context, const char *word, unsigned line, struct err *err)
{
	struct choice *c = context;
	_cleanup_free_ char *where = c->file ? mem_printf("%s, line %u: ", c->file, line) : mem_strdup("");
	size_t i = 0;
	int r;

	while (session_collectors[i] && strcmp(session_collectors[i]->name, word))
		i++;
	if (session_collectors[i] && session_collectors[i] != &collector_event) {
		c->chosen[i] = true;
		return 0;
	}
	if (session_collectors[i])
		return err_set(err, EINVAL, "%ssay which event: -e GROUP:NAME (gasflame events lists them)", where);
	if (!eventset_is_event(word)) {
		r = unknown_collector(word, err);
		return c->file ? err_prefix(err, "%s, line %u", c->file, line) : r;
	}
	for (i = 0; session_collectors[i] != &collector_event; i++)
		;
	c->chosen[i] = true;
	if (!c->session->events)
		c->session->events = eventset_new();
	return eventset_add(c->session->events, word, where, err);
}

static int choose_from_file(struct choice *c, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t n;
	int r = fd_read_path(c->file, EVENTS_FILE_LIMIT, &text, &n);

	if (r < 0)
		return err_errno(err, -r, "cannot read the list of events %s", c->file);
	r = eventspec_parse_file(text, n, choose_word, c, err);
	/* The parser knows lines, not files. */
	return r < 0 && err && str_starts(err->text, "line ") ? err_prefix(err, "%s", c->file) : r;
}

/* The collectors of "cpu,wait" and of --events, in the order of the table. */
static int choose_collectors(struct session *s, const char *what, struct err *err)
{
	_cleanup_free_ char *copy = mem_strdup(what);
	struct choice c = { .session = s };
	char *save = NULL;
	bool any = false;
	size_t n = 0;
	int r = 0;

	for (char *name = strtok_r(copy, ",", &save); r >= 0 && name; name = strtok_r(NULL, ",", &save))
		r = choose_word(&c, name, 0, err);
	c.file = s->options->events_file;
	if (r >= 0 && c.file)
		r = choose_from_file(&c, err);
	if (r < 0)
		return r;
	_Static_assert(COLLECTORS <= ARRAY_LEN(s->collectors), "room for all of them");
	/* Without a single event that this kernel has, the rest is recorded, if there is a rest. */
	for (size_t i = 0; session_collectors[i]; i++) {
		if (session_collectors[i] == &collector_event && s->events && !s->events->sources.n)
			c.chosen[i] = false;
		any |= c.chosen[i];
	}
	/* Spans only beside something. */
	for (size_t i = 0; any && session_collectors[i]; i++)
		if (c.chosen[i] || (session_collectors[i] == &collector_span && (s->options->function_count || s->options->listen)))
			s->collectors[n++] = session_collectors[i];
	if (n)
		return 0;
	if (s->events)
		return err_set(err, ENOENT,
			       "none of the events asked for is there: gasflame events lists those that are");
	return c.file ? err_set(err, EINVAL, "%s names no event", c.file) :
			err_set(err, EINVAL, "say what to record with -e: cpu, for example");
}

static int open_bpf(struct session *s, struct err *err)
{
	struct host host;
	int r;

	host_probe(&host);
	if (host.major < 5 || (host.major == 5 && host.minor < 15))
		return err_set(err, ENOSYS, "kernel %s is older than 5.15, which BPF unwinding needs", host.release);
	if (!host.btf)
		return err_set(err, ENOSYS,
			       "this kernel has no BTF (/sys/kernel/btf/vmlinux; CONFIG_DEBUG_INFO_BTF), which BPF "
			       "programs need");
	if (host.own_pids)
		return err_set(err, ENOTSUP, "gasflame runs in a pid namespace of its own, and the kernel counts in the machine's pids%s",
			       host.container ? " (start this container with --pid=host)" : "");
	r = engine_open(s, &s->engine, err);
	if (r < 0)
		return r;
	return engine_follow(s->engine, err);
}

static void leave_out(struct session *s, const struct collector *c)
{
	size_t n = 0;

	for (size_t i = 0; s->collectors[i]; i++)
		if (s->collectors[i] != c)
			s->collectors[n++] = s->collectors[i];
	s->collectors[n] = NULL;
}

/* BPF where it can be had, else the fallback; says which and why. */
static int choose_backend(struct session *s, struct err *err)
{
	struct err why = { 0 };

	if (s->options->backend != SESSION_PERF) {
		int r = open_bpf(s, &why);

		if (r >= 0)
			return 0;
		engine_close(s->engine);
		s->engine = NULL;
		if (s->options->backend == SESSION_BPF) {
			if (err)
				*err = why;
			return r;
		}
	}
	if (s->options->function_count)
		return err_set(err, ENOTSUP, "--mark-function needs BPF%s%s", *why.text ? ": " : "", why.text);
	if (s->options->listen)
		leave_out(s, &collector_span);
	if (s->options->what_default) {
		s->collectors[0] = &collector_cpu;
		s->collectors[1] = NULL;
	}
	for (size_t i = 0; s->collectors[i]; i++)
		if (s->collectors[i] != &collector_cpu && !s->collectors[i]->only_reads)
			return err_set(err, ENOTSUP, "-e %s needs BPF%s%s", s->collectors[i]->name, *why.text ? ": " : "",
				       why.text);
	if (s->collectors[0] == &collector_mem)
		return err_set(err, ENOTSUP, "-e mem alone needs BPF here%s%s; `gasflame mem -d 30 -o FILE` does not",
			       *why.text ? ": " : "", why.text);
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

static int add_targets(struct session *s, struct err *err)
{
	size_t added = 0;
	int r = 0;

	for (size_t i = 0; i < s->options->pid_count; i++) {
		r = processes_add(s->processes, s->options->pids[i], s->options->program != NULL, err);
		added += r >= 0;
	}
	if (added && s->options->program)
		prepare_program(s);
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
	interrupted = pause_wanted = check_wanted = 0;
	look_after_ourselves();
	describe_machine(p);
	r = spanset_make(&functions, options->functions, options->function_count, false, err);
	spanset_done(&functions);
	if (r >= 0 && options->marks)
		r = mark_open(options->marks, &s->mark, err);
	if (r >= 0)
		r = choose_collectors(s, options->what, err);
	if (r >= 0)
		r = choose_backend(s, err);
	look_after_ourselves();
	if (r >= 0) {
		s->kernel = kernelmap_new(p);
		s->processes = s->engine ? processes_new(p, &engine_sink, s->engine)
					 : processes_new(p, &fallback_sink, s->fallback);
		r = add_targets(s, err);
		look_after_ourselves();
		s->groups = groupwatch_new(s);
	}
	if (r < 0) {
		session_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

void session_add_cpu_event(struct session *s)
{
	char describe[64];

	snprintf(describe, sizeof(describe), "CPU time, sampled at %u Hz", (unsigned)s->hz);
	s->cpu_event = profile_add_event(s->profile, "cpu", "ns", describe, 1000000000 / s->hz);
}

void session_begin(struct session *s)
{
	s->start_mono_ns = clock_mono_ns();
	s->profile->start_wall_ns = clock_wall_ns();
	processes_set_start(s->processes, s->start_mono_ns);
}

/* Without BPF the clock is the fallback's, and what only reads goes on. */
static bool runs(const struct session *s, size_t i)
{
	return s->engine || s->collectors[i]->only_reads;
}

/* Those whose start was called, a bit each, are all that there are: nothing else of them is called of the others. */
static void forget_unstarted(struct session *s, uint64_t started)
{
	size_t n = 0;

	for (size_t i = 0; s->collectors[i]; i++)
		if (started >> i & 1)
			s->collectors[n++] = s->collectors[i];
	s->collectors[n] = NULL;
}

int session_start(struct session *s, struct err *err)
{
	uint64_t started = 0;
	int r = 0;

	session_begin(s);
	groupwatch_begin(s->groups);
	s->follow = follow_new(s);
	for (int early = 1; early >= 0; early--)
		for (size_t i = 0; s->collectors[i] && r >= 0; i++)
			if (runs(s, i) && s->collectors[i]->early == early) {
				started |= 1ULL << i;
				r = s->collectors[i]->start(s, err);
			}
	if (r < 0)
		forget_unstarted(s, started);
	if (r >= 0 && s->fallback)
		r = fallback_start(s->fallback, err);
	/* Once more: what was before the collectors saw anything is not in their figures either. */
	groupwatch_begin(s->groups);
	if (r >= 0 && s->options->ready)
		s->options->ready(s->options->ready_context, s);
	/* Last: what the log says before the recording begins has no place in it. */
	return r >= 0 && s->mark ? mark_start(s->mark, err) : r;
}

uint32_t session_intern_stack(struct session *s, const struct shared_record *r, const uint64_t *frames)
{
	struct profile *p = s->profile;
	uint32_t stack = 0;

	if (r->reason != REASON_COMPLETE && r->reason < REASON_COUNT)
		stack = profile_stack(p, 0, profile_truncation_frame(p, shared_reason_names[r->reason]));
	for (int i = r->user_count - 1; i >= 0; i--) {
		uint32_t module = processes_module(s->processes, SHARED_FRAME_MODULE(frames[i]));

		stack = profile_stack(p, stack, profile_frame(p, module, FRAME_USER,
							      SHARED_FRAME_ADDRESS(frames[i])));
	}
	frames += r->user_count;
	for (int i = r->kernel_count - 1; i >= 0; i--)
		stack = profile_stack(p, stack, kernelmap_frame(s->kernel, frames[i] - (i ? 1 : 0)));
	return stack;
}

void session_cpu_sample(struct session *s, const struct shared_record *r, uint32_t stack)
{
	char name[sizeof(r->name)];

	snprintf(name, sizeof(name), "%.15s", r->name); /* "": not known, without BPF */
	s->sampled_ns += r->value;
	if (r->reason < REASON_COUNT)
		s->reasons[r->reason]++;
	profile_add_sample(s->profile,
		&(struct profile_sample){ .event = s->cpu_event, .value = r->value, .stack = stack,
					  .time_ns = r->time_ns > s->start_mono_ns ? r->time_ns - s->start_mono_ns : 0,
					  .thread = processes_thread(s->processes, r->pid, r->tid, name,
								     r->time_ns) });
}

static int poll_backend(struct session *s, int timeout_ms)
{
	return s->engine ? engine_poll(s->engine, timeout_ms) : fallback_poll(s->fallback, timeout_ms);
}

static void set_hz(struct session *s, uint64_t hz)
{
	s->hz = hz;
	if (s->fallback)
		fallback_set_hz(s->fallback, hz);
	for (size_t i = 0; s->engine && s->collectors[i]; i++)
		s->collectors[i]->set_hz(s, hz);
}

static void apply_pause(struct session *s)
{
	bool pause = pause_wanted;

	if (pause == s->paused)
		return;
	s->paused = pause;
	if (s->fallback)
		fallback_pause(s->fallback, pause);
	for (size_t i = 0; s->engine && s->collectors[i]; i++)
		s->collectors[i]->pause(s, pause);
}

/* What recording has cost so far: our own CPU time and that of our BPF programs. */
static uint64_t cost_ns(struct session *s)
{
	uint64_t ns = 0, runs;

	if (s->engine)
		engine_cost(s->engine, &ns, &runs);
	return ns + clock_process_cpu_ns();
}

/* Lowers the rate when the last second cost more than allowed, by as much as it was too much. */
static void govern(struct session *s, uint64_t now)
{
	struct session_governor *g = &s->governor, was = *g;
	double spent, base, percent;
	uint64_t hz;

	*g = (struct session_governor){ cost_ns(s), processes_cpu_ns(s->processes), now };
	if (!s->options->max_overhead || !was.time_ns || s->hz <= 1)
		return;
	spent = g->cost_ns - was.cost_ns;
	/* Of the target's CPU time, or of one CPU where it uses less. */
	base = MAX(g->target_ns - was.target_ns, g->time_ns - was.time_ns);
	percent = 100 * spent / base;
	if (percent <= s->options->max_overhead)
		return;
	hz = MAX(1, (uint64_t)(s->hz * s->options->max_overhead / percent * 0.9));
	if (hz >= s->hz)
		return;
	log_warn("recording costs %.2f %% of the target's CPU time, more than the %.2f %% allowed: lowering the rate "
		 "from %u to %u Hz", percent, s->options->max_overhead, (unsigned)s->hz, (unsigned)hz);
	set_hz(s, hz);
}

static void show_progress(struct session *s, uint64_t now)
{
	double seconds = (now - s->start_mono_ns) / 1e9;
	const char *how = s->paused ? ", paused" : follow_is_away(s->follow) ? ", not running" : "";

	if (s->options->duration_ns)
		log_progress("recording: %.0f of %.0f s (Ctrl-C ends early and keeps everything)%s", seconds,
			     s->options->duration_ns / 1e9, how);
	else
		log_progress("recording: %.0f s (Ctrl-C ends)%s", seconds, how);
}

/* What is done about once a second. */
static bool look_around(struct session *s, uint64_t now)
{
	check_wanted = 0;
	s->next_second_ns = now + 1000000000;
	show_progress(s, now);
	if (!follow_look(s->follow, now, processes_check_alive(s->processes, now)))
		return false;
	groupwatch_look(s->groups);
	govern(s, now);
	for (size_t i = 0; s->collectors[i]; i++)
		if (runs(s, i) && s->collectors[i]->tick)
			s->collectors[i]->tick(s, now);
	return true;
}

enum session_end session_step(struct session *s, int timeout_ms)
{
	uint64_t now;

	if (interrupted)
		return SESSION_END_INTERRUPT;
	look_after_ourselves();
	poll_backend(s, s->step_ms ? MIN(timeout_ms, s->step_ms) : timeout_ms);
	for (size_t i = 0; s->engine && s->collectors[i]; i++)
		if (s->collectors[i]->step)
			s->collectors[i]->step(s);
	apply_pause(s);
	if (s->mark)
		mark_step(s->mark, s->profile, s->start_mono_ns);
	now = clock_mono_ns();
	if (s->options->look)
		s->options->look(s->options->look_context, now - s->start_mono_ns);
	if (!s->next_second_ns)
		s->next_second_ns = now + 1000000000;
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

	for (size_t i = 0; s->collectors[i] && !r; i++)
		if (runs(s, i) && s->collectors[i]->started)
			r = s->collectors[i]->started(s, err);
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
	for (size_t i = 0; s->engine && s->collectors[i]; i++)
		if (s->collectors[i]->peek)
			s->collectors[i]->peek(s, now);
}

static void note_counters(struct session *s)
{
	struct profile *p = s->profile;
	uint64_t ns, runs;
	char name[96];

	if (s->engine && engine_cost(s->engine, &ns, &runs)) {
		profile_count_set(p, "bpf.run_ns", ns);
		profile_count_set(p, "bpf.run_count", runs);
		profile_count_set(p, "bpf.missed", engine_missed(s->engine));
		profile_count_set(p, "processes.no room", engine_full(s->engine));
	}
	if (s->fallback) {
		profile_count(p, "samples.lost", fallback_lost(s->fallback));
		profile_count_set(p, "no kernel stacks", !fallback_kernel(s->fallback));
	}
	profile_count_set(p, "sample.hz_asked", s->options->hz);
	profile_count_set(p, "sample.hz", s->hz);
	/* Processes that came and went between two looks are in the samples only. */
	profile_count_set(p, "target.cpu_ns", MAX(processes_cpu_ns(s->processes), s->sampled_ns));
	for (int i = 1; i < REASON_COUNT; i++)
		if (s->reasons[i]) {
			snprintf(name, sizeof(name), "truncated.%s", shared_reason_names[i]);
			profile_count_set(p, name, s->reasons[i]);
		}
}

void session_finish(struct session *s, void (*take)(void *context, uint32_t module, int fd), void *context)
{
	uint64_t now = clock_mono_ns();

	pause_wanted = true;
	apply_pause(s);
	s->profile->duration_ns = now - s->start_mono_ns;
	groupwatch_look(s->groups);
	if (s->fallback)
		fallback_drain(s->fallback);
	else
		engine_drain(s->engine);
	for (size_t i = 0; s->collectors[i]; i++) {
		if (runs(s, i))
			s->collectors[i]->stop(s);
		s->stopped = i + 1;
	}
	follow_finish(s->follow, now);
	if (s->mark)
		mark_finish(s->mark, s->profile, s->start_mono_ns);
	processes_finish(s->processes, now);
	note_counters(s);
	processes_hand_over(s->processes, take, context);
}

void session_close(struct session *s)
{
	if (!s)
		return;
	mark_close(s->mark);
	event_close(s);
	follow_free(s->follow);
	kernelmap_free(s->kernel);
	groupwatch_free(s->groups);
	processes_free(s->processes);
	engine_close(s->engine);
	fallback_close(s->fallback);
	eventset_free(s->events);
	free(s->clocks);
	free(s);
}
