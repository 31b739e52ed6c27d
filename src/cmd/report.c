/*
 * report.c - reads captures, selects, and writes one format: the data to stdout or a file, the talk
 * (quality line, warnings) to stderr.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/account.h"
#include "analyze/ident.h"
#include "analyze/quality.h"
#include "analyze/select.h"
#include "analyze/verdict.h"
#include "analyze/waits.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "export/export.h"
#include "profile/capture.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"

enum { DEFAULT_LIMIT = 30, DEFAULT_WIDTH = 1200, MAX_PATTERNS_BYTES = 1 << 20, WAITS_DETAILED = 10 };

struct report {
	const char *format, *output, *what, *function, *title, *weigh, *sort;
	struct option_list threads, processes, symbols, patterns;
	uint64_t from_ns, to_ns, limit, width;
	bool idle, inverted, reverse, by_thread, by_process, merged, no_inline, mark_inlined, debuginfod,
		no_cache;
	const struct export_format *chosen;
};

static void report_done(struct report *r)
{
	vec_done(&r->threads.list);
	vec_done(&r->processes.list);
	vec_done(&r->symbols.list);
	vec_done(&r->patterns.list);
}

/* --- what was asked for --- */

/* The format by name, by the ending of -o, or the tables. */
static void choose_format(struct report *r)
{
	if (r->format)
		r->chosen = export_find(r->format);
	else if (r->output)
		r->chosen = export_find_path(r->output);
	if (!r->chosen)
		r->chosen = export_find("text");
}

/* An option that would do nothing is a mistake to tell, not to swallow. */
static int check_options(const struct report *r)
{
	const char *f = r->chosen->name;
	bool svg = !strcmp(f, "svg"), folded = !strcmp(f, "folded");
	const struct {
		bool given, fits;
		const char *name, *where;
	} checks[] = {
		{ r->width != DEFAULT_WIDTH, svg, "--width", "svg" },
		{ r->title, svg, "--title", "svg" },
		{ r->inverted, svg, "--inverted", "svg" },
		{ r->reverse, svg || folded, "--reverse", "svg and folded" },
		{ r->by_thread, svg || folded, "--by-thread", "svg and folded" },
		{ r->by_process, svg || folded, "--by-process", "svg and folded" },
		{ r->merged, svg || folded, "--merged", "svg and folded" },
		{ r->weigh, svg || folded, "--weigh", "svg and folded" },
		{ r->mark_inlined, folded, "--mark-inlined", "folded" },
		{ r->limit != DEFAULT_LIMIT, !svg && !folded, "--limit", "text and json" },
		{ r->sort, !svg && !folded, "--sort", "text and json" },
	};

	for (size_t i = 0; i < ARRAY_LEN(checks); i++)
		if (checks[i].given && !checks[i].fits) {
			log_error("%s is for %s, and this is %s: choose with --format", checks[i].name,
				  checks[i].where, f);
			return -EINVAL;
		}
	if (r->by_thread + r->by_process + r->merged > 1) {
		log_error("of --by-thread, --by-process and --merged only one makes sense at a time");
		return -EINVAL;
	}
	return 0;
}

/* --- reading --- */

static int read_captures(char **paths, int n, struct profile **ret, struct err *err)
{
	_cleanup_(profile_freep) struct profile *all = NULL;

	for (int i = 0; i < n; i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		int r = capture_read(paths[i], &p, err);

		if (r == -ENOENT && err->code == ENOENT)
			return err_set(err, ENOENT, "there is no file %s: `gasflame ls` lists the captures",
				       paths[i]);
		if (r)
			return r;
		if (!all) {
			all = p;
			p = NULL;
			continue;
		}
		r = profile_merge(all, p, err);
		if (r)
			return err_prefix(err, "cannot add %s to %s", paths[i], paths[0]);
	}
	*ret = all;
	all = NULL;
	return 0;
}

static void show_progress(void *context, const char *module, size_t done, size_t total)
{
	log_progress("finding names: %zu of %zu, %s", done, total, ident_basename(module));
}

/*
 * Names for frames that have none: those of a recorder that died before it came
 * to that, and, if the user says where to look, those that were not found then.
 */
static int find_names(const struct report *report, struct profile *p, struct err *err)
{
	const struct symbolize_options options = { .paths = report->symbols.list.v,
						   .debuginfod = report->debuginfod,
						   .no_cache = report->no_cache,
						   .no_inline = report->no_inline };
	bool again = report->symbols.list.n || report->debuginfod;
	struct symbolizer *s;
	size_t missing = 0;
	int r;

	for (size_t i = 0; i < p->frames.n; i++) {
		struct profile_frame *f = &p->frames.v[i];

		if (again && f->line_count && f->module < p->modules.n &&
		    p->modules.v[f->module].kind == MODULE_FILE && ident_frame_unnamed(p, i))
			f->line_count = 0;
		missing += !f->line_count;
	}
	if (!missing)
		return 0;
	s = symbolizer_new(&options, NULL);
	r = symbolize_profile(s, p, show_progress, NULL, err);
	symbolizer_free(s);
	log_progress_end();
	return r;
}

/* --- writing --- */

/* "slow.gasflame" to "slow.svg". */
static char *path_beside(const char *capture, const char *extension)
{
	size_t n = strlen(capture);

	if (str_ends(capture, ".gasflame"))
		n -= strlen(".gasflame");
	return mem_printf("%.*s%s", (int)n, capture, extension);
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A new file belongs to the owner of the capture, also when root writes it. One that could not be written
 * whole is taken away again. */
static int write_file(const char *path, const struct buf *data, const char *capture, struct err *err)
{
	bool is_new = access(path, F_OK) < 0, regular;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), r;
	struct stat st;

	if (fd < 0)
		return err_errno(err, errno,
				 "cannot write %s (-o names another file, \"-\" is the standard output)",
				 path);
	regular = !fstat(fd, &st) && S_ISREG(st.st_mode);
	if (is_new && !geteuid() && !stat(capture, &st) && fchown(fd, st.st_uid, st.st_gid) < 0)
		log_debug("cannot give %s to the owner of the capture: %m", path);
	r = fd_write_all(fd, data->data, data->n);
	if (close(fd) < 0 && !r)
		r = -errno;
	if (!r)
		return 0;
	if (regular)
		unlink(path);
	return err_errno(err, -r, "cannot write %s", path);
}

/* A picture is of no use in a terminal: it goes beside the capture, and its path is what is printed. */
static int write_out(const struct report *report, const struct buf *data, char **captures, int n,
		     struct err *err)
{
	bool beside = !report->output && !strcmp(report->chosen->name, "svg");
	_cleanup_free_ char *made = beside ? path_beside(captures[0], report->chosen->extension) : NULL;
	const char *path = beside ? made : report->output;
	int r;

	if (!path || !strcmp(path, "-")) {
		if (fwrite(data->data, 1, data->n, stdout) < data->n || fflush(stdout))
			return err_errno(err, errno, "cannot write to the standard output");
		return 0;
	}
	for (int i = 0; i < n; i++)
		if (same_file(path, captures[i]))
			return err_set(err, EINVAL, "%s is the capture itself: name another file with -o",
				       path);
	r = write_file(path, data, captures[0], err);
	if (r)
		return r;
	if (beside)
		printf("%s\n", path);
	else
		log_info("wrote %s", path);
	return 0;
}

static struct export_options export_choices(const struct report *r)
{
	struct export_options o = {
		.group = r->by_thread ? CALLTREE_BY_THREAD : r->by_process ? CALLTREE_BY_PROCESS :
			 r->merged ? CALLTREE_MERGED : CALLTREE_BY_NAME,
		.weigh = !r->weigh ? EXPORT_WEIGH_AUTO : !strcmp(r->weigh, "samples") ? EXPORT_WEIGH_SAMPLES :
											 EXPORT_WEIGH_VALUE,
		.reverse = r->reverse, .no_inline = r->no_inline, .mark_inlined = r->mark_inlined,
		.title = r->title, .width_px = r->width, .inverted = r->inverted, .limit = r->limit,
		.order = r->sort && !strcmp(r->sort, "total") ? TOP_BY_TOTAL : TOP_BY_SELF,
	};
	bool to_stdout = !r->output || !strcmp(r->output, "-");
	struct winsize size;

	if (to_stdout && isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col) {
		o.columns = size.ws_col;
		o.colour = log_colour(STDOUT_FILENO);
	}
	return o;
}

static void tell_quality(const struct quality *q, const struct selection *s)
{
	struct buf line = { 0 };

	fflush(stdout);
	quality_line(q, s, &line);
	log_info("%s", line.data);
	for (size_t i = 0; i < q->warnings.n; i++)
		log_warn("%s", q->warnings.v[i]);
	buf_done(&line);
}

/* What waits mean: the user's files first, in their order, then what is built in. */
static int read_patterns(const struct report *report, struct patterns *t, struct err *err)
{
	patterns_init(t);
	for (size_t i = 0; i < report->patterns.list.n; i++) {
		const char *path = report->patterns.list.v[i];
		_cleanup_free_ char *text = NULL;
		size_t n;
		int r = fd_read_path(path, MAX_PATTERNS_BYTES, &text, &n);

		if (r < 0)
			return err_errno(err, -r, "cannot read the patterns in %s", path);
		if (strlen(text) < n)
			return err_set(err, EINVAL, "%s is no text: patterns are lines of key = value", path);
		r = patterns_add(t, path, text, err);
		if (r)
			return r;
	}
	patterns_add_builtin(t);
	return 0;
}

static bool has_waits(const struct profile *p)
{
	for (size_t i = 0; i < p->events.n; i++)
		if (cause_role(p, i) == ROLE_WAIT)
			return true;
	return false;
}

/* The data in the chosen format, with the account of waits where it has one. */
static int write_format(const struct report *report, struct export_job *job, struct buf *out, struct err *err)
{
	const struct select_options *o = &job->selection->options;
	bool tables = !strcmp(report->chosen->name, "text") || !strcmp(report->chosen->name, "json");
	struct account account = { 0 };
	struct verdict verdict = { 0 };
	struct waits waits = { 0 };
	int r;

	if (tables && account_make(&account, job->profile, o, o->causes)) {
		waits_make(&waits, job->profile, o, WAITS_DETAILED);
		verdict_make(&verdict, job->profile, &account, &waits, o);
		job->account = &account;
		job->waits = &waits;
		job->verdict = &verdict;
	}
	r = report->chosen->write(job, out, err);
	if (job->waits) {
		verdict_done(&verdict);
		waits_done(&waits);
	}
	account_done(&account);
	return r;
}

/* 0 or an exit code of enum exit_code, or a negative errno with a sentence. */
static int run_report(const struct report *report, char **captures, int n, struct err *err)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(selection_done) struct selection selection = { 0 };
	_cleanup_(quality_done) struct quality quality = { 0 };
	_cleanup_(buf_done) struct buf out = { 0 };
	_cleanup_(patterns_done) struct patterns patterns = { 0 };
	_cleanup_(causes_done) struct causes causes = { 0 };
	struct export_job job;
	struct select_options select = { .causes = &causes,
					 .idle = report->idle,
					 .threads = report->threads.list.v,
					 .processes = report->processes.list.v,
					 .from_ns = report->from_ns,
					 .to_ns = report->to_ns,
					 .function = report->function };
	int r;

	r = read_patterns(report, &patterns, err);
	if (!r)
		r = read_captures(captures, n, &p, err);
	if (!r && (report->idle || report->patterns.list.n) && !has_waits(p))
		r = err_set(err, EINVAL, "no waits were recorded, which %s is about: record with -e wait",
			    report->idle ? "--idle" : "--patterns");
	if (!r)
		r = select_event(p, report->what, &select.event, err);
	if (!r)
		r = find_names(report, p, err);
	if (r)
		return r;
	causes_init(&causes, p, &patterns);
	r = selection_make(p, &select, &selection, err);
	if (r)
		return r;
	quality_measure(&quality, p, &selection);
	job = (struct export_job){ p, &selection, &quality, export_choices(report) };
	r = write_format(report, &job, &out, err);
	if (!r)
		r = write_out(report, &out, captures, n, err);
	if (r)
		return r;
	tell_quality(&quality, &selection);
	return quality.fit ? EXIT_OK : EXIT_QUALITY;
}

static int report(const struct command *c, int argc, char **argv)
{
	static const char *const formats[] = { "text", "summary", "json", "svg", "folded", NULL };
	static const char *const weighs[] = { "samples", "value", NULL };
	static const char *const sorts[] = { "self", "total", NULL };
	_cleanup_(report_done) struct report r = { .limit = DEFAULT_LIMIT, .width = DEFAULT_WIDTH };
	const struct option_spec options[] = {
		{ 0, "format", OPTION_CHOICE, &r.format, "FORMAT",
		  "tables as text or JSON, a summary of events, a flame graph, or folded stacks; by default "
		  "what the "
		  "ending of -o says, else text",
		  .choices = formats },
		{ 'o', "output", OPTION_STRING, &r.output, "FILE",
		  "where to write, \"-\" is the standard output; by default there, but a picture is written "
		  "beside the capture and its path printed" },
		{ 0, "what", OPTION_STRING, &r.what, "EVENT",
		  "which of the things recorded (cpu, wait, queue, ...); wall is cpu, wait and queue "
		  "together; by "
		  "default the first" },
		{ 0, "idle", OPTION_FLAG, &r.idle,
		  .help = "take in the waits of threads that have nothing to do" },
		{ 0, "patterns", OPTION_LIST, &r.patterns, "FILE",
		  "more patterns of what waits mean, before those that are built in "
		  "(configs/patterns.conf)" },
		{ 't', "thread", OPTION_LIST, &r.threads, "THREAD",
		  "only this thread: a name, a pattern like 'rpc-*', or a tid" },
		{ 0, "process", OPTION_LIST, &r.processes, "PROCESS",
		  "only this process: a name, a pattern, or a pid" },
		{ 0, "from", OPTION_DURATION, &r.from_ns, "TIME",
		  "only samples from this time of the recording on" },
		{ 0, "to", OPTION_DURATION, &r.to_ns, "TIME", "only samples before this time" },
		{ 'f', "function", OPTION_STRING, &r.function, "REGEX",
		  "only stacks in which a function matches" },
		{ 'n', "limit", OPTION_UINT, &r.limit, "ROWS", "rows of each table, 0 shows all" },
		{ 0, "sort", OPTION_CHOICE, &r.sort, "COLUMN", "order of the tables; by default self",
		  .choices = sorts },
		{ 0, "by-thread", OPTION_FLAG, &r.by_thread,
		  .help = "a root for each thread; without this, threads of one name share one" },
		{ 0, "by-process", OPTION_FLAG, &r.by_process, .help = "a root for each process" },
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
		{ 0, "title", OPTION_STRING, &r.title, "TEXT", "title of the picture" },
		{ 0, "no-inline", OPTION_FLAG, &r.no_inline, .help = "leave out the inlined functions" },
		{ 0, "mark-inlined", OPTION_FLAG, &r.mark_inlined,
		  .help = "folded: put _[i] after inlined functions" },
		{ 0, "symbols", OPTION_LIST, &r.symbols, "PATH",
		  "a file with symbols, or a folder of them, for code that has no names yet" },
		{ 0, "debuginfod", OPTION_FLAG, &r.debuginfod,
		  .help = "ask the servers of DEBUGINFOD_URLS for symbols" },
		{ 0, "no-cache", OPTION_FLAG, &r.no_cache,
		  .help = "neither read nor write the cache of symbols" },
		{ 0 },
	};
	struct err err = { 0 };
	int first = options_parse(c, options, argc, argv), result;

	if (first < 0)
		return -first - 1;
	if (first == argc) {
		log_error("report needs a capture: `gasflame ls` lists those below this folder");
		return EXIT_USAGE;
	}
	choose_format(&r);
	if (check_options(&r))
		return EXIT_USAGE;
	result = run_report(&r, argv + first, argc - first, &err);
	if (result < 0) {
		log_error("%s", err.text);
		return EXIT_ERROR;
	}
	return result;
}

const struct command command_report = {
	.name = "report",
	.summary = "show where the time of a recording went",
	.usage = "[options] FILE...",
	.describe =
		"Reads a capture and writes tables by function, module and thread, or a flame graph, or "
		"folded stacks. Several captures are added up, thread by thread.\n"
		"\n"
		"self is what a function used itself, total what it used with all that it called; "
		"recursion counts once. Inlined functions are shown as if they had been called. A stack "
		"that could not be followed to its end begins with [truncated: reason].\n"
		"\n"
		"Where waits were recorded, the tables begin with a verdict, the account of each thread's "
		"time (on the CPU, in the run queue, and each cause of a wait) and the longest waits with "
		"what ended them. Waits of threads that have nothing to do are idle and left out of tables "
		"and graphs without --idle. Folded stacks of waits weigh microseconds.\n"
		"\n"
		"The data goes to the standard output or to -o, what there is to say about its quality to "
		"the standard error. The exit status is 3 when the recording is not fit to read.",
	.example = "gasflame report slow.gasflame\n"
		   "gasflame report -o engine.svg --thread 'engine*' --from 10 --to 12.5 slow.gasflame\n"
		   "gasflame report --what wall -o wall.svg slow.gasflame\n"
		   "gasflame report --format folded slow.gasflame | grep ext4_ | flamegraph.pl > ext4.svg",
	.run = report,
};
