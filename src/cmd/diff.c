/*
 * diff.c - compares two recordings: what takes more, what takes less, and what is only noise.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analyze/diff/diff.h"
#include "analyze/quality.h"
#include "analyze/subsystem/chain.h"
#include "analyze/subsystem/classify.h"
#include "analyze/tree/threadrole.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text/plain.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/reading/captureio.h"
#include "cmd/reading/storeargs.h"
#include "cmd/reading/subsystemio.h"
#include "cmd/filters.h"
#include "export/diff/difftext.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"

enum { DEFAULT_LIMIT = 30, DEFAULT_MAX_BYTES = 64 << 20 };

struct diff_command {
	const char *format, *output, *what, *function, *sort, *group;
	struct option_list threads, processes, symbols, patterns, subsystems;
	struct option_moment from, to;
	struct store_choice store;
	struct store_base base;
	uint64_t limit, max_bytes;
	bool json, absolute, idle, no_inline, debuginfod, no_cache, fail_on_change;
	const struct export_format *chosen;
	bool page_beside; /* also writes the page, when no output was chosen */
};

/* A recording, with all that is made of it. */
struct side {
	const char *path;
	struct profile *profile;
	struct patterns patterns;
	struct causes causes;
	struct subsystems table;
	struct classifier subsystems;
	struct selection selection;
	struct quality quality;
	struct export_job job;
};

static void command_done(struct diff_command *c)
{
	vec_done(&c->threads.list);
	vec_done(&c->processes.list);
	vec_done(&c->symbols.list);
	vec_done(&c->patterns.list);
	vec_done(&c->subsystems.list);
	store_choice_done(&c->store);
}

static void side_done(struct side *s)
{
	quality_done(&s->quality);
	selection_done(&s->selection);
	causes_done(&s->causes);
	patterns_done(&s->patterns);
	classifier_done(&s->subsystems);
	subsystems_done(&s->table);
	profile_free(s->profile);
}

/* --- options --- */

static int choose_format(struct diff_command *c)
{
	if (c->json && c->format && strcmp(c->format, "json")) {
		log_error("--json and --format %s are two formats: choose one", c->format);
		return -EINVAL;
	}
	if (c->json)
		c->format = "json";
	if (c->format)
		c->chosen = export_find(c->format);
	else if (c->output)
		c->chosen = export_find_path(c->output);
	if (!c->chosen || !c->chosen->diff)
		c->chosen = export_find("text");
	/* The page shows functions, whatever the table is about. */
	c->page_beside = !c->format && !c->output && !c->group;
	return 0;
}

/* An option that would do nothing is a mistake to tell, not to swallow. */
static int check_options(const struct diff_command *c)
{
	bool rows = c->chosen->flags & EXPORT_ROWS, page = c->chosen->flags & EXPORT_PAGE || c->page_beside;
	const struct {
		bool given, fits;
		const char *name;
		unsigned flags; /* of formats that take it */
	} checks[] = {
		{ c->limit != DEFAULT_LIMIT, rows, "--limit", EXPORT_ROWS },
		{ c->sort, rows, "--sort", EXPORT_ROWS },
		{ c->max_bytes != DEFAULT_MAX_BYTES, page, "--max-size", EXPORT_PAGE },
	};

	for (size_t i = 0; i < ARRAY_LEN(checks); i++)
		if (checks[i].given && !checks[i].fits) {
			_cleanup_free_ char *formats = export_list(checks[i].flags, true, NULL);

			log_error("%s is for %s, and this is %s: choose with --format", checks[i].name, formats,
				  c->chosen->name);
			return -EINVAL;
		}
	if (c->group && c->chosen->flags & EXPORT_PAGE) {
		log_error("--group is for tables and folded stacks: a page compares functions, and has the colours of subsystems");
		return -EINVAL;
	}
	return 0;
}

static struct export_options export_choices(const struct diff_command *c)
{
	struct export_options o = {
		.group = CALLTREE_BY_NAME, .no_inline = c->no_inline, .limit = c->limit, .max_bytes = c->max_bytes,
		.order = c->sort && !strcmp(c->sort, "total") ? TOP_BY_TOTAL : TOP_BY_SELF, .grouped = c->group,
	};
	bool to_stdout = !c->output || !strcmp(c->output, "-");
	struct winsize size;

	if (to_stdout && isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col) {
		o.columns = size.ws_col;
		o.colour = log_colour(STDOUT_FILENO);
	}
	return o;
}

/* --- reading --- */

static int read_side(const struct diff_command *c, struct side *s, char *path, struct err *err)
{
	const struct symbolize_options names = { .paths = c->symbols.list.v, .debuginfod = c->debuginfod,
						 .no_cache = c->no_cache, .no_inline = c->no_inline };
	int r;

	s->path = path;
	r = captureio_read_patterns(&c->patterns, &s->patterns, err);
	if (!r)
		r = subsystemio_read(&c->subsystems, &s->table, err);
	if (!r)
		r = c->from.ns || c->to.ns ? captureio_read(&path, 1, &s->profile, err) :
					     captureio_read_sums(&path, 1, &s->profile, err);
	if (!r && (c->idle || c->patterns.list.n) && !select_has_waits(s->profile))
		r = err_set(err, EINVAL, "%s: no waits were recorded, which %s is about: record with -e wait",
			    path, c->idle ? "--idle" : "--patterns");
	if (!r)
		r = captureio_find_names(&names, s->profile, err);
	if (!r)
		threadrole_tell_apart(s->profile);
	return r;
}

/* -ENODATA: nothing of it is selected, which is an answer if the other side has something. */
static int select_side(const struct diff_command *c, struct side *s, struct err *err)
{
	struct select_options o = { .causes = &s->causes, .idle = c->idle, .threads = c->threads.list.v,
				    .processes = c->processes.list.v, .from_ns = c->from.ns,
				    .to_ns = c->to.ns, .function = c->function, .moments = true };
	int r = select_event(s->profile, c->what, &o.event, err);

	if (r)
		return err_prefix(err, "%s", s->path);
	causes_init(&s->causes, s->profile, &s->patterns);
	classifier_init(&s->subsystems, s->profile, &s->table);
	r = selection_make(s->profile, &o, &s->selection, err);
	quality_measure(&s->quality, s->profile, &s->selection);
	if (!r && c->group)
		chain_apply(s->profile, &s->selection, &s->subsystems);
	s->job = (struct export_job){ s->profile, &s->selection, &s->quality, export_choices(c),
				      .subsystems = &s->subsystems };
	return r ? err_prefix(err, "%s", s->path) : 0;
}

static int select_sides(const struct diff_command *c, struct side *sides, struct err *err)
{
	struct err second = { 0 };
	int r = select_side(c, &sides[0], err), r2;

	if (r && r != -ENODATA)
		return r;
	r2 = select_side(c, &sides[1], &second);
	if (r2 && (r || r2 != -ENODATA)) {
		*err = second;
		return r2;
	}
	if (r || r2)
		log_warn("%s", r ? err->text : second.text);
	if (strcmp(sides[0].selection.name, sides[1].selection.name) && *sides[0].selection.name &&
	    *sides[1].selection.name)
		return err_set(err, EINVAL, "%s has %s and %s has %s: say with --what which to compare",
			       sides[0].path, sides[0].selection.name, sides[1].path,
			       sides[1].selection.name);
	return 0;
}

/* --- writing --- */

/* A page goes beside the second capture, and its path is printed, unless -o says otherwise. */
static int write_beside(const struct diff_command *c, const struct export_format *f, const struct diff_job *job,
			char **captures, struct err *err)
{
	_cleanup_free_ char *ending = mem_printf(".diff%s", f->extension), *beside = captureio_beside(captures[1], ending);
	const char *path = c->output ? c->output : beside;
	_cleanup_(buf_done) struct buf out = { 0 };
	int r = c->output || captureio_has_beside(captures[1]) ? f->diff(job, &out, err) :
		err_set(err, EINVAL, "a page of what is in a store has no place of its own: name it with -o");

	if (!r)
		r = c->output ? captureio_write(path, &out, captures, 2, err) :
				captureio_write_beside(path, &out, captures, 2, err);
	if (r || !strcmp(path, "-"))
		return r;
	if (c->page_beside || c->output)
		log_info("wrote %s", path);
	else
		plain_put_path(path);
	return 0;
}

static int write_result(const struct diff_command *c, const struct side *sides, const struct diff *d,
			char **captures, struct err *err)
{
	const struct diff_job job = { .before = &sides[0].job, .after = &sides[1].job,
				      .name_before = captures[0], .name_after = captures[1], .diff = d,
				      .options = export_choices(c) };
	_cleanup_(buf_done) struct buf out = { 0 };
	int r;

	if (c->chosen->flags & EXPORT_BESIDE)
		return write_beside(c, c->chosen, &job, captures, err);
	r = c->chosen->diff(&job, &out, err);
	if (!r)
		r = captureio_write(c->output, &out, captures, 2, err);
	if (!r && c->output && strcmp(c->output, "-"))
		log_info("wrote %s", c->output);
	if (!r && c->page_beside && captureio_has_beside(captures[1]))
		r = write_beside(c, export_find("html"), &job, captures, err);
	return r;
}

/* Slices of one run cannot show the load of the other run. */
static void tell_load(const struct diff *d)
{
	double ratio = d->all.tested && d->all.a > 0 && !d->timeless ? d->all.b / d->all.a : 1;

	if (ratio > 2 || ratio < 0.5)
		log_warn("after has %.2g times as much each second as before: the load or the machine was not "
			 "the same, which changes waits, I/O and faults too", ratio);
}

/* 0 or an exit code of enum exit_code, or a negative errno with a sentence. */
static int compare(const struct diff_command *c, struct side *sides, char **captures, struct err *err)
{
	const struct diff_options options = { .absolute = c->absolute, .no_inline = c->no_inline,
					      .by_total = c->sort && !strcmp(c->sort, "total"), .grouped = c->group };
	_cleanup_(diff_done) struct diff d = { 0 };
	int r = 0;

	for (int i = 0; i < 2 && !r; i++)
		r = read_side(c, &sides[i], captures[i], err);
	if (!r)
		r = select_sides(c, sides, err);
	if (!r)
		r = diff_make(&d, &(struct diff_side){ sides[0].profile, &sides[0].selection },
			      &(struct diff_side){ sides[1].profile, &sides[1].selection }, &options, err);
	if (!r)
		r = write_result(c, sides, &d, captures, err);
	if (r)
		return r;
	for (int i = 0; i < 2; i++)
		captureio_tell_quality(&sides[i].quality, &sides[i].selection, captures[i]);
	tell_load(&d);
	if (!sides[0].quality.fit || !sides[1].quality.fit)
		return EXIT_QUALITY;
	return c->fail_on_change && d.significant ? EXIT_CHANGED : EXIT_OK;
}

static int diff(const struct command *command, int argc, char **argv)
{
	static const char *const sorts[] = { "self", "total", NULL };
	static const char *const groups[] = { "subsystem", NULL };
	_cleanup_(command_done) struct diff_command c = { .limit = DEFAULT_LIMIT,
							  .max_bytes = DEFAULT_MAX_BYTES };
	const struct option_spec options[] = {
		{ 0, "format", OPTION_CHOICE, &c.format, "FORMAT",
		  "a table as text or JSON, folded stacks with two counts, or the page alone; by default "
		  "what the ending of -o says, else text, and the page beside the second capture",
		  .choices = export_names(true) },
		{ 0, "json", OPTION_FLAG, &c.json, .help = "the same as --format json" },
		{ 'o', "output", OPTION_STRING, &c.output, "FILE",
		  "where to write; \"-\", the default, is the standard output" },
		{ 0, "absolute", OPTION_FLAG, &c.absolute,
		  .help = "compare values each second of the recordings, not shares of the whole" },
		{ 0, "fail-on-change", OPTION_FLAG, &c.fail_on_change,
		  .help = "exit with status 5 when something changed beyond noise" },
		{ 0, "group", OPTION_CHOICE, &c.group, "BY",
		  "subsystem: compare the subsystems of a node (EVM, state root, ...) in place of functions", .choices = groups },
		SUBSYSTEMS_OPTION(&c.subsystems),
		FILTER_OPTIONS(&c),
		STORE_OPTIONS(&c.store),
		{ 0, "base-target", OPTION_STRING, &c.base.target, "NAME", "of the store: compare with this target; by default the same" },
		{ 0, "base-release", OPTION_STRING, &c.base.release, "NAME", "of the store: compare with this release" },
		{ 0, "base-from", OPTION_STRING, &c.base.from, "TIME", "of the store: compare with the time from then on; by default --from" },
		{ 0, "base-to", OPTION_STRING, &c.base.to, "TIME",
		  "of the store: until then; by default --to, and with --base-from where --from begins" },
		{ 'n', "limit", OPTION_UINT, &c.limit, "ROWS", "rows of the table, 0 shows all" },
		{ 0, "sort", OPTION_CHOICE, &c.sort, "COLUMN",
		  "whose change orders the table; by default self", .choices = sorts },
		{ 0, "max-size", OPTION_SIZE, &c.max_bytes, "SIZE",
		  "most that the data in the page may take, 0 is no limit; above it the lightest stacks are "
		  "left out, and the page says so" },
		NAME_OPTIONS(&c),
		{ 0 },
	};
	struct side sides[2] = { 0 };
	struct err err = { 0 };
	int first = options_parse(command, options, argc, argv), result;

	if (first < 0)
		return -first - 1;
	if (command_operands.n != 2) {
		log_error("diff compares two captures, before and after: name the two that you mean");
		return EXIT_USAGE;
	}
	if (choose_format(&c) || check_options(&c))
		return EXIT_USAGE;
	result = compare(&c, sides, command_operands.v, &err);
	side_done(&sides[0]);
	side_done(&sides[1]);
	if (result < 0) {
		log_error("%s", err.text);
		return EXIT_ERROR;
	}
	return result;
}

const struct command command_diff = {
	.name = "diff",
	.summary = "compare two recordings: what takes more or less, and what is noise",
	.usage = "[options] [BEFORE [AFTER]]",
	.describe =
		"Compares two captures function by function and says what changed beyond noise. The noise "
		"is measured: each recording is cut into time slices, and the variance between them gives "
		"each change its 95 % interval. Of all that is marked with * one in a hundred is marked "
		"by chance. Changes below 5 % of a function or 0.1 % of the whole are never marked.\n"
		"\n"
		"Without files it compares the two newest captures in this folder or below profiling/ that are yours "
		"or root's; with one file, that with the newest other one. The older is before, and both are said on the "
		"standard error.\n"
		"\n"
		"Without --absolute the values are shares of the whole, so that recordings of different "
		"length and load compare. As shares add up to 100 %, one function that takes more makes all "
		"others smaller; changes are therefore told at equal work: after is scaled such that the functions "
		"that did not change stay where they were. What the machine does in interrupts is one row "
		"and never marked.\n"
		"\n"
		"With --store both sides are of a store: --target, --release, --from and --to say what is after, and --base-target, "
		"--base-release, --base-from and --base-to in what before differs from it. Two times, two nodes or two releases are compared so. Times are "
		"those of the calendar: 2026-11-17 10:00, or -1h before now. With a FILE and no --base-... the file is before.\n"
		"\n"
		"Two runs of one program may differ by more than their slices show: other neighbours on the "
		"machine, another layout of the memory. Record long enough (10 s and more), and compare two "
		"recordings of the same program first to see how quiet the machine is.\n"
		"\n"
		"Folded stacks have two counts, before and after; before is scaled to the sum of after "
		"without --absolute. The exit status is 3 when a recording is not fit to read, and 5 "
		"with --fail-on-change when something changed.",
	.example = "gasflame diff before.gasflame after.gasflame\n"
		   "gasflame diff --fail-on-change --json main.gasflame branch.gasflame > diff.json\n"
		   "gasflame diff --group subsystem --what wall --fail-on-change before.gasflame after.gasflame\n"
		   "gasflame diff --what wait --thread 'engine*' before.gasflame after.gasflame\n"
		   "gasflame diff --store clickhouse://127.0.0.1:8123/gasflame --target reth-1 --from -1h --base-from -25h --base-to -24h\n"
		   "gasflame diff --store clickhouse://127.0.0.1:8123/gasflame --target 'reth-*' --from -1d --release v2.5.1 --base-release v2.5.0\n"
		   "gasflame diff --format folded before.gasflame after.gasflame | flamegraph.pl > diff.svg",
	.run = diff,
	.newest = 2,
};
