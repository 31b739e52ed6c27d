/*
 * record.c - the commands `record` and `run`, and record_call(): what is recorded, by which options.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/recording/cgroupscope.h"
#include "cmd/recording/flight.h"
#include "cmd/recording/launch.h"
#include "cmd/recording/record.h"
#include "cmd/recording/recording.h"
#include "cmd/recording/targets.h"
#include "collect/blocks/blockmarks.h"
#include "collect/session.h"
#include "ethereum/clients.h"

/* Appends a setting to the user's value of the variable. */
static void add_setting(const char *variable, const char *setting)
{
	const char *before = getenv(variable);
	_cleanup_free_ char *all = mem_printf("%s%s%s", before ? before : "", before && *before ? "," : "", setting);

	setenv(variable, all, 1);
}

/* The program that limits the recording has ended: so does the recording. */
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
	r.session = (struct session_options){ .what = call->what, .hz = 999, .event_rate = 20000,
						.max_overhead = SESSION_MAX_OVERHEAD };
	if (call->targets)
		e = find_beside(&r, call, &err);
	if (e >= 0)
		e = launch_start_call(&r.launch, call->call, call->context, &err);
	if (!call->targets) {
		r.who.label = mem_strdup(call->label);
		r.who.target = mem_strdup(call->target);
		vec_push(&r.who.pids.list, r.launch.pid);
	}
	code = recording_wait(&r, e < 0 ? command_failed(&err) : recording_run(&r, &err));
	recording_done(&r);
	return code;
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

/* Returns whether --follow is possible; else reports why not. */
static bool can_follow(const char *what, const struct option_list *pids, char **names, int count, char **command)
{
	bool number = pids->list.n;

	for (int i = 0; i < count; i++)
		number |= cgroupscope_is_pid(names[i]);
	if (command)
		log_error("--follow is for a target that others start and restart, not for a command");
	else if (number)
		log_error("--follow needs a name: a pid does not come back");
	else if (lists(what, "heap") || lists(what, "alloc") || lists(what, "goroutine"))
		log_error("--follow cannot record %s: what is restarted would have to be hooked again; leave it out of -e",
			  lists(what, "heap") ? "heap" : lists(what, "alloc") ? "alloc" : "goroutine");
	else
		return true;
	return false;
}

static bool marks_make_sense(const struct blockmarks_options *o)
{
	if ((o->client || o->pattern) && !o->log)
		log_error("%s is about a log: name it with --log", o->client ? "--log-client" : "--log-pattern");
	else if (o->client && o->pattern)
		log_error("--log-client and --log-pattern are two ways to say the same: choose one");
	else
		return true;
	return false;
}

static void list_done(struct option_list *l)
{
	vec_done(&l->list);
}

static void flight_options_done(struct flight_options *o)
{
	rules_done(&o->rules);
}

/* given: an option that only a flight recorder has; other: one that it cannot do. */
static bool flight_makes_sense(struct flight_options *o, const struct option_list *rules, bool given, bool other)
{
	struct err err = { 0 };
	int e = 0;

	if (given && !o->keep_ns) {
		log_error("--when, --pause, --keep-size, --captures and --json are for a flight recorder: say how much to keep, --keep 10m");
		return false;
	}
	if (o->keep_ns && other) {
		log_error("--keep writes its captures by itself, when something happens: leave out --max-size, --capture-limit, --keep-full, "
			  "--keep-all, --marks, --fail-on-leak and --open");
		return false;
	}
	if (o->keep_ns && o->keep_ns < 1000000000) {
		log_error("--keep needs a second at least");
		return false;
	}
	for (size_t i = 0; i < rules->list.n && e >= 0; i++)
		e = rules_add(&o->rules, rules->list.v[i], &err);
	if (e < 0)
		log_error("%s", err.text);
	return e >= 0;
}

static int record_main(const struct command *c, int argc, char **argv)
{
	static const char *const backends[] = { "auto", "bpf", "perf", NULL };
	bool is_run = !strcmp(c->name, "run"), jemalloc_prof = false, open = false, keep_all = false, limited = false, timed = false,
	     flight_given = false;
	const char *what = NULL, *backend = "auto";
	uint64_t hz = 999, event_rate = 20000, heap_interval = is_run ? 0 : 512 << 10, duration_ns = is_run ? 0 : 60000000000;
	_cleanup_(list_done) struct option_list pids = { 0 }, symbols = { 0 }, functions = { 0 }, rules = { 0 };
	_cleanup_(flight_options_done) struct flight_options flight = FLIGHT_INIT;
	_cleanup_free_ char *flight_what = NULL, *flight_name = NULL;
	_cleanup_free_ char *verified = client_names(true), *others = client_names(false),
		*client_help = mem_printf("whose lines they are: %s (captured from the client), or %s (as the client's source prints "
					  "them, not yet verified); by default each block's line tells", verified, others);
	struct recording r = RECORDING_INIT;
	struct cgroupscope groups = { 0 };
	struct err err = { 0 };
	const struct option_spec options[] = {
		{ 'e', "event", OPTION_STRING, &what, "WHAT",
		  "what to record, separated by commas: collectors, and events like sched:sched_switch, "
		  "block:block_rq_issue/bytes or page-faults; by default cpu,wait (gasflame events lists all)" },
		{ 0, "events", OPTION_STRING, &r.session.events_file, "FILE",
		  "a list of events, one a line, # begins a comment" },
		{ 'F', "frequency", OPTION_UINT, &hz, "HZ", "samples a second on each CPU", 1, 20000 },
		{ 'd', "duration", OPTION_DURATION, &duration_ns, "TIME",
		  is_run ? "end the recording after this time; the program goes on, and gasflame waits for it; 0: when the program ends" :
			   "how long: 30, 30s, 2m; Ctrl-C ends early and keeps everything; with --keep by default until then", .given = &timed },
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
			   "a file, which may be rotated, or a container's json-file log, or X Layer's trace.log; a pipe; - for the standard input; "
			   "journal:UNIT for the journal of a systemd unit" },
		{ 0, "log-client", OPTION_STRING, &r.marks.client, "CLIENT",
		  client_help },
		{ 0, "log-pattern", OPTION_STRING, &r.marks.pattern, "REGEX",
		  "lines of your own: an extended regex with (?<number>...), and any of hash, txs, gas, mgas, ggas, "
		  "time (59.7ms), ms, us and s" },
		{ 0, "rpc", OPTION_STRING, &r.marks.rpc, "URL",
		  "the node's JSON-RPC, http:// or ws://: asked for the exact gas and transactions of each block; without "
		  "--log blocks are moments, when the node was first seen to have them (http: looked at five times a second; "
		  "ws: it tells by itself, eth_subscribe), or the spans of the function that made them" },
		{ 0, "mark-function", OPTION_LIST, &functions, "NAME",
		  "each call of a function, from entry to return, becomes a mark: a part of its name, as nm -C shows it (* in it "
		  "is any text), or anvil, reth, op-reth, xlayer-reth, ethrex for the known functions of these; may be repeated, the spans of the first are "
		  "blocks, which --log or --rpc name; polls of an async function are one span. Without it, and with --log or "
		  "--rpc, these clients' block functions are marked where they are found; none: no function" },
		{ 0, "marks", OPTION_STRING, &r.trace.path, "FILE",
		  "a Chrome trace that the target writes (reth --log.tracing-chrome, and others), or X Layer's trace.log: its spans "
		  "become marks at the end, those with a block's number blocks; gasflame import --marks adds one to a capture" },
		{ 0, "marks-offset", OPTION_STRING, &r.trace.offset, "TIME",
		  "when the trace's time 0 was, since the start of the recording: 2.5s, -250ms; by default its clock tells, or when "
		  "its file was made and grew" },
		{ 0, "keep", OPTION_DURATION, &flight.keep_ns, "TIME",
		  "a flight recorder: record on and on, keep the last so long in memory, and write it as a capture at an incident: SIGUSR1, a "
		  "rule of --when, an OOM kill, the end of the target, Ctrl-C" },
		{ 0, "when", OPTION_LIST, &rules, "RULE",
		  "--keep: write a capture when this comes true: block > 500ms, no block for 30s, rss > 90% (of the cgroup's limit) or rss > 8G, "
		  "queue > 50% (of the time in which threads want a CPU), cpu > 350% (of one CPU); may be repeated", .given = &flight_given },
		{ 0, "pause", OPTION_DURATION, &flight.rules.pause_ns, "TIME",
		  "--when: after a capture no rule writes another one for so long, and a rule has to be false in between",
		  .given = &flight_given },
		{ 0, "keep-size", OPTION_SIZE, &flight.max_bytes, "BYTES",
		  "--keep: memory for what is kept; beyond it the oldest samples are summed by thread and stack, and then dropped; 0: no limit",
		  .given = &flight_given },
		{ 0, "captures", OPTION_UINT, &flight.captures, "N",
		  "--keep: of the captures that it has written the newest so many stay; 0: all", 0, 1000000, .given = &flight_given },
		{ 0, "json", OPTION_FLAG, &flight.json, .help =
		  "--keep: a line on the standard output for each capture: its path, the reason, from when to when it is", .given = &flight_given },
		{ 0, "max-rate", OPTION_UINT, &event_rate, "EVENTS",
		  "events a second that are kept one by one; what is beyond is counted by stack", 0, 10000000 },
		{ 0, "max-size", OPTION_SIZE, &r.max_bytes, "BYTES",
		  "from a capture of this size on, events are only counted by stack; 0: no limit" },
		{ 0, "capture-limit", OPTION_SIZE, &r.limit_bytes, "BYTES",
		  "keep the capture below this size: from a quarter of it on, samples older than --keep-full are summed by second, "
		  "thread and stack, and later by longer times; blocks and other marks that were slow stay as recorded; 0: no limit",
		  .given = &limited },
		{ 0, "keep-full", OPTION_DURATION, &r.full_ns, "TIME",
		  "samples of the last so long stay as recorded while older ones are summed", .given = &limited },
		{ 0, "keep-all", OPTION_FLAG, &keep_all, .help = "sum nothing, however large the capture becomes" },
		{ 0, "heap-sample", OPTION_SIZE, &heap_interval, "BYTES",
		  "-e heap: mean distance of sampled allocations in bytes; 0: each one is recorded. It is doubled while samples are "
		  "lost, and 512K, the default of record, also while they cost the target over 1 % of its CPU time" },
		{ 0, "long-poll", OPTION_DURATION, &r.session.long_poll_ns, "TIME",
		  "-e task: a poll that takes this long or longer is a mark of its own, with the task that it was of" },
		{ 0, "max-overhead", OPTION_PERCENT, &r.session.max_overhead, "PERCENT",
		  "what recording may cost: CPU time that it takes from the target and by itself, as a part of the target's CPU time "
		  "(where that is little: of a tenth of a CPU in the target, of one CPU by itself), and from other processes, as a part "
		  "of all CPUs. Where it costs more, less is "
		  "recorded: stacks of frequent events first, then the clock's rate, and more again when there is room; the report says "
		  "what was left out, and what to record without where that is not enough; 0: no limit" },
		{ 0, "backend", OPTION_CHOICE, &backend, "HOW",
		  "bpf: stacks unwound in the kernel; perf: without BPF, from copies of the stack", .choices = backends },
		{ 0, "redact", OPTION_FLAG, &r.redact, .help =
		  "for a capture that is passed on: leave out command lines, paths but for the names of programs, libraries and "
		  "source files, names of threads, containers, units and files that were read or written, the host and the target" },
		{ 0, "jemalloc-prof", OPTION_FLAG, &jemalloc_prof, .help =
		  "run: start the program with jemalloc's own profiling on (MALLOC_CONF, _RJEM_MALLOC_CONF), for gasflame heap "
		  "dump" },
		{ 0, "symbols", OPTION_LIST, &symbols, "PATH",
		  COMMAND_SYMBOLS },
		{ 0, "debuginfod", OPTION_FLAG, &r.symbols.debuginfod, .help =
		  "ask the servers of DEBUGINFOD_URLS for debug files" },
		{ 0, "no-inline", OPTION_FLAG, &r.symbols.no_inline, .help =
		  "names from symbol tables only: no lines, no inlined functions" },
		{ 0, "no-cache", OPTION_FLAG, &r.symbols.no_cache, .help =
		  "do not use the cache of names and of unwind tables" },
		{ 0, "keep-hash", OPTION_FLAG, &r.symbols.keep_hash, .help =
		  "keep the hashes of Rust names and compilers' suffixes" },
		/* Each command has an option of its own: record cannot know earlier allocations, run's
		 * program does not come back. */
		{ 0, is_run ? "fail-on-leak" : "follow", is_run ? OPTION_SIZE : OPTION_FLAG,
		  is_run ? (void *)&r.leak_bytes : (void *)&r.session.follow, is_run ? "BYTES" : NULL,
		  is_run ? "-e heap: end with status 6, and say whose it is, when as much or more is alive at the end; 0: do not look" :
			   "when the target ends, wait for its name to stand for a process again, and go on: one recording, in which "
			   "each restart is a mark" },
		{ 0 },
	};
	char **command = recording_split(&argc, argv);
	int first, code, e;

	r.session.max_overhead = SESSION_MAX_OVERHEAD;
	first = options_parse(c, options, argc, argv);

	if (first < 0)
		return -first - 1;
	if (recordtrace_check(&r.trace, &err) < 0)
		return command_failed(&err);
	/* A block of the log takes the times of its span, which are known at the end. */
	r.marks.late = r.trace.path != NULL;
	if (!marks_make_sense(&r.marks))
		return EXIT_USAGE;
	if (!command && is_run && first < argc)
		command = argv + first;
	else if (command && first < argc) {
		log_error("either a target or a command after --, not both (%s)", argv[first]);
		return EXIT_USAGE;
	}
	if (is_run && pids.list.n) {
		log_error("run starts a program; to record a running one: gasflame record -p %s", pids.list.v[0]);
		return EXIT_USAGE;
	}
	if ((command && pids.list.n) || (is_run && !command) || (command && !*command)) {
		log_error(is_run || command ? "say which program to run: gasflame run -- ./node --args" : "say what to record");
		return EXIT_USAGE;
	}
	if (r.session.follow && !can_follow(what, &pids, argv + first, argc - first, command))
		return EXIT_USAGE;
	if (keep_all && limited) {
		log_error("--keep-all sums nothing: leave --capture-limit and --keep-full out, or --keep-all");
		return EXIT_USAGE;
	}
	if (keep_all)
		r.limit_bytes = 0;
	if (!flight_makes_sense(&flight, &rules, flight_given, limited || keep_all || r.max_bytes || open || r.trace.path || r.leak_bytes))
		return EXIT_USAGE;
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
	r.session.heap_steady = heap_interval != 512 << 10;
	r.session.duration_ns = (command && !is_run && duration_ns == 60000000000) || (flight.keep_ns && !timed) ? 0 : duration_ns;
	r.session.backend = !strcmp(backend, "bpf") ? SESSION_BPF : !strcmp(backend, "perf") ? SESSION_PERF : SESSION_AUTO;
	r.session.no_cache = r.symbols.no_cache;
	r.symbols.paths = symbols.list.v;
	if (flight.keep_ns) {
		r.name = flight_name = recording_what(&r.session);
		if (flight_check(&flight, &r, r.session.marks || r.session.function_count, &flight_what, &err) < 0)
			return command_failed(&err);
		r.session.what = flight_what;
	}
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
		cgroupscope_find(&r.who.pids, r.session.names, r.session.name_count, &groups);
		r.session.groups = groups.list.v;
		r.session.group_count = groups.list.n;
	}
	code = e < 0 ? command_failed(&err) : flight.keep_ns ? flight_run(&r, &flight, &err) : recording_run(&r, &err);
	code = recording_wait(&r, code);
	recording_done(&r);
	cgroupscope_done(&groups);
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
		    "(--mark-function), spans of a Chrome trace (--marks), and without an option what the program says itself: GASFLAME_SPAN_BEGIN and others "
		    "of <gasflame.h>, and marker files for samply (reth --log.samply). gasflame blocks and report --marks show them.\n\n"
		    "SIGUSR1 pauses the recording, SIGUSR2 resumes it.\n\n"
		    "With --keep it is a flight recorder: nothing is written until something happens, and then the minutes before. The moment is a "
		    "mark of kind incident with the reason. Recording goes on meanwhile. -o is what the names of its captures begin with, "
		    "or a folder (incidents/). It records cpu, wait, io, fault, mem and events.",
	.example = "gasflame record -e cpu -d 30 reth\ngasflame record --follow -d 10m op-reth-seq\n"
		   "gasflame record -F 99 -d 5m -o slow.gasflame -p 4242\n"
		   "gasflame record --rpc ws://127.0.0.1:8545 --mark-function on_new_payload -d 60 reth\n"
		   "gasflame record --keep 10m --when 'block > 500ms' --when 'rss > 90%' --log node.log reth",
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
