/*
 * record.c - `record` and `run`: make a recording, name what was found, write it down.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/memory/leak.h"
#include "analyze/quality.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/opener.h"
#include "cmd/recording/joining.h"
#include "cmd/recording/launch.h"
#include "cmd/recording/output.h"
#include "cmd/recording/record.h"
#include "cmd/recording/recording.h"
#include "cmd/recording/start.h"
#include "collect/blocks/mark.h"
#include "collect/process/owners.h"
#include "collect/session.h"
#include "elf/worker/worker.h"
#include "ethereum/clients.h"
#include "export/section/oomtext.h"
#include "capture/capture.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"

enum {
	KEEP_ROWS = 2000000, /* samples, wakes and points in memory; beyond that they are on disk only */
	LEAK_ROWS = 20,
};

/* --- signals --- */

static volatile pid_t forward_to; /* the program of `run`, while it lives */

static volatile sig_atomic_t stops;   /* how often Ctrl-C was pressed */
static struct worker *volatile naming; /* who looks for names, while that goes on */

static void handle(int signal, void (*handler)(int))
{
	struct sigaction sa = { .sa_handler = handler };

	sigaction(signal, &sa, NULL);
}

/* Ctrl-C reaches the program by itself, as it belongs to the same group; these do not. The second one gives up on names:
 * what was recorded is on disk by then. */
static void on_stop(int signal)
{
	stops += signal == SIGINT;
	if (naming && signal == SIGINT) {
		worker_cancel(naming);
		handle(SIGINT, SIG_DFL);
	}
	session_interrupt();
	if (forward_to > 0 && (signal == SIGTERM || signal == SIGHUP))
		kill(forward_to, signal);
}

static void on_pause(int signal)
{
	session_pause(signal == SIGUSR1);
}

/* Wakes the loop up, to look whether it was the last one. */
static void on_child(int signal)
{
	session_check_soon();
}

static void handle_signals(bool on)
{
	bool pass_on = on || forward_to > 0;

	handle(SIGINT, on ? on_stop : SIG_DFL);
	handle(SIGTERM, pass_on ? on_stop : SIG_DFL);
	handle(SIGHUP, pass_on ? on_stop : SIG_DFL);
	handle(SIGUSR1, on ? on_pause : SIG_IGN);
	handle(SIGUSR2, on ? on_pause : SIG_IGN);
	handle(SIGCHLD, on_child);
}

/* --- the steps --- */

/* The capture and its journal. */
static uint64_t bytes_on_disk(const struct recording *r)
{
	_cleanup_free_ char *journal = mem_printf("%s-wal", r->path);
	struct stat st;
	uint64_t bytes = 0;

	if (!stat(r->path, &st))
		bytes += st.st_size;
	if (!stat(journal, &st))
		bytes += st.st_size;
	return bytes;
}

static int tick(void *context, struct profile *p)
{
	struct recording *r = context;
	int e = capture_flush(r->capture, p, &r->tick_err);

	if (r->max_bytes && !r->session.full)
		r->session.full = bytes_on_disk(r) >= r->max_bytes;
	if (e >= 0 && p->samples.n + p->wakes.n + p->points.n > KEEP_ROWS)
		capture_drop_samples(r->capture, p);
	if (r->launch.pid > 0 && launch_poll(&r->launch))
		session_check_soon();
	return e;
}

static void on_ready(void *context, const struct session *s)
{
	struct recording *r = context;

	start_settle(r->path, session_records(s, "heap"));
}

static void keep_file(void *context, uint32_t module, int fd)
{
	symbolizer_keep_file(context, module, fd);
}

static void show_symbols(void *context, const char *module, size_t done, size_t total)
{
	log_progress("naming functions: %zu of %zu addresses, %s", done, total, module);
}

int recording_find(struct recording *r, const struct option_list *pids, char **names, int count, struct err *err)
{
	start_hurry(true);
	return start_find(&r->who, pids, names, count, err);
}

static char *join(char **argv)
{
	struct buf b = { 0 };

	for (; *argv; argv++)
		buf_printf(&b, "%s%s", b.n ? " " : "", *argv);
	return b.data;
}

int recording_command(struct recording *r, char **argv, struct err *err)
{
	char *program = launch_find(argv[0], err), *slash = strrchr(argv[0], '/');
	bool listen;
	int e;

	if (!program)
		return -ENOENT;
	r->session.program = program;
	listen = r->marks.log && !strcmp(r->marks.log, "-");
	e = launch_start(&r->launch, argv, listen, err);
	if (e < 0)
		return e;
	if (listen) {
		r->marks.log = "the program's output";
		r->marks.log_fd = r->launch.output;
		r->launch.output = -1;
	}
	vec_push(&r->who.pids.list, r->launch.pid);
	r->who.label = mem_strdup(slash ? slash + 1 : argv[0]);
	r->who.target = join(argv);
	return 0;
}

/* What was recorded, for the name of the file: events have names that are no good for that. */
static char *short_what(const struct session_options *o)
{
	const char *file = o->events_file ? strrchr(o->events_file, '/') : NULL;
	char *what;

	if (o->events_file) {
		what = mem_strdup(file ? file + 1 : o->events_file);
		if (str_ends(what, ".conf"))
			what[strlen(what) - strlen(".conf")] = 0;
		return what;
	}
	return mem_strdup(strpbrk(o->what, ":/*?[") ? "events" : o->what);
}

static int open_output(struct recording *r, struct err *err)
{
	_cleanup_free_ char *what = r->name ? mem_strdup(r->name) : short_what(&r->session);

	return output_create(r->output, r->who.label, what, &r->path, &r->capture, err);
}

static void say_end(const struct recording *r)
{
	double seconds = r->profile->duration_ns / 1e9;

	if (r->beside && r->launch.ended)
		log_info("Recorded %.1f s.", seconds);
	else if (r->end == SESSION_END_INTERRUPT)
		log_info("Stopped after %.1f s; everything up to here is kept.", seconds);
	else if (r->end == SESSION_END_GONE && r->launch.pid > 0 && !r->beside)
		log_info("The program ended after %.1f s.", seconds);
	else if (r->end == SESSION_END_GONE)
		log_warn("the target ended after %.1f s; what was recorded is kept (gasflame run -- COMMAND records a "
			 "program from its start to its end)", seconds);
}

/* Ctrl-C ends it, another one the program. */
static int name_frames(struct recording *r, struct symbolizer *symbolizer, struct err *err)
{
	int e;

	naming = r->worker;
	handle(SIGINT, on_stop);
	if (stops > 1)
		worker_cancel(r->worker);
	e = symbolize_profile(symbolizer, r->profile, show_symbols, NULL, err);
	naming = NULL;
	handle(SIGINT, SIG_DFL);
	if (worker_cancelled(r->worker))
		log_warn("not all functions were named: gasflame report %s goes on with it", r->path);
	return e;
}

/* From the first sample to the last flush; the capture is whole afterwards unless the disk is full. */
static int record(struct recording *r, struct session *s, struct err *err)
{
	struct symbolizer *symbolizer = symbolizer_new(&r->symbols, r->worker);
	struct rusage children;
	int e;

	stops = 0;
	handle_signals(true);
	e = session_start(s, err);
	if (e >= 0 && r->launch.pid > 0) {
		e = launch_go(&r->launch, err);
		if (e >= 0 && !r->beside)
			e = session_started(s, err);
		forward_to = r->launch.pid;
	}
	if (e >= 0) {
		log_info("Recording %s (%s%s%s%s) to %s", r->who.target, r->session.what,
			 *r->session.what && r->session.events_file ? ", " : "",
			 r->session.events_file ? r->session.events_file : "",
			 session_has_bpf(s) ? "" : ", without BPF", r->path);
		r->end = session_loop(s);
	}
	session_finish(s, keep_file, symbolizer);
	if (e >= 0 && r->finish)
		r->finish(r->context, r->profile);
	start_hurry(false);
	start_settle_more(r->path);
	log_progress_end();
	handle_signals(false);
	if (e >= 0)
		say_end(r);
	/* What was sampled is on disk before anything else can go wrong. */
	if (e >= 0)
		e = r->end == SESSION_END_TICK ? -r->tick_err.code : capture_flush(r->capture, r->profile, err);
	if (e >= 0)
		e = name_frames(r, symbolizer, err);
	log_progress_end();
	symbolizer_free(symbolizer);
	worker_free(r->worker);
	r->worker = NULL;
	getrusage(RUSAGE_CHILDREN, &children);
	profile_count_set(r->profile, KEY_SELF_CPU_NS,
			  clock_process_cpu_ns() + (r->launch.pid > 0 ? 0 :
				  (children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1000000000ULL +
				  (children.ru_utime.tv_usec + children.ru_stime.tv_usec) * 1000ULL));
	if (e >= 0) {
		r->profile->finished = true;
		e = capture_flush(r->capture, r->profile, err);
	}
	if (r->end == SESSION_END_TICK) {
		*err = r->tick_err;
		e = -r->tick_err.code;
	}
	return e;
}

/* The quality line and its warnings; the exit code. */
static int judge(struct recording *r)
{
	struct select_options options = { 0 };
	struct selection selection;
	struct quality q = { 0 };
	struct buf line = { 0 };
	int code;

	select_event(r->profile, NULL, &options.event, NULL);
	if (selection_make(r->profile, &options, &selection, NULL) < 0)
		return EXIT_QUALITY;
	quality_measure(&q, r->profile, &selection);
	quality_line(&q, &selection, &line);
	log_info("%s", line.data);
	for (size_t i = 0; i < q.warnings.n; i++)
		log_warn("%s", q.warnings.v[i]);
	code = q.fit ? EXIT_OK : EXIT_QUALITY;
	buf_done(&line);
	quality_done(&q);
	selection_done(&selection);
	return code;
}

/* Is more alive at the end than may be? Then who allocated it is said. */
static bool judge_leak(const struct recording *r)
{
	char alive[32], allowed[32], objects[32];
	struct buf table = { 0 };
	struct leak l;
	bool leaks;

	leak_build(&l, r->profile, "heap");
	leaks = l.bytes >= r->leak_bytes;
	log_info("%s: %s in %s objects are alive at the end%s, --fail-on-leak allows less than %s.",
		 leaks ? "Leak" : "No leak", str_bytes(alive, l.bytes), str_count(objects, l.objects),
		 r->end == SESSION_END_GONE ? "" : " of the recording (the program goes on)", str_bytes(allowed, r->leak_bytes));
	if (leaks) {
		leaktext_put(&l, LEAK_ROWS, 0, &table);
		table.data[table.n - 1] = 0;
		log_lines(table.data);
	}
	buf_done(&table);
	leak_done(&l);
	return leaks;
}

int recording_failed(const struct err *err)
{
	log_error("%s", err->text);
	return err->code == EINVAL ? EXIT_USAGE : EXIT_ERROR;
}

/* The file; to a person, what to type next. */
static void say_where(const struct recording *r)
{
	_cleanup_free_ char *next = output_next(r->path);

	log_info("%s%s", r->say_next && isatty(STDERR_FILENO) ? "Next: " : "",
		 r->say_next && isatty(STDERR_FILENO) ? next : r->path);
}

int recording_run(struct recording *r, struct err *err)
{
	struct session *s = NULL;
	int e, code;

	start_raise_limits();
	start_hurry(true);
	r->profile = profile_new();
	r->profile->target = profile_string(r->profile, r->who.target);
	r->profile->redacted = r->redact;
	for (size_t i = 0; i < r->who.found.n; i++)
		owners_add(r->profile, &r->who.found.v[i]);
	r->worker = worker_new();
	worker_start(r->worker); /* while everything else is set up */
	r->session.pids = r->who.pids.list.v;
	r->session.pid_count = r->who.pids.list.n;
	r->session.tick = tick;
	r->session.tick_context = r;
	r->session.ready = on_ready;
	r->session.ready_context = r;
	log_progress("reading the target's code");
	e = session_open(&r->session, r->profile, r->worker, &s, err);
	log_progress_end();
	if (e >= 0)
		e = open_output(r, err);
	if (e < 0) {
		session_close(s);
		return recording_failed(err);
	}
	e = record(r, s, err);
	session_close(s);
	if (capture_close(r->capture, e < 0 ? NULL : err) < 0 && e >= 0)
		e = -EIO;
	r->capture = NULL;
	if (e < 0) {
		log_error("%s%s", err->text,
			  err->code == ENOSPC ? "; free some space, or record to another disk with -o" : "");
		if (r->profile->samples.n)
			log_info("What was recorded before is in %s (gasflame report %s).", r->path, r->path);
		return EXIT_ERROR;
	}
	code = judge(r);
	if (r->leak_bytes && judge_leak(r) && code == EXIT_OK)
		code = EXIT_LEAK;
	say_where(r);
	opener_show(r->path);
	if (code == EXIT_OK && r->end == SESSION_END_GONE && (r->launch.pid <= 0 || r->beside))
		code = EXIT_GONE;
	return code;
}

int recording_wait(struct recording *r, int code)
{
	/* One that was not let go is not waited for. */
	if (r->launch.pid <= 0 || r->launch.gate >= 0 || code == EXIT_ERROR)
		return code;
	launch_wait(&r->launch);
	forward_to = 0;
	return launch_exit_code(&r->launch) ? launch_exit_code(&r->launch) : code;
}

void recording_done(struct recording *r)
{
	worker_free(r->worker);
	profile_free(r->profile);
	start_done(&r->who);
	free(r->path);
	free((char *)r->session.program);
	launch_done(&r->launch);
}

/* To whatever the user has set there. */
static void add_setting(const char *variable, const char *setting)
{
	const char *before = getenv(variable);
	_cleanup_free_ char *all = mem_printf("%s%s%s", before ? before : "", before && *before ? "," : "", setting);

	setenv(variable, all, 1);
}

/* What says how long it is has ended: so has the recording. */
static void look_beside(void *context, uint64_t time_ns)
{
	struct recording *r = context;

	if (launch_poll(&r->launch))
		session_interrupt();
}

/* Whom to record, where that is not the process of the call. */
static int find_beside(struct recording *r, const struct record_call *call, struct err *err)
{
	const struct option_list none = { 0 };

	r->beside = true;
	r->session.look = look_beside;
	r->session.look_context = r;
	if (call->rpc || call->log) {
		r->marks.rpc = call->rpc;
		r->marks.log = call->log;
		r->session.marks = &r->marks;
	}
	return recording_find(r, &none, call->targets, call->target_count, err);
}

int record_call(const struct record_call *call)
{
	struct recording r = RECORDING_INIT;
	struct err err = { 0 };
	int e = 0, code;

	r.output = call->output;
	r.finish = call->finish;
	r.context = call->context;
	r.session = (struct session_options){ .what = call->what, .hz = 999, .event_rate = 20000 };
	if (call->targets)
		e = find_beside(&r, call, &err);
	if (e >= 0)
		e = launch_start_call(&r.launch, call->call, call->context, &err);
	if (!call->targets) {
		r.who.label = mem_strdup(call->label);
		r.who.target = mem_strdup(call->target);
		vec_push(&r.who.pids.list, r.launch.pid);
	}
	code = recording_wait(&r, e < 0 ? recording_failed(&err) : recording_run(&r, &err));
	recording_done(&r);
	return code;
}

char **recording_split(int *argc, char **argv)
{
	for (int i = 1; i < *argc; i++)
		if (!strcmp(argv[i], "--")) {
			*argc = i;
			return argv + i + 1;
		}
	return NULL;
}

/* Is it one of those of -e? */
static bool lists(const char *what, const char *name)
{
	size_t n = strlen(name);

	for (; what && *what; what += strcspn(what, ","), what += *what == ',')
		if (str_starts(what, name) && (!what[n] || what[n] == ','))
			return true;
	return false;
}

/* Is it a name that can stand for another process later? */
static bool can_follow(const char *what, const struct option_list *pids, char **names, int count, char **command)
{
	bool number = pids->list.n;

	for (int i = 0; i < count; i++)
		number |= joining_is_pid(names[i]);
	if (command)
		log_error("--follow is for a target that others start and restart, not for a command");
	else if (number)
		log_error("--follow needs a name: a pid does not come back");
	else if (lists(what, "heap") || lists(what, "alloc"))
		log_error("--follow cannot record %s: what is restarted would have to be hooked again; leave it out of -e",
			  lists(what, "heap") ? "heap" : "alloc");
	else
		return true;
	return false;
}

static bool marks_make_sense(const struct mark_options *o)
{
	if ((o->client || o->pattern) && !o->log)
		log_error("%s is about a log: name it with --log", o->client ? "--log-client" : "--log-pattern");
	else if (o->client && o->pattern)
		log_error("--log-client and --log-pattern are two ways to say the same: choose one");
	else
		return true;
	return false;
}

static int record_main(const struct command *c, int argc, char **argv)
{
	static const char *const backends[] = { "auto", "bpf", "perf", NULL };
	bool is_run = !strcmp(c->name, "run"), jemalloc_prof = false, open = false;
	const char *what = NULL, *backend = "auto";
	uint64_t hz = 999, event_rate = 20000, heap_interval = is_run ? 0 : 512 << 10, duration_ns = is_run ? 0 : 60000000000;
	struct option_list pids = { 0 }, symbols = { 0 }, functions = { 0 };
	_cleanup_free_ char *verified = client_names(true), *others = client_names(false),
		*client_help = mem_printf("whose lines they are: %s (captured from the client), or %s (as the client's source prints "
					  "them, not yet verified); by default the first block tells", verified, others);
	struct recording r = RECORDING_INIT;
	struct joining groups = { 0 };
	struct err err = { 0 };
	const struct option_spec options[] = {
		{ 'e', "event", OPTION_STRING, &what, "WHAT",
		  "what to record, separated by commas: collectors, and events like sched:sched_switch, "
		  "block:block_rq_issue/bytes or page-faults; by default cpu,wait (gasflame events lists all)" },
		{ 0, "events", OPTION_STRING, &r.session.events_file, "FILE",
		  "a list of events, one a line, # begins a comment" },
		{ 'F', "frequency", OPTION_UINT, &hz, "HZ", "samples a second on each CPU", 1, 20000 },
		{ 'd', "duration", OPTION_DURATION, &duration_ns, "TIME",
		  is_run ? "end the recording after this time; 0: when the program ends" :
			   "how long: 30, 30s, 2m; Ctrl-C ends early and keeps everything" },
		{ 'p', "pid", OPTION_LIST, &pids, "PID", is_run ? "not here: gasflame record -p is for processes that run already" : "a process" },
		{ 'o', "output", OPTION_STRING, &r.output, "FILE",
		  "where to; the default is profiling/<target>/<what>-<date>.gasflame" },
		{ 0, "open", OPTION_FLAG, &open, .help =
		  "afterwards make the page, as gasflame report does, and open it in the browser; behind sudo as the user who "
		  "called it" },
		{ 0, "log", OPTION_STRING, &r.marks.log, "FILE",
		  is_run ? "the node's log: each block in it becomes a mark (gasflame blocks); a file, which may be a container's "
			   "json-file log; -: what the program writes; journal:UNIT: the journal of a systemd unit" :
			   "the node's log, followed from now on: each block in it becomes a mark (gasflame blocks); "
			   "a file, which may be rotated, or a container's json-file log; a pipe; - for the standard input; "
			   "journal:UNIT for the journal of a systemd unit" },
		{ 0, "log-client", OPTION_STRING, &r.marks.client, "CLIENT",
		  client_help },
		{ 0, "log-pattern", OPTION_STRING, &r.marks.pattern, "REGEX",
		  "lines of your own: an extended regex with (?<number>...), and any of hash, txs, gas, mgas, time "
		  "(59.7ms), ms, us and s" },
		{ 0, "rpc", OPTION_STRING, &r.marks.rpc, "URL",
		  "the node's JSON-RPC, http:// or ws://: asked for the exact gas and transactions of each block; without "
		  "--log blocks are moments, when the node was first seen to have them (http: looked at five times a second; "
		  "ws: it tells by itself, eth_subscribe), or the spans of the function that made them" },
		{ 0, "mark-function", OPTION_LIST, &functions, "NAME",
		  "each call of a function, from entry to return, becomes a mark: a part of its name, as nm -C shows it, or "
		  "anvil, reth, op-reth, ethrex for the known functions of these; may be repeated, the spans of the first are "
		  "blocks, which --log or --rpc name; polls of an async function are one span. Without it, and with --log or "
		  "--rpc, these clients' block functions are marked where they are found; none: no function" },
		{ 0, "max-rate", OPTION_UINT, &event_rate, "EVENTS",
		  "events a second that are kept one by one; what is beyond is counted by stack", 0, 10000000 },
		{ 0, "max-size", OPTION_SIZE, &r.max_bytes, "BYTES",
		  "from a capture of this size on, events are only counted by stack; 0: no limit" },
		{ 0, "heap-sample", OPTION_SIZE, &heap_interval, "BYTES",
		  "-e heap: mean distance of sampled allocations in bytes; 0: each one is recorded" },
		{ 0, "max-overhead", OPTION_PERCENT, &r.session.max_overhead, "PERCENT",
		  "lower the rate by itself when recording costs more than this of the target's CPU time (of one CPU, "
		  "where it uses less); 0: no limit" },
		{ 0, "backend", OPTION_CHOICE, &backend, "HOW",
		  "bpf: stacks unwound in the kernel; perf: without BPF, from copies of the stack", .choices = backends },
		{ 0, "redact", OPTION_FLAG, &r.redact, .help =
		  "for a capture that is passed on: leave out command lines, paths but for the names of programs, libraries and "
		  "source files, names of threads, containers, units and files that were read or written, the host and the target" },
		{ 0, "jemalloc-prof", OPTION_FLAG, &jemalloc_prof, .help =
		  "run: start the program with jemalloc's own profiling on (MALLOC_CONF, _RJEM_MALLOC_CONF), for gasflame heap "
		  "dump" },
		{ 0, "symbols", OPTION_LIST, &symbols, "PATH",
		  "a file or folder with symbols for stripped programs" },
		{ 0, "debuginfod", OPTION_FLAG, &r.symbols.debuginfod, .help =
		  "ask the servers of DEBUGINFOD_URLS for debug files" },
		{ 0, "no-inline", OPTION_FLAG, &r.symbols.no_inline, .help =
		  "names from symbol tables only: no lines, no inlined functions" },
		{ 0, "no-cache", OPTION_FLAG, &r.symbols.no_cache, .help = "do not use the cache of names" },
		{ 0, "keep-hash", OPTION_FLAG, &r.symbols.keep_hash, .help =
		  "keep the hashes of Rust names and compilers' suffixes" },
		/* Each of the two has one that is its own: record cannot know what was there before, run's program does not come back. */
		{ 0, is_run ? "fail-on-leak" : "follow", is_run ? OPTION_SIZE : OPTION_FLAG,
		  is_run ? (void *)&r.leak_bytes : (void *)&r.session.follow, is_run ? "BYTES" : NULL,
		  is_run ? "-e heap: end with status 6, and say whose it is, when as much or more is alive at the end; 0: do not look" :
			   "when the target ends, wait for its name to stand for a process again, and go on: one recording, in which "
			   "each restart is a mark" },
		{ 0 },
	};
	char **command = recording_split(&argc, argv);
	int first = options_parse(c, options, argc, argv), code, e;

	if (first < 0)
		return -first - 1;
	if (!marks_make_sense(&r.marks)) {
		vec_done(&pids.list);
		vec_done(&symbols.list);
		return EXIT_USAGE;
	}
	if (!command && is_run && first < argc)
		command = argv + first;
	else if (command && first < argc) {
		log_error("either a target or a command after --, not both (%s)", argv[first]);
		return EXIT_USAGE;
	}
	if (is_run && pids.list.n) {
		log_error("run starts a program; one that runs already: gasflame record -p %s", pids.list.v[0]);
		return EXIT_USAGE;
	}
	if ((command && pids.list.n) || (is_run && !command) || (command && !*command)) {
		log_error(is_run || command ? "say which program to run: gasflame run -- ./node --args" : "say what to record");
		return EXIT_USAGE;
	}
	if (r.session.follow && !can_follow(what, &pids, argv + first, argc - first, command)) {
		vec_done(&pids.list);
		vec_done(&symbols.list);
		return EXIT_USAGE;
	}
	if (r.leak_bytes && !lists(what, "heap")) {
		log_error("--fail-on-leak needs -e heap");
		return EXIT_USAGE;
	}
	if (r.marks.log && !strcmp(r.marks.log, "-") && !command) {
		r.marks.log = "the standard input";
		r.marks.log_fd = dup(STDIN_FILENO);
	}
	if (r.marks.log || r.marks.rpc)
		r.session.marks = &r.marks;
	r.session.guess_functions = r.session.marks && !functions.list.n;
	if (functions.list.n != 1 || strcmp(functions.list.v[0], "none")) {
		r.session.functions = functions.list.v;
		r.session.function_count = functions.list.n;
	}
	r.session.listen = true;
	r.say_next = !open;
	r.session.what_default = !what && !r.session.events_file;
	r.session.what = what ? what : r.session.events_file ? "" : "cpu,wait";
	r.session.event_rate = event_rate;
	r.session.hz = hz;
	r.session.heap_interval = heap_interval;
	r.session.duration_ns = command && !is_run && duration_ns == 60000000000 ? 0 : duration_ns;
	r.session.backend = !strcmp(backend, "bpf") ? SESSION_BPF : !strcmp(backend, "perf") ? SESSION_PERF : SESSION_AUTO;
	r.symbols.paths = symbols.list.v;
	if (jemalloc_prof && !command) {
		log_error("--jemalloc-prof is for a program that is started here: gasflame run --jemalloc-prof -- COMMAND");
		return EXIT_USAGE;
	}
	if (jemalloc_prof) {
		add_setting("MALLOC_CONF", "prof:true");
		add_setting("_RJEM_MALLOC_CONF", "prof:true");
	}
	e = command ? recording_command(&r, command, &err) : recording_find(&r, &pids, argv + first, argc - first, &err);
	if (e >= 0 && !command) {
		r.session.names = argv + first;
		r.session.name_count = argc - first;
		joining_find(&r.who.pids, r.session.names, r.session.name_count, &groups);
		r.session.groups = groups.list.v;
		r.session.group_count = groups.list.n;
	}
	code = e < 0 ? recording_failed(&err) : recording_run(&r, &err);
	code = recording_wait(&r, code);
	recording_done(&r);
	joining_done(&groups);
	vec_done(&pids.list);
	vec_done(&symbols.list);
	vec_done(&functions.list);
	return code;
}

const struct command command_record = {
	.name = "record",
	.summary = "record a running program",
	.usage = "[options] TARGET...",
	.describe = "Attaches to a process as it runs and records where its time goes: no rebuild, no restart, no "
		    "frame pointers. A TARGET is " COMMAND_TARGETS ". All processes of a container, pod or unit are recorded, and "
		    "threads and children that they start; gasflame ps lists what there is.\n\n"
		    "With --follow the recording goes on through restarts; what was between them is \"not running\" in the report.\n\n"
		    "Marks are spans of time with a name: blocks of the node's log (--log), of its JSON-RPC (--rpc), calls of functions "
		    "(--mark-function), and what the program says itself with GASFLAME_SPAN_BEGIN and others of <gasflame.h>, which "
		    "are found without an option. gasflame blocks and report --marks show them.\n\n"
		    "SIGUSR1 pauses the recording, SIGUSR2 resumes it.",
	.example = "gasflame record -e cpu -d 30 reth\ngasflame record --follow -d 10m op-reth-seq\n"
		   "gasflame record -F 99 -d 5m -o slow.gasflame -p 4242\n"
		   "gasflame record --rpc ws://127.0.0.1:8545 --mark-function on_new_payload -d 60 reth",
	.run = record_main,
	.keeps_rights = true,
};

const struct command command_run = {
	.name = "run",
	.summary = "start a program and record it from its first instruction",
	.usage = "[options] -- COMMAND [ARGUMENT...]",
	.describe = "The same as record for a program that gasflame starts. It ends when the program does, with "
		    "the program's own exit status. Where that is 0: 3 if the recording is not fit to read, 6 if more is "
		    "alive at the end than --fail-on-leak allows.",
	.example = "gasflame run -e cpu -- ./node --dev\ngasflame run -e heap --fail-on-leak 1M -- ./unit-tests",
	.run = record_main,
	.keeps_rights = true,
};
