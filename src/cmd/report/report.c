/*
 * report.c - reads captures, selects, and writes one format: the data to stdout or a file, the talk
 * (quality line, warnings) to stderr.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analyze/quality.h"
#include "analyze/select.h"
#include "analyze/subsystem/chain.h"
#include "analyze/subsystem/classify.h"
#include "analyze/subsystem/opcodes.h"
#include "analyze/task/pollstacks.h"
#include "analyze/tree/restack.h"
#include "analyze/tree/threadrole.h"
#include "analyze/wait/account.h"
#include "analyze/wait/verdict.h"
#include "analyze/wait/waits.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/plain.h"
#include "cmd/cmd.h"
#include "cmd/opener.h"
#include "cmd/reading/captureio.h"
#include "cmd/reading/storeargs.h"
#include "cmd/reading/subsystemio.h"
#include "cmd/filters.h"
#include "cmd/report/opcodes.h"
#include "cmd/report/views.h"
#include "ethereum/trace/opcodegas.h"
#include "export/export.h"
#include "export/report/wrap.h"
#include "profile/profile.h"
#include "profile/redact.h"
#include "symbol/symbolize.h"

enum { DEFAULT_LIMIT = 30, DEFAULT_WIDTH = 1200, WAITS_DETAILED = 10, DEFAULT_MAX_BYTES = 64 << 20 };

struct report {
	const char *format, *output, *what, *function, *title, *weigh, *sort, *rpc;
	struct option_list threads, processes, symbols, patterns, subsystems;
	struct option_moment from, to;
	uint64_t limit, width, max_bytes;
	bool open, idle, inverted, reverse, by_thread, by_process, by_task, merged, no_inline, mark_inlined, debuginfod,
		no_cache, json, redact, wide;
	struct views views;
	struct store_choice store;
	const struct export_format *chosen;
};

static void report_done(struct report *r)
{
	vec_done(&r->threads.list);
	vec_done(&r->processes.list);
	vec_done(&r->symbols.list);
	vec_done(&r->patterns.list);
	vec_done(&r->subsystems.list);
	views_done(&r->views);
	store_choice_done(&r->store);
}

/* --- options --- */

/* The format by name, by the ending of -o, or by an option that only tables have; else the page. */
static void choose_format(struct report *r)
{
	bool tables = r->output || r->sort || r->wide || r->limit != DEFAULT_LIMIT || views_given(&r->views) || r->views.root ||
		      views_grouped(&r->views);

	if (r->json)
		r->chosen = export_find("json");
	else if (r->format)
		r->chosen = export_find(r->format);
	else if (r->output)
		r->chosen = export_find_path(r->output);
	if (!r->chosen)
		r->chosen = export_find(tables ? "text" : "html");
}

/* An option that would do nothing is a mistake to tell, not to swallow. */
static int check_options(const struct report *r)
{
	const char *trees = "the views --tree and --callers";
	unsigned flags = r->chosen->flags;
	enum export_view view = r->views.view;
	bool tree = view == EXPORT_VIEW_TREE || view == EXPORT_VIEW_CALLERS, stacks = flags & EXPORT_STACKS;
	bool rows = flags & EXPORT_ROWS && !tree && view != EXPORT_VIEW_CALLEES && view != EXPORT_VIEW_PHASES;
	bool sorted = flags & EXPORT_ROWS && (view == EXPORT_VIEW_ALL || view == EXPORT_VIEW_FUNCTIONS ||
					      view == EXPORT_VIEW_MODULES || view == EXPORT_VIEW_CRATES);
	const struct check {
		bool given, fits;
		const char *name;
		unsigned flags; /* of the formats that take it */
		const char *more, *part; /* what else takes it; which part of the formats takes it, NULL: the whole */
	} checks[] = {
		{ r->width != DEFAULT_WIDTH, flags & EXPORT_PICTURE, "--width", EXPORT_PICTURE },
		{ r->title, flags & EXPORT_PICTURE, "--title", EXPORT_PICTURE },
		{ r->inverted, flags & EXPORT_PICTURE, "--inverted", EXPORT_PICTURE },
		{ r->reverse, stacks, "--reverse", EXPORT_STACKS },
		{ r->by_thread, stacks || tree, "--by-thread", EXPORT_STACKS, trees },
		{ r->by_process, stacks || tree, "--by-process", EXPORT_STACKS, trees },
		{ r->by_task, stacks || tree, "--by-task", EXPORT_STACKS, trees },
		{ r->merged, stacks || tree, "--merged", EXPORT_STACKS, trees },
		{ r->weigh, stacks, "--weigh", EXPORT_STACKS },
		{ r->mark_inlined, flags & EXPORT_INLINED, "--mark-inlined", EXPORT_INLINED },
		{ r->limit != DEFAULT_LIMIT, rows, "--limit", EXPORT_ROWS, .part = "tables as " },
		{ r->sort, sorted, "--sort", EXPORT_ROWS, .part = "tables of functions, modules and crates as " },
		{ r->wide, flags & EXPORT_LINES, "--wide", EXPORT_LINES },
		{ r->max_bytes != DEFAULT_MAX_BYTES, flags & EXPORT_PAGE, "--max-size", EXPORT_PAGE },
		{ r->open, flags & EXPORT_PAGE, "--open", EXPORT_PAGE },
	};

	for (const struct check *c = checks; c < checks + ARRAY_LEN(checks); c++)
		if (c->given && !c->fits) {
			_cleanup_free_ char *formats = export_list(c->flags, false, c->more);
			const char *part = c->part ? c->part : "";

			if (views_given(&r->views) && flags & EXPORT_VIEWS)
				log_error("%s is for %s%s: this report has none", c->name, part, formats);
			else
				log_error("%s is for %s%s, and this is %s: choose with --format", c->name, part, formats,
					  r->chosen->name);
			return -EINVAL;
		}
	if (r->open && !strcmp(r->output ? r->output : command_operands.v[0], "-")) {
		log_error("--open opens a file: name it with -o");
		return -EINVAL;
	}
	if (flags & EXPORT_BINARY && (!r->output || !strcmp(r->output, "-")) && isatty(STDOUT_FILENO)) {
		log_error("%s is no text for a terminal: name a file with -o, or pipe it on", r->chosen->name);
		return -EINVAL;
	}
	if (r->by_thread + r->by_process + r->by_task + r->merged > 1) {
		log_error("of --by-thread, --by-process, --by-task and --merged only one makes sense at a time");
		return -EINVAL;
	}
	if (r->by_task && (r->views.root || views_grouped(&r->views))) {
		log_error("--by-task is about stacks as they were recorded: leave out %s", r->views.root ? "--root" : "--group");
		return -EINVAL;
	}
	if (r->rpc && (!(flags & EXPORT_VIEWS) || (view != EXPORT_VIEW_ALL && view != EXPORT_VIEW_SUBSYSTEMS))) {
		log_error("--rpc is for the table of opcodes: use it with --table subsystems, or the whole report as text or JSON");
		return -EINVAL;
	}
	if (r->json && r->format && strcmp(r->format, "json")) {
		log_error("--json is --format json, and --format %s was given: choose one", r->format);
		return -EINVAL;
	}
	return views_check(&r->views, r->chosen, r->no_inline);
}

/* --- writing --- */

/* A picture is of no use in a terminal: it goes beside the capture, if that is a file, and its path is
 * printed. Of the standard input and a store there is no beside. */
static int write_out(const struct report *report, const struct buf *data, char **captures, int n,
		     struct err *err)
{
	bool beside = !report->output && captureio_has_beside(captures[0]) && report->chosen->flags & EXPORT_BESIDE;
	_cleanup_free_ char *made = beside ? captureio_beside(captures[0], report->chosen->extension) : NULL;
	const char *path = beside ? made : report->output;
	int r = beside ? captureio_write_beside(path, data, captures, n, err)
	               : captureio_write(path, data, captures, n, err);

	if (r || !path || !strcmp(path, "-"))
		return r;
	if (beside)
		plain_put_path(path);
	else
		log_info("wrote %s", path);
	if (report->open)
		opener_show(path);
	return 0;
}

static struct export_options export_choices(const struct report *r)
{
	struct export_options o = {
		.group = r->by_thread ? CALLTREE_BY_THREAD : r->by_process ? CALLTREE_BY_PROCESS :
			 r->by_task ? CALLTREE_BY_TASK : r->merged ? CALLTREE_MERGED : CALLTREE_BY_NAME,
		.weigh = !r->weigh ? EXPORT_WEIGH_AUTO : !strcmp(r->weigh, "samples") ? EXPORT_WEIGH_SAMPLES :
											 EXPORT_WEIGH_VALUE,
		.reverse = r->reverse, .no_inline = r->no_inline, .mark_inlined = r->mark_inlined,
		.title = r->title, .width_px = r->width, .max_bytes = r->max_bytes, .inverted = r->inverted,
		.limit = r->limit, .default_limit = r->limit == DEFAULT_LIMIT,
		.order = r->sort && !strcmp(r->sort, "total") ? TOP_BY_TOTAL : TOP_BY_SELF,
		.view = r->views.view, .pattern = r->views.pattern, .phases = r->views.phase_names.list.v,
		.own = r->views.own.list.v, .grouped = views_grouped(&r->views),
		.percent_limit = r->views.percent_limit, .depth = r->views.depth,
		.every_event = r->chosen->flags & EXPORT_EVENTS && !r->what,
	};
	bool page = r->chosen->flags & EXPORT_PAGE, to_stdout = !r->output || !strcmp(r->output, "-");
	int fd = page ? STDERR_FILENO : STDOUT_FILENO;
	struct winsize size;

	if ((page || to_stdout) && isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size) && size.ws_col) {
		o.columns = r->wide ? 0 : size.ws_col;
		o.colour = log_colour(fd);
	}
	return o;
}

/* Beside a page: a summary of it. Beside data: their quality. */
static void tell(const struct report *report, const struct export_job *job)
{
	const struct quality *q = job->quality;
	_cleanup_(buf_done) struct buf text = { 0 };

	if (report->chosen->flags & EXPORT_PAGE) {
		terminalsummary_put(job, &text);
		text.data[text.n - 1] = 0; /* the last line's end comes with the log's */
	} else {
		fflush(stdout);
		quality_line(q, job->selection, &text);
	}
	wrap_lines(&text, 0, job->options.columns);
	log_lines(text.data);
	for (size_t i = 0; i < q->warnings.n; i++)
		log_warn("%s", q->warnings.v[i]);
}

/* Writes the data in the chosen format, with the account of waits where it has one, and the remarks. A
 * script that takes the path of a page gets nothing but the path, and a person sees it last. */
static int write_format(const struct report *report, struct export_job *job, char **captures, int n,
			struct err *err)
{
	const struct select_options *o = &job->selection->options;
	bool page = report->chosen->flags & EXPORT_PAGE;
	_cleanup_(buf_done) struct buf out = { 0 };
	struct account account = { 0 };
	struct verdict verdict = { 0 };
	struct waits waits = { 0 };
	bool all = report->chosen->flags & EXPORT_ACCOUNT && report->views.view == EXPORT_VIEW_ALL && !report->views.root;
	int r;

	if (all && account_make(&account, job->profile, o, o->causes)) {
		waits_make(&waits, job->profile, o, WAITS_DETAILED);
		verdict_make(&verdict, job->profile, &account, &waits, o);
		job->account = &account;
		job->waits = &waits;
		job->verdict = &verdict;
	} else if (all) {
		verdict_make_without_waits(&verdict, job->profile, o);
		job->verdict = &verdict;
	}
	r = report->chosen->write(job, &out, err);
	if (!r && page)
		tell(report, job);
	if (!r)
		r = write_out(report, &out, captures, n, err);
	if (!r && !page)
		tell(report, job);
	if (job->waits)
		waits_done(&waits);
	verdict_done(&verdict);
	account_done(&account);
	return r;
}

/* Does it show a part of the time, of which each sample has to tell its own? */
static bool needs_times(const struct report *r)
{
	return r->from.ns || r->to.ns || r->chosen->flags & EXPORT_TIMES || r->views.phases.list.n || r->views.marks;
}

/* 0 or an exit code of enum exit_code, or a negative errno with a sentence. */
static int run_report(const struct report *report, char **captures, int n, struct err *err)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(selection_done) struct selection selection = { 0 };
	_cleanup_(quality_done) struct quality quality = { 0 };
	_cleanup_(patterns_done) struct patterns patterns = { 0 };
	_cleanup_(causes_done) struct causes causes = { 0 };
	_cleanup_(subsystems_done) struct subsystems table = { 0 };
	_cleanup_(classifier_done) struct classifier subsystems = { 0 };
	_cleanup_(opcodegas_done) struct opcodegas gas = { 0 };
	_cleanup_(opcode_costs_done) struct opcode_costs opcodes = { 0 };
	const struct symbolize_options names = { .paths = report->symbols.list.v,
						 .debuginfod = report->debuginfod,
						 .no_cache = report->no_cache,
						 .no_inline = report->no_inline };
	struct export_job job;
	struct select_options select = { .causes = &causes,
					 .idle = report->idle,
					 .threads = report->threads.list.v,
					 .processes = report->processes.list.v,
					 .from_ns = report->from.ns,
					 .to_ns = report->to.ns,
					 .function = report->function };
	int r;

	r = captureio_read_patterns(&report->patterns, &patterns, err);
	if (!r)
		r = subsystemio_read(&report->subsystems, &table, err);
	if (!r)
		r = needs_times(report) ? captureio_read(captures, n, &p, err) : captureio_read_sums(captures, n, &p, err);
	if (!r && (report->idle || report->patterns.list.n) && !select_has_waits(p))
		r = err_set(err, EINVAL, "no waits were recorded, which %s is about: record with -e wait",
			    report->idle ? "--idle" : "--patterns");
	if (!r)
		r = select_event(p, report->what, &select.event, err);
	if (!r)
		r = captureio_find_names(&names, p, err);
	if (r)
		return r;
	/* In a redacted capture, names that were found just now are redacted as well. */
	if (report->redact || p->redacted)
		redact_profile(p);
	threadrole_tell_apart(p);
	causes_init(&causes, p, &patterns);
	classifier_init(&subsystems, p, &table);
	r = selection_make(p, &select, &selection, err);
	if (!r && report->rpc)
		r = opcodes_ask(report->rpc, &subsystems, &causes, &gas, &opcodes, err);
	if (r)
		return r;
	quality_measure(&quality, p, &selection);
	pollstacks_apply(p, &selection);
	if (report->views.by_subsystem)
		chain_apply(p, &selection, &subsystems);
	r = restack_apply(p, &selection, &(struct restack_options){ .root = report->views.root,
								.groups = report->views.groups.list.v,
								.no_inline = report->no_inline }, err);
	if (r)
		return r;
	job = (struct export_job){ p, &selection, &quality, export_choices(report), .subsystems = &subsystems,
				   .opcodes = report->rpc ? &opcodes : NULL };
	r = write_format(report, &job, captures, n, err);
	if (r)
		return r;
	return quality.fit ? EXIT_OK : EXIT_QUALITY;
}

static int report(const struct command *c, int argc, char **argv)
{
	static const char *const weighs[] = { "samples", "value", NULL };
	static const char *const sorts[] = { "self", "total", NULL };
	static const char *const tables[] = { "functions", "modules", "crates", "threads", "groups", "subsystems", NULL };
	_cleanup_(report_done) struct report r = { .limit = DEFAULT_LIMIT, .width = DEFAULT_WIDTH,
						   .max_bytes = DEFAULT_MAX_BYTES,
						   .views.percent_limit = VIEWS_PERCENT_LIMIT };
	struct views *v = &r.views;
	const struct option_spec options[] = {
		{ 0, "format", OPTION_CHOICE, &r.format, "FORMAT",
		  "how to show it (gasflame formats says what each is); by default what the ending of -o says, or text where it says nothing; "
		  "without -o a page", .choices = export_names(false) },
		{ 0, "json", OPTION_FLAG, &r.json, .help = "the same as --format json" },
		{ 'o', "output", OPTION_STRING, &r.output, "FILE",
		  "where to write, \"-\" is the standard output; by default there, but a page or a picture "
		  "is written beside the capture and its path printed" },
		{ 0, "open", OPTION_FLAG, &r.open,
		  .help = "open the page in the browser (xdg-open), behind sudo as the user who called it" },
		FILTER_OPTIONS(&r),
		STORE_OPTIONS(&r.store),
		{ 0, "root", OPTION_STRING, &v->root, "REGEX",
		  "only what is below this function, which all shares are of then" },
		{ 0, "group", OPTION_LIST, &v->groups, "NAME=REGEX",
		  "one name in place of all functions that match; REGEX alone: what its first (...) holds "
		  "is the name; the word subsystem: stacks of subsystems in place of functions" },
		SUBSYSTEMS_OPTION(&r.subsystems),
		{ 0, "rpc", OPTION_STRING, &r.rpc, "URL",
		  "ask this node, which must trace with JavaScript (debug_traceTransaction), for the gas of the opcodes in the "
		  "recorded blocks: the table of opcodes has nanoseconds a gas then" },
		{ 0, "table", OPTION_CHOICE, &v->table, "TABLE",
		  "only this table; crates has more than the whole report: which of your own crates each "
		  "stack belongs to, by its outermost and by its nearest function",
		  .choices = tables },
		{ 0, "tree", OPTION_FLAG, &v->tree, .help = "the call tree" },
		{ 0, "callers", OPTION_STRING, &v->callers, "REGEX", "a tree of who calls this function" },
		{ 0, "callees", OPTION_STRING, &v->callees, "REGEX", "a tree of what this function calls" },
		{ 0, "percent-limit", OPTION_PERCENT, &v->percent_limit, "PERCENT",
		  "leave out branches of a tree that are less of it" },
		{ 0, "depth", OPTION_UINT, &v->depth, "LEVELS", "of a tree, 0 shows all" },
		{ 0, "nearest-own", OPTION_STRING, &v->nearest_own, "REGEX",
		  "which functions of your own lead to this one: memcpy, malloc, sload, ..." },
		{ 0, "own", OPTION_LIST, &v->own, "CRATE",
		  "what counts as your own: crates or libraries, also a pattern like 'reth*'; by default "
		  "those that begin with the program's name" },
		{ 0, "phases", OPTION_LIST, &v->phases, "REGEX,...",
		  "the share and the time of phases: of these functions while they are on the stack, in "
		  "their order" },
		{ 0, "marks", OPTION_FLAG, &v->marks,
		  .help = "the share and the time of the recording's marks: blocks, ..." },
		{ 'n', "limit", OPTION_UINT, &r.limit, "ROWS", "rows of each table, 0 shows all" },
		{ 0, "wide", OPTION_FLAG, &r.wide,
		  .help = "on a terminal too: names whole, every column, lines as long as they come" },
		{ 0, "sort", OPTION_CHOICE, &r.sort, "COLUMN", "order of the tables; by default self",
		  .choices = sorts },
		{ 0, "by-thread", OPTION_FLAG, &r.by_thread,
		  .help = "a root for each thread; without this, threads of one name share one" },
		{ 0, "by-process", OPTION_FLAG, &r.by_process, .help = "a root for each process" },
		{ 0, "by-task", OPTION_FLAG, &r.by_task,
		  .help = "a root for each unit of work that pools of threads ran (a task of tokio, a job, a goroutine), with "
			  "the stack from there on" },
		{ 0, "merged", OPTION_FLAG, &r.merged,
		  .help = "no threads: stacks begin with their outermost function" },
		{ 0, "weigh", OPTION_CHOICE, &r.weigh, "BY",
		  "what a stack counts: its samples, or their value in ns or bytes; by default samples where "
		  "all of them are worth the same",
		  .choices = weighs },
		{ 0, "reverse", OPTION_FLAG, &r.reverse,
		  .help = "stacks from the leaf to the root: who calls the hot functions" },
		{ 0, "inverted", OPTION_FLAG, &r.inverted, .help = "the root on top, as icicles" },
		{ 0, "width", OPTION_UINT, &r.width, "PIXELS", "width of the picture", .min = 600,
		  .max = 20000 },
		{ 0, "max-size", OPTION_SIZE, &r.max_bytes, "SIZE",
		  "most that the data in a page may take, 0 is no limit; above it the lightest stacks are "
		  "left out, and the page says so" },
		{ 0, "title", OPTION_STRING, &r.title, "TEXT", "title of the picture" },
		{ 0, "redact", OPTION_FLAG, &r.redact, .help =
		  "for a report that is passed on: leave out command lines, paths but for the names of programs, libraries and "
		  "source files, names of threads, containers, units and files that were read or written, the host and the target" },
		NAME_OPTIONS(&r),
		{ 0, "mark-inlined", OPTION_FLAG, &r.mark_inlined,
		  .help = "folded: put _[i] after inlined functions" },
		{ 0 },
	};
	struct err err = { 0 };
	int first = options_parse(c, options, argc, argv), result;

	if (first < 0)
		return -first - 1;
	if (views_choose(v))
		return EXIT_USAGE;
	choose_format(&r);
	if (check_options(&r))
		return EXIT_USAGE;
	result = run_report(&r, command_operands.v, command_operands.n, &err);
	if (result < 0) {
		log_error("%s", err.text);
		return EXIT_ERROR;
	}
	return result;
}

const struct command command_report = {
	.name = "report",
	.summary = "show where the time of a recording went",
	.usage = "[options] [FILE...]",
	.describe =
		"Reads a capture and writes one HTML file beside it, which opens in any browser without a "
		"network: flame graphs of all that was recorded, time, tables, and what it all comes to. A "
		"summary goes to the standard error, the path of the file to the standard output. With "
		"--format the same as tables by function, module and thread, as a picture, or as folded "
		"stacks. Several captures are added up, thread by thread. It also reads folded stacks "
		"directly, from a file or \"-\", the standard input. " COMMAND_NEWEST "\n"
		"\n"
		"With --store it is the profile of a --target and a time in a store (gasflame store --help); --from and --to are times of the "
		"calendar then: 2026-11-17 10:00 (local), 2026-11-17T10:00:30Z, seconds since 1970, or -1h before now. A page needs -o.\n"
		"\n"
		"The page holds everything whatever is selected: filters and --what are only what it shows "
		"first.\n"
		"\n"
		"self is what a function used itself, total what it used with all that it called; "
		"recursion counts once. Inlined functions are shown as if they had been called. A stack "
		"that could not be followed to its end begins with [truncated: reason]. On a terminal names of functions "
		"are shortened as on the page: Vec<..>::push, and no line is longer than it is wide; with --wide, in a pipe or "
		"in a file they are whole.\n"
		"\n"
		"Where waits were recorded, the tables begin with a verdict; after the functions follow the longest "
		"waits with what ended them, and the account of each thread's time (on the CPU, in the run queue, and "
		"each cause of a wait). Waits of threads that have nothing to do are idle and left out of tables "
		"and graphs without --idle. Folded stacks of waits weigh microseconds.\n"
		"\n"
		"Of many questions each has its report: --table, --tree, --callers, --callees, "
		"--nearest-own, --phases and --marks, as text or JSON, of whatever --what, --thread, --from "
		"and --to select. --root and --group change the stacks first, also of flame graphs and "
		"folded stacks. In tables by crate kinds are guessed: own is what --own says, or what is "
		"called as the program. A sample within two phases is of the inner one; a mark that is only "
		"a moment lasts until the next one of its kind.\n"
		"\n"
		"The data goes to the standard output or to -o, what there is to say about its quality to "
		"the standard error. The exit status is 3 when the recording is not fit to read.",
	.example = "gasflame report\n"
		   "gasflame report slow.gasflame\n"
		   "gasflame report --format text --limit 10 slow.gasflame\n"
		   "gasflame report -o engine.svg --thread 'engine*' --from 10 --to 12.5 slow.gasflame\n"
		   "gasflame report --what wall -o wall.svg slow.gasflame\n"
		   "gasflame report --store clickhouse://127.0.0.1:8123/gasflame --target reth-1 --from '2026-11-17 02:00' --to '2026-11-17 02:10' -o stall.html\n"
		   "gasflame report --root add_block --group 'opcodes::op_(\\w+)' slow.gasflame\n"
		   "gasflame report --nearest-own '^malloc$' --own 'ethrex*' slow.gasflame\n"
		   "gasflame report --format folded slow.gasflame | grep ext4_ | flamegraph.pl > ext4.svg",
	.run = report,
	.newest = 1,
};
