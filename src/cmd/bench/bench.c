/*
 * bench.c - a program run again and again: how long, how sure, and with what. Several are run in turn.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text/plain.h"
#include "bench/compare.h"
#include "bench/runlog.h"
#include "bench/runs.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/text/str.h"
#include "cmd/bench/runmarks.h"
#include "cmd/bench/benchrun.h"
#include "cmd/cmd.h"
#include "cmd/reading/captureio.h"
#include "cmd/recording/record.h"
#include "cmd/stop.h"
#include "export/bench/bench.h"

/* The columns that every run has, in their order. */
enum { WALL, USER, SYSTEM, MINOR_FAULTS, MAJOR_FAULTS, VOLUNTARY, INVOLUNTARY, PEAK_RSS, OWN_COLUMNS };
static const struct runs_metric own_columns[OWN_COLUMNS] = {
	{ "wall", "s" },
	{ "user", "s" },
	{ "system", "s" },
	{ "minor_faults", "count" },
	{ "major_faults", "count" },
	{ "waits", "count" },       /* voluntary switches */
	{ "preemptions", "count" }, /* involuntary ones */
	{ "peak_rss", "bytes" },
};

struct bench {
	struct option_list phases, names, outputs;
	const char *preset, *gas_text, *gas_pattern;
	uint64_t repeat, warmups;
	bool json, csv, show, ignore_failure;
	VEC(char **) commands; /* each ends in NULL */
	double gas;            /* of a run, 0 = not given */
	struct runlog log;
	struct runs runs;
	uint32_t rest, gas_column, rate; /* columns, UINT32_MAX = none */
	uint64_t failures;
	const char *record, *record_output;
	int marks; /* for the recording, -1 = there is none */
	struct err *err;
};

static void bench_done(struct bench *b)
{
	vec_done(&b->phases.list);
	vec_done(&b->names.list);
	vec_done(&b->outputs.list);
	vec_done(&b->commands);
	fd_close(&b->marks);
	runlog_done(&b->log);
	runs_done(&b->runs);
}

/* --- options --- */

/* "A args ::: B args": each command gets its own end. */
static int split_commands(struct bench *b, char **argv, struct err *err)
{
	bool fresh = true;

	for (; *argv; argv++) {
		if (!strcmp(*argv, ":::")) {
			if (fresh)
				break;
			*argv = NULL;
			fresh = true;
		} else if (fresh) {
			vec_push(&b->commands, argv);
			fresh = false;
		}
	}
	if (fresh)
		return err_set(err, EINVAL,
			       "say what to run: gasflame bench --repeat 10 -- ./program ARGUMENTS [::: "
			       "./other ARGUMENTS]");
	if (b->commands.n > RUNS_COMMANDS_MAX)
		return err_set(err, EINVAL, "more than %d commands", RUNS_COMMANDS_MAX);
	if (b->names.list.n && b->names.list.n != b->commands.n)
		return err_set(err, EINVAL, "%zu names for %zu commands: give --name once for each",
			       b->names.list.n, b->commands.n);
	return 0;
}

static int make_patterns(struct bench *b, struct err *err)
{
	int e = 0;

	for (size_t i = 0; i < b->phases.list.n && !e; i++)
		e = runlog_add_phase(&b->log, b->phases.list.v[i], err);
	if (!e && b->preset)
		e = runlog_add_preset(&b->log, b->preset, err);
	if (!e && b->gas_pattern)
		e = runlog_add_gas(&b->log, b->gas_pattern, err);
	if (!e && b->gas_text && runlog_parse_gas(b->gas_text, &b->gas))
		e = err_set(err, EINVAL, "--gas wants a number like 37.5M, not %s", b->gas_text);
	return e;
}

static int check_outputs(const struct bench *b, struct err *err)
{
	if (b->json && b->csv)
		return err_set(err, EINVAL,
			       "--json and --csv are two formats: choose one, and write the other with -o "
			       "FILE");
	for (size_t i = 0; i < b->outputs.list.n; i++) {
		const char *o = b->outputs.list.v[i];

		if (!str_ends(o, ".json") && !str_ends(o, ".csv") && !str_ends(o, ".html"))
			return err_set(err, EINVAL,
				       "-o %s: its ending says what to write: .json, .csv or .html", o);
	}
	return 0;
}

static void make_columns(struct bench *b)
{
	struct runs *r = &b->runs;

	for (size_t i = 0; i < OWN_COLUMNS; i++)
		runs_add_metric(r, own_columns[i].name, own_columns[i].unit);
	for (size_t i = 0; i < b->log.phases.n; i++)
		runs_add_metric(r, b->log.phases.v[i].name, "s");
	b->rest = b->log.phases.n ? runs_add_metric(r, "rest", "s") : UINT32_MAX;
	b->gas_column = b->rate = UINT32_MAX;
	if (b->gas > 0 || b->log.gas_given) {
		b->gas_column = runs_add_metric(r, "gas", "gas");
		b->rate = runs_add_metric(r, "gas_per_s", "gas/s");
	}
}

static void name_commands(struct bench *b)
{
	for (size_t c = 0; c < b->commands.n; c++) {
		struct buf name = { 0 };

		if (b->names.list.n)
			buf_puts(&name, b->names.list.v[c]);
		else
			for (char **a = b->commands.v[c]; *a; a++)
				buf_printf(&name, "%s%s", name.n ? " " : "", *a);
		/* Twice the same command is a fair question: how much does it differ from itself? */
		for (size_t i = 0; i < b->runs.commands.n; i++)
			if (!strcmp(b->runs.commands.v[i], name.data)) {
				buf_printf(&name, " (%zu)", c + 1);
				break;
			}
		vec_push(&b->runs.commands, name.data);
	}
}

/* --- running --- */

static void on_output(void *context, const char *text, size_t n)
{
	struct bench *b = context;

	if (b->marks >= 0)
		b->log.now_ns = clock_wall_ns();
	runlog_feed(&b->log, text, n);
	if (b->show && fd_write_all(STDERR_FILENO, text, n))
		b->show = false;
}

static void add_row(struct bench *b, uint32_t command, uint64_t round, const struct benchrun_result *m)
{
	const struct runs_row row = { .command = command, .round = round, .start_ns = m->start_wall_ns };
	double *v = runs_add_row(&b->runs, &row), first, total, gas;

	v[WALL] = m->wall_ns / 1e9;
	v[USER] = m->user_ns / 1e9;
	v[SYSTEM] = m->system_ns / 1e9;
	v[MINOR_FAULTS] = m->minor_faults;
	v[MAJOR_FAULTS] = m->major_faults;
	v[VOLUNTARY] = m->voluntary_switches;
	v[INVOLUNTARY] = m->involuntary_switches;
	v[PEAK_RSS] = m->peak_rss_bytes;
	for (size_t i = 0; i < b->log.phases.n; i++)
		v[OWN_COLUMNS + i] = runlog_seconds(&b->log, i);
	first = b->log.phases.n ? v[OWN_COLUMNS] : v[WALL];
	total = b->log.phases.n ? runlog_total(&b->log, 0) : v[WALL];
	if (b->rest != UINT32_MAX)
		v[b->rest] =
			total <= v[WALL] ? v[WALL] - total : NAN; /* phases of threads may add up to more */
	if (b->gas_column == UINT32_MAX)
		return;
	gas = b->gas > 0 ? b->gas : runlog_gas(&b->log);
	v[b->gas_column] = gas;
	if (first > 0 && gas > 0)
		v[b->rate] = gas / first;
}

/* The last lines of a program that failed: they say why. */
static void show_tail(struct benchrun_result *m)
{
	char *from = m->tail.data, *p;
	int lines = 0;

	if (!m->tail.n)
		return;
	p = from + m->tail.n;
	while (p > from && lines < 10)
		lines += *--p == '\n' && p[1];
	plain_in_place(p);
	for (p += *p == '\n'; *p;) {
		size_t n = strcspn(p, "\n");

		log_info("  | %.*s", (int)MIN(n, (size_t)300), p);
		p += n + (p[n] == '\n');
	}
}

static int run_one(struct bench *b, uint32_t command, uint64_t round, struct err *err)
{
	struct benchrun_result m;
	bool failed;
	int e;

	runlog_reset(&b->log);
	e = benchrun(b->commands.v[command], on_output, b, &m, err);
	runlog_end(&b->log);
	failed = !e && (WIFSIGNALED(m.status) || WEXITSTATUS(m.status));
	if (failed && !b->ignore_failure && !stop_wanted) {
		log_progress_end();
		show_tail(&m);
		e = err_set(err, ECHILD,
			    "%s ended with %s %d: what is measured must succeed (--ignore-failure measures "
			    "it all the same)",
			    b->commands.v[command][0], WIFSIGNALED(m.status) ? "signal" : "status",
			    WIFSIGNALED(m.status) ? WTERMSIG(m.status) : WEXITSTATUS(m.status));
	}
	b->failures += failed;
	if (!e && round && !stop_wanted)
		add_row(b, command, round, &m);
#ifdef GASFLAME_COLLECTORS
	if (!e && b->marks >= 0)
		runmarks_add(b->marks, command, round, &m, &b->log);
#endif
	buf_done(&m.tail);
	return e;
}

/* Every second round runs backwards: being first is no advantage, and a slow drift affects all alike. */
static int run_all(struct bench *b, struct err *err)
{
	size_t count = b->commands.n;
	int e = 0;

	for (uint64_t i = 0; i < b->warmups + b->repeat && !e && !stop_wanted; i++) {
		uint64_t round = i < b->warmups ? 0 : i - b->warmups + 1;
		bool backwards = round && round % 2 == 0; /* the first row is of the first command */

		for (size_t k = 0; k < count && !e && !stop_wanted; k++) {
			if (round)
				log_progress("run %llu of %llu", (unsigned long long)round,
					     (unsigned long long)b->repeat);
			else
				log_progress("warming up");
			e = run_one(b, backwards ? count - 1 - k : k, round, err);
		}
	}
	log_progress_end();
	return e;
}

/* --- what came of it --- */

static void warn_phases(const struct bench *b)
{
	_cleanup_free_ double *values = mem_alloc((b->runs.rows.n + 1) * sizeof(*values));

	for (uint32_t c = 0; c < b->commands.n; c++) {
		size_t all = runs_column(&b->runs, c, WALL, values, NULL);

		for (size_t i = 0; i < b->log.phases.n; i++) {
			size_t n = runs_column(&b->runs, c, OWN_COLUMNS + i, values, NULL);

			/* Of a preset's phases only the first must be there: clients print more or less of
			 * them. */
			if (n < all && (b->phases.list.n || !i))
				log_warn("%s: '%s' was not printed in %zu of %zu runs (--show-output shows "
					 "what is)",
					 b->runs.commands.v[c], b->log.phases.v[i].name, all - n, all);
		}
		if (b->log.gas_given && !(b->gas > 0) &&
		    !runs_column(&b->runs, c, b->gas_column, values, NULL))
			log_warn("%s: it did not print its gas (--gas 37.5M gives it)",
				 b->runs.commands.v[c]);
	}
	if (b->log.unclear)
		log_warn("%llu lines matched without a number and a unit behind it (ns, us, ms, s): they are "
			 "left out",
			 (unsigned long long)b->log.unclear);
	if (b->failures)
		log_warn("%llu runs failed and are measured all the same", (unsigned long long)b->failures);
}

/* Where two or more were run: each of the others against the first. */
static void put_comparisons(const struct bench *b, struct buf *out)
{
	const struct runs *files[] = { &b->runs };

	for (uint32_t c = 1; c < b->runs.commands.n; c++) {
		const struct compare_side a = { files, 1, 0 }, other = { files, 1, c };
		const struct compare_options o = { .floor = -1 };
		const struct compare_names names = { b->runs.commands.v[0], b->runs.commands.v[c] };
		struct comparison made;

		if (compare_make(&a, &other, &o, &made, NULL))
			continue;
		buf_putc(out, '\n');
		comparetext_put(&made, &names, out);
		comparison_done(&made);
	}
}

static void put(const struct bench *b, const char *ending, struct buf *out)
{
	if (str_ends(ending, ".json"))
		benchjson_put(&b->runs, out);
	else if (str_ends(ending, ".csv"))
		benchcsv_put(&b->runs, out);
	else if (str_ends(ending, ".html"))
		benchpage_put(&b->runs, out);
	else {
		benchtext_put(&b->runs, isatty(STDOUT_FILENO) ? command_width() : 0, out);
		put_comparisons(b, out);
	}
}

static int write_all(const struct bench *b, struct err *err)
{
	int e = 0;

	for (size_t i = 0; i <= b->outputs.list.n && !e; i++) {
		const char *path = i ? b->outputs.list.v[i - 1] : NULL;
		_cleanup_(buf_done) struct buf out = { 0 };

		put(b, path ? path : b->json ? ".json" : b->csv ? ".csv" : "", &out);
		e = captureio_write(path, &out, NULL, 0, err);
	}
	return e;
}

static int prepare(struct bench *b, char **argv, struct err *err)
{
	int e = split_commands(b, argv, err);

	if (!e)
		e = make_patterns(b, err);
	if (!e)
		e = check_outputs(b, err);
	if (!e && b->record_output && !b->record)
		e = err_set(err, EINVAL, "--record-output is where --record writes to: say what to record");
	if (e)
		return e;
	make_columns(b);
	name_commands(b);
	b->runs.warmups = b->warmups;
	b->runs.interleaved = b->commands.n > 1;
	return 0;
}

static int measure(struct bench *b, struct err *err)
{
	int e;

	stop_catch(false, NULL);
	e = run_all(b, err);
	if (e)
		return e;
	if (stop_wanted)
		log_info("Stopped; what was measured up to here counts.");
	if (!b->runs.rows.n)
		return err_set(err, EINTR, "no run came to its end");
	warn_phases(b);
	return write_all(b, err);
}

static int exit_code(const struct err *err, int e)
{
	return e ? command_failed(err) : EXIT_OK;
}

#ifdef GASFLAME_COLLECTORS
static int measure_recorded(void *context)
{
	struct bench *b = context;

	return exit_code(b->err, measure(b, b->err));
}

static void take_marks(void *context, struct profile *p)
{
	struct bench *b = context;

	runmarks_take(b->marks, &b->runs, &b->log, p);
}

static int record_bench(struct bench *b)
{
	const char *slash = strrchr(b->commands.v[0][0], '/');
	const struct record_call call = {
		.what = b->record,
		.output = b->record_output,
		.label = slash ? slash + 1 : b->commands.v[0][0],
		.target = b->runs.commands.v[0],
		.context = b,
		.call = measure_recorded,
		.finish = take_marks,
	};

	b->marks = runmarks_open();
	if (b->marks < 0)
		return exit_code(b->err, err_errno(b->err, -b->marks, "cannot make a file in memory"));
	return record_call(&call);
}
#else
static int record_bench(struct bench *b)
{
	return exit_code(b->err, err_set(b->err, ENOSYS,
					 "this build cannot record (meson configure -Dcollectors=enabled)"));
}
#endif

static int bench_main(const struct command *c, int argc, char **argv)
{
	struct err err = { 0 };
	struct bench b = { .repeat = 10, .marks = -1, .err = &err };
	const struct option_spec options[] = {
		{ 'n', "repeat", OPTION_UINT, &b.repeat, "N", "runs of each command", 1, 100000 },
		{ 'w', "warmup", OPTION_UINT, &b.warmups, "K", "runs before these that do not count", 0,
		  100000 },
		{ 0, "name", OPTION_LIST, &b.names, "NAME", "what to call a command, once for each" },
		{ 0, "phase", OPTION_LIST, &b.phases, "NAME=REGEX",
		  "a part of the run that the program prints the time of; its first group is the number, "
		  "the unit stands behind it; several times in a run: the sum. The first phase is what "
		  "matters, the rest of the run is 'rest'" },
		{ 0, "preset", OPTION_CHOICE, &b.preset, "CLIENT",
		  "phases and gas from the lines that this client prints for each block",
		  .choices = runlog_presets },
		{ 0, "gas", OPTION_STRING, &b.gas_text, "GAS", "gas of a run, like 37.5M: gives Ggas/s" },
		{ 0, "gas-pattern", OPTION_STRING, &b.gas_pattern, "REGEX",
		  "where the program prints its gas" },
		{ 0, "ignore-failure", OPTION_FLAG, &b.ignore_failure,
		  .help = "go on when a run fails, and count it" },
		{ 0, "show-output", OPTION_FLAG, &b.show, .help = "what the programs print, on stderr" },
		{ 0, "record", OPTION_STRING, &b.record, "WHAT",
		  "also record all the runs into one capture, cpu,wait for example, with runs and phases "
		  "as marks; that costs time" },
		{ 0, "record-output", OPTION_STRING, &b.record_output, "FILE", "where that goes" },
		{ 0, "json", OPTION_FLAG, &b.json, .help = "JSON instead of a table" },
		{ 0, "csv", OPTION_FLAG, &b.csv, .help = "CSV instead of a table, a line a run" },
		{ 'o', "output", OPTION_LIST, &b.outputs, "FILE",
		  "also into a file, .json, .csv or .html (a page with the distribution)" },
		{ 0 },
	};
	int first = options_parse(c, options, argc, argv), e, code;

	if (first < 0)
		return -first - 1;
	e = prepare(&b, argv + first, &err);
	if (!e && b.record)
		code = record_bench(&b);
	else
		code = exit_code(&err, e ? e : measure(&b, &err));
	bench_done(&b);
	return code;
}

const struct command command_bench = {
	.name = "bench",
	.summary = "run a program again and again, and say how long it takes",
	.usage = "[options] -- COMMAND... [::: COMMAND...]...",
	.describe = "Times of each run, with CPU time, page faults, context switches and peak memory (of the "
		    "largest process), as median, mean, standard deviation and quantiles as far as the "
		    "number of runs bears them; the interval is by bootstrap. Several commands, with ::: "
		    "between them, are run in turn, every second round backwards, and compared with the "
		    "first.\n\n"
		    "With --phase, what the program prints of itself is kept apart from the rest of the "
		    "run: only the execution of a block, say. What a program prints is not shown.",
	.example = "gasflame bench --repeat 10 --warmup 1 --gas 37.5M --phase 'exec=TIME SPENT: ([0-9.]+) "
		   "ms' -- ./ethrex-replay block 24443168 --no-zkvm\n"
		   "gasflame bench -n 20 -o runs.json -o runs.html -- ./old ::: ./new",
	.run = bench_main,
	.keeps_rights = true,
};
