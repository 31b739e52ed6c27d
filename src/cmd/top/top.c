/*
 * top.c - a running program or a recording, on the terminal or as tables.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/filters.h"
#include "cmd/reading/captureio.h"
#include "cmd/reading/input.h"
#include "cmd/reading/reading.h"
#include "cmd/reading/storeargs.h"
#include "cmd/stop.h"
#include "cmd/top/artifacts.h"
#ifdef GASFLAME_COLLECTORS
#include "cmd/top/livesource.h"
#include "collect/blocks/blockmarks.h"
#endif
#include "capture/capture.h"
#include "cmd/recording/recorder.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"
#include "tui/look.h"
#include "tui/tui.h"

enum { DEFAULT_HZ = 99, DEFAULT_LIMIT = 20, PIPE_COLUMNS = 110 };
static const uint64_t second_ns = 1000000000, max_table_bytes = 512ULL << 20;

struct top_choice {
	struct option_list pids, symbols;
	const char *what, *weigh, *page, *thread, *function, *filter, *log, *rpc;
	uint64_t hz, interval_ns, window_ns, count, limit, max_bytes;
	struct option_moment from, to;
	struct store_choice store;
	double max_overhead; /* percent */
	bool batch, json, idle, no_inline, debuginfod;
};

/* --- a recording --- */

struct recorded {
	struct profile *profile;
	const struct top_choice *choice;
};

static const struct profile *recorded_refresh(void *context, uint64_t last_ns, bool hold,
					      unsigned *ret_changes)
{
	struct recorded *r = context;

	return r->profile;
}

static void recorded_state(void *context, struct buf *b)
{
}

static void recorded_code(void *context, const struct profile *p, uint32_t module, uint64_t address,
			  struct code_text *ret)
{
	struct recorded *r = context;

	artifacts_code(p, module, address, r->choice->symbols.list.v, ret);
}

static int recorded_write(void *context, const char *what, const struct look_file *files, size_t n,
			  char **ret_stem, struct err *err)
{
	return artifacts_write(NULL, what, files, n, ret_stem, err);
}

/* Symbolizes frames without names: those of a recorder that died before it did, and what --symbols is for. */
static int find_names(const struct top_choice *c, struct profile *p, struct err *err)
{
	const struct symbolize_options options = { .paths = c->symbols.list.v, .no_inline = c->no_inline,
						   .debuginfod = c->debuginfod };

	return captureio_find_names(&options, p, err);
}

/* --- either --- */

static int show(const struct top_choice *c, const struct source *source, struct err *err)
{
	struct winsize size;
	bool wide = isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col;
	struct tui_options o = { .page = c->page ? page_find(c->page) : PAGE_COUNT,
				 .interval_ns = c->interval_ns,
				 .window_ns = c->window_ns,
				 .count = c->count,
				 .limit = c->limit,
				 .columns = wide ? size.ws_col : PIPE_COLUMNS,
				 .filter = c->filter,
				 .json = c->json };
	struct scope scope = { .what = mem_strdup(c->weigh),
			       .thread = mem_strdup(c->thread),
			       .function = mem_strdup(c->function),
			       .from_ns = c->from.ns,
			       .to_ns = c->to.ns,
			       .idle = c->idle };

#ifdef GASFLAME_CURSES
	if (!c->batch && !c->json)
		return tui_run(source, &o, &scope, err);
#else
	if (!c->batch && !c->json) {
		scope_done(&scope);
		return err_set(err, ENOTSUP,
			       "this gasflame was built without ncurses: --batch prints tables, --json a "
			       "line a refresh");
	}
#endif
	return tui_batch(source, &o, &scope, err);
}

static int show_recording(const struct top_choice *c, const char *path, struct err *err)
{
	struct recorded r = { .choice = c };
	struct source source = { .context = &r,
				 .title = path,
				 .refresh = recorded_refresh,
				 .state = recorded_state,
				 .code = recorded_code,
				 .write = recorded_write };
	int e = input_read(path, &r.profile, err);

	if (e >= 0)
		e = find_names(c, r.profile, err);
	if (e >= 0)
		e = show(c, &source, err);
	profile_free(r.profile);
	return e < 0 ? e : 0;
}

#ifdef GASFLAME_COLLECTORS
static int show_target(const struct top_choice *c, char **names, int count, struct err *err)
{
	const struct blockmarks_options marks = { .log = c->log, .log_fd = -1, .rpc = c->rpc };
	struct livesource_options o = {
		.session = { .what_default = !c->what,
			     .what = c->what ? c->what : "cpu,wait,io",
			     .hz = c->hz,
			     .max_overhead = c->max_overhead,
			     .event_rate = 1000,
			     .marks = c->log || c->rpc ? &marks : NULL },
		.symbols = { .paths = c->symbols.list.v,
			     .no_inline = c->no_inline,
			     .debuginfod = c->debuginfod },
		.window_ns = c->window_ns ? c->window_ns : second_ns,
		.max_bytes = c->max_bytes,
	};
	struct livesource *live = NULL;
	struct source source;
	int r = targets_find(&o.who, &c->pids, names, count, err);

	stop_catch(false, tui_stop);
	if (r >= 0) {
		recorder_raise_limits();
		recorder_hurry(true);
		r = livesource_open(&o, &live, err);
	}
	if (r >= 0) {
		livesource_fill(live, &source);
		r = show(c, &source, err);
	}
	if (r == 1)
		log_warn("the target has ended");
	livesource_close(live);
	targets_done(&o.who);
	return r;
}
#else
static int show_target(const struct top_choice *c, char **names, int count, struct err *err)
{
	return err_set(err, ENOTSUP,
		       "this gasflame was built without recording: it opens captures only, and %s is "
		       "none",
		       count ? names[0] : "that");
}
#endif

/* A file is meant where there is one of that name; a process may be called like a folder. */
static bool is_file(const char *name)
{
	struct stat st;

	return !stat(name, &st) && S_ISREG(st.st_mode);
}

/* An option that would do nothing is a mistake to tell. */
static int check(const struct top_choice *c, bool recording, int operands, struct err *err)
{
	if (recording && (operands > 1 || c->pids.list.n))
		return err_set(err, EINVAL, "one capture at a time; several are added up by gasflame report");
	if (recording && c->what)
		return err_set(err, EINVAL,
			       "-e chooses what is recorded, and this is a recording: --what chooses what of "
			       "it is weighed");
	if (recording && (c->log || c->rpc))
		return err_set(err, EINVAL, "--log and --rpc are for a running node: a recording has its blocks already");
	if (!recording && (c->from.ns || c->to.ns))
		return err_set(err, EINVAL,
			       "--from and --to are for recordings: --window says how much of the past of a "
			       "running program is shown");
	if (c->to.ns && c->from.ns >= c->to.ns)
		return err_set(err, EINVAL, "--from is not before --to: nothing lies between them");
	if (c->interval_ns < second_ns / 10)
		return err_set(err, EINVAL, "--interval is at least 0.1 s");
	if (c->window_ns > 3600 * second_ns)
		return err_set(err, EINVAL, "--window is at most an hour; 0 shows all since the start");
	return 0;
}

static int top(const struct command *command, int argc, char **argv)
{
	static const char *const page_names[] = { "functions", "threads", "waits", "io",
						  "memory",    "tree",    "blocks", "tasks", NULL };
	struct top_choice c = { .hz = DEFAULT_HZ, .max_overhead = 5, .interval_ns = second_ns,
				.window_ns = 10 * second_ns,
				.limit = DEFAULT_LIMIT, .max_bytes = max_table_bytes };
	const struct option_spec options[] = {
		{ 'p', "pid", OPTION_LIST, &c.pids, "PID", "a process" },
		{ 'e', "event", OPTION_STRING, &c.what, "WHAT",
		  "what to record, separated by commas; by default cpu,wait,io (gasflame events lists all)" },
		{ 'F', "frequency", OPTION_UINT, &c.hz, "HZ", "samples a second on each CPU", 1, 20000 },
		{ 0, "max-overhead", OPTION_PERCENT, &c.max_overhead, "PERCENT",
		  "record less by itself where this costs more of the target's CPU time (of one CPU, where it uses less); 0: no "
		  "limit" },
		{ 0, "log", OPTION_STRING, &c.log, "FILE",
		  "the node's log, followed from now on: its blocks get a page (a file, a pipe, or journal:UNIT)" },
		{ 0, "rpc", OPTION_STRING, &c.rpc, "URL",
		  "the node's JSON-RPC, http or ws: the gas and transactions of its blocks, and without --log when they came" },
		{ 0, "interval", OPTION_DURATION, &c.interval_ns, "TIME", "from one refresh to the next" },
		{ 0, "window", OPTION_DURATION, &c.window_ns, "TIME",
		  "how much of the past is shown; 0: all since the start (key t)" },
		{ 0, "page", OPTION_CHOICE, &c.page, "PAGE", "which page first; with --batch the only one",
		  .choices = page_names },
		{ 0, "what", OPTION_STRING, &c.weigh, "EVENT",
		  "what is weighed at first (cpu, wait, queue, read, ..., wall)" },
		{ 't', "thread", OPTION_STRING, &c.thread, "THREAD",
		  "only this thread: a name, a pattern like 'rpc-*', or a tid" },
		{ 'f', "function", OPTION_STRING, &c.function, "REGEX",
		  "only stacks in which a function matches" },
		{ 0, "filter", OPTION_STRING, &c.filter, "WORDS", "only rows that have these words" },
		{ 0, "from", OPTION_MOMENT, &c.from, "TIME", "a recording: only from this time on; with --store a time of the calendar" },
		{ 0, "to", OPTION_MOMENT, &c.to, "TIME", "a recording: only before this time" },
		STORE_OPTIONS(&c.store),
		{ 0, "idle", OPTION_FLAG, &c.idle,
		  .help = "take in the waits of threads that have nothing to do" },
		{ 'b', "batch", OPTION_FLAG, &c.batch, .help = "print tables instead, for files and pipes" },
		{ 0, "json", OPTION_FLAG, &c.json, .help = "print a line of JSON a refresh instead" },
		{ 'n', "count", OPTION_UINT, &c.count, "N", "end after so many refreshes; 0: go on", 0,
		  UINT32_MAX },
		{ 0, "limit", OPTION_UINT, &c.limit, "ROWS",
		  "with --batch and --json: rows of each table, 0 shows all" },
		{ 0, "max-memory", OPTION_SIZE, &c.max_bytes, "BYTES",
		  "start over when the tables of stacks and names have grown to this" },
		{ 0, "symbols", OPTION_LIST, &c.symbols, "PATH",
		  COMMAND_SYMBOLS },
		{ 0, "debuginfod", OPTION_FLAG, &c.debuginfod,
		  .help = "ask the servers of DEBUGINFOD_URLS for debug files" },
		{ 0, "no-inline", OPTION_FLAG, &c.no_inline,
		  .help = "names from symbol tables only: no lines, no inlined functions" },
		{ 0 },
	};
	int first = options_parse(command, options, argc, argv), r;
	struct err err = { 0 };
	bool recording, refused;

	if (first < 0)
		return -first - 1;
	recording = command_operands.n && (is_file(command_operands.v[0]) || input_is_store(command_operands.v[0]));
	r = check(&c, recording, command_operands.n, &err);
	/* Of a capture it is a reader, as report is. */
	refused = !r && recording && reading_begin(command, options, command_operands.v, command_operands.n);
	if (!r && !refused)
		r = recording ? show_recording(&c, command_operands.v[0], &err)
			      : show_target(&c, command_operands.v, command_operands.n, &err);
	vec_done(&c.pids.list);
	vec_done(&c.symbols.list);
	store_choice_done(&c.store);
	return refused ? EXIT_ERROR : r < 0 ? command_failed(&err) : r ? EXIT_GONE : EXIT_OK;
}

const struct command command_top = {
	.name = "top",
	.summary = "watch a running program, or walk through a recording, in the terminal",
	.usage = "[options] [TARGET... | FILE]",
	.describe =
		"Shows where the time of a running program goes, refreshed each second: functions, threads with "
		"what their time was (on the CPU, in the run queue, and each cause of a wait), the places where "
		"threads wait, files and functions that read and write, memory of each process, the call "
		"tree, and the blocks of a node (--log, --rpc). A TARGET is " COMMAND_TARGETS ". A FILE is a capture "
		"of gasflame record; with --store it is the profile of a --target and a time in a store (gasflame store --help). Without a TARGET: " COMMAND_NEWEST "\n"
		"\n"
		"Keys: 1 to 8 and Tab choose a page, the arrows a row, Enter opens it (callers of a function, "
		"functions of a thread or a block, wakers of a wait with what they ran and what they waited for themselves), c d l i show callers, callees, lines and instructions of a function, s "
		"sorts, w weighs something else, / filters, t shows the last seconds or all since the start, p "
		"pauses, f writes the flame graph of what is shown, ? lists all keys, q quits.\n"
		"\n"
		"Works over ssh in 80 columns and 24 lines, with 8 colours or none (NO_COLOR). The exit status is "
		"4 when the target ended meanwhile.",
	.example = "gasflame top reth\n"
		   "gasflame top --batch -n 3 --page threads -p 4242\n"
		   "gasflame top slow.gasflame\n"
		   "gasflame top --store clickhouse://127.0.0.1:8123/gasflame --target reth-1 --from -1h",
	.run = top,
	.newest = 1,
	.keeps_rights = true, /* of a running program */
	.pictures = true,
};
