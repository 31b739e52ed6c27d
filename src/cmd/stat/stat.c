/*
 * stat.c - the counters of a program: how many instructions a cycle, what missed its cache, what else it was
 * stopped by. Counted as a whole, by thread and by phase; sampled by function, or out of a capture.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/plain.h"
#include "analyze/hw.h"
#include "bench/runlog.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "cmd/reading/captureio.h"
#include "cmd/recording/launch.h"
#include "cmd/reading/reading.h"
#include "cmd/recording/recorder.h"
#include "cmd/recording/targets.h"
#include "cmd/stat/statcount.h"
#include "cmd/stat/statsample.h"
#include "export/bench/stattext.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"

enum { DEFAULT_LIMIT = 20 };

struct stat_command {
	bool json, per_thread, functions;
	const char *output, *preset, *log_path;
	uint64_t limit, hz;
	struct option_list phases;
	struct runlog log;
	uint64_t duration_ns;
	struct option_list pids;
	struct targets who;
	struct launch launch;
	struct statcount count;
};

static void stat_done(struct stat_command *s)
{
	statcount_done(&s->count);
	vec_done(&s->pids.list);
	vec_done(&s->phases.list);
	runlog_done(&s->log);
	targets_done(&s->who);
	launch_done(&s->launch);
}

static char *join(char **argv)
{
	struct buf name = { 0 };

	for (char **a = argv; *a; a++)
		buf_printf(&name, "%s%s", a == argv ? "" : " ", *a);
	return name.data;
}

/* --- missing counters --- */

static bool has_hardware(const struct stat_command *s)
{
	for (size_t k = COUNTER_CYCLES; k < COUNTERS; k++)
		if (s->count.total[k].known)
			return true;
	return false;
}

static void tell_missing(const struct stat_command *s)
{
	const struct counters *c = &s->count.threads.v[0].counters;
	struct buf names = { 0 };

	if (!has_hardware(s)) {
		int e = c->errors[COUNTER_CYCLES];

		if (e == EACCES || e == EPERM)
			log_warn("the processor's counters may not be read here: run as root, or with "
				 "CAP_PERFMON");
		else
			log_warn("this machine has no counters of the processor (most virtual machines do "
				 "not): cycles, instructions and misses are not known; what the kernel "
				 "counts is below");
	} else {
		for (size_t k = COUNTER_CYCLES; k < COUNTERS; k++)
			if (!s->count.total[k].known)
				buf_printf(&names, "%s%s", names.n ? ", " : "", counter_names[k]);
		if (names.n)
			log_warn("not counted, as this processor has no such counter or it never had its "
				 "turn: %s",
				 names.data);
		buf_done(&names);
	}
	if (c->user_only)
		log_warn("only the program's own code is counted, not the kernel's part of it; switches and "
			 "migrations happen there and are not known (as root all of it is)");
}

/* --- counts --- */

static struct hw_row row_of(const struct counted *t)
{
	struct hw_row row = { .name = t->name, .module = "", .process = t->pid, .id = t->tid };

	memcpy(row.values, t->values, sizeof(row.values));
	return row;
}

static int by_cpu(const void *a, const void *b)
{
	double x = ((const struct counted *)a)->values[COUNTER_TASK_CLOCK].value;
	double y = ((const struct counted *)b)->values[COUNTER_TASK_CLOCK].value;

	return (x < y) - (x > y);
}

/* Adds each phase over all of its spans, and the rest of the run beside the first of them. */
static void make_phases(struct stat_command *s, struct hw_rows *rows)
{
	struct hw_row rest = { .name = "rest", .module = "", .count = 1, .time_ns = s->count.time_ns };
	size_t kept = 0;

	for (size_t i = 0; i < s->log.phases.n; i++)
		vec_push(rows, (struct hw_row){ .name = s->log.phases.v[i].name, .module = "" });
	for (size_t i = 0; i < s->log.spans.n; i++) {
		const struct runlog_span *span = &s->log.spans.v[i];
		struct hw_row *row = &rows->v[span->phase];
		struct counter_value values[COUNTERS];

		counterline_between(&s->count.line, span->start_ns, span->end_ns, values);
		for (size_t k = 0; k < COUNTERS; k++)
			counter_add(&row->values[k], &values[k]);
		row->count++;
		row->time_ns += span->end_ns - span->start_ns;
	}
	memcpy(rest.values, s->count.total, sizeof(rest.values));
	rest.time_ns -= MIN(rest.time_ns, rows->v[0].time_ns);
	for (size_t k = 0; k < COUNTERS; k++)
		if (rows->v[0].values[k].known)
			rest.values[k].value = MAX(rest.values[k].value - rows->v[0].values[k].value, 0.0);
	/* The times of phases within the first are not known. */
	for (size_t i = 0; i < rows->n; i++)
		if (!i || rows->v[i].count)
			rows->v[kept++] = rows->v[i];
	rows->n = rows->v[0].count ? kept : 0;
	if (rows->n)
		vec_push(rows, rest);
}

static void warn_phases(const struct stat_command *s)
{
	for (size_t i = 0; i < s->log.phases.n; i++)
		/* Of a preset's phases only the first must be there. */
		if (!s->log.phases.v[i].matches && (s->phases.list.n || !i))
			log_warn("'%s' was not printed: it has no figures (is its pattern right?)",
				 s->log.phases.v[i].name);
}

static unsigned columns(const struct stat_command *s)
{
	return !s->output && isatty(STDOUT_FILENO) ? command_width() : 0;
}

static void put_head(const struct stat_command *s, struct buf *out)
{
	char time[32];

	buf_printf(out, "%s: %s", s->who.target, str_duration(time, s->count.time_ns));
	if (s->launch.pid <= 0 && s->count.threads.n)
		buf_printf(out, ", %zu thread%s and what %s started", s->count.threads.n,
			   s->count.threads.n == 1 ? "" : "s", s->count.threads.n == 1 ? "it" : "they");
	plain_in_place(out->data);
	buf_puts(out, "\n");
}

static void json_head(const struct stat_command *s, bool hardware, struct json *j)
{
	json_open_object(j, NULL);
	json_put_string(j, "gasflame", "stat");
	json_put_uint(j, "version", 1);
	json_put_string(j, "target", s->who.target);
	json_put_fixed(j, "seconds", s->count.time_ns / 1e9, 9);
	json_put_bool(j, "hardware", hardware);
	json_put_bool(j, "user_only", s->count.threads.n && s->count.threads.v[0].counters.user_only);
}

static void put_counted(struct stat_command *s, struct buf *out)
{
	struct hw_row total = { .name = "", .module = "" };
	struct hw_rows threads = { 0 }, phases = { 0 };
	struct json j = json_begin(out);

	memcpy(total.values, s->count.total, sizeof(total.values));
	vec_sort(&s->count.threads, by_cpu);
	for (size_t i = 0; i < s->count.threads.n && s->per_thread; i++)
		vec_push(&threads, row_of(&s->count.threads.v[i]));
	if (s->log.phases.n)
		make_phases(s, &phases);
	const struct stat_table by_thread = { "thread", threads.v, &total, threads.n, .threads = true, .exact = true,
					      .columns = columns(s) };
	const struct stat_table by_phase = { "phase", phases.v, &total, phases.n, .phases = true, .exact = true,
					     .columns = columns(s) };

	if (s->json) {
		json_head(s, has_hardware(s), &j);
		statjson_values(s->count.total, &j);
		if (s->per_thread)
			statjson_table(&by_thread, "threads", &j);
		if (phases.n)
			statjson_table(&by_phase, "phases", &j);
		json_end_line(&j);
	} else {
		put_head(s, out);
		stattext_values(s->count.total, s->count.time_ns, out);
		stattext_table(&by_phase, out);
		stattext_table(&by_thread, out);
	}
	vec_done(&threads);
	vec_done(&phases);
}

/* --- samples --- */

static void put_sampled(const struct stat_command *s, const struct hw_tables *t, struct buf *out)
{
	size_t limit = s->limit ? s->limit : SIZE_MAX;
	const struct stat_table tables[] = {
		{ "phase", t->phases.v, &t->all, t->phases.n, .phases = true, .columns = columns(s) },
		{ "thread", t->threads.v, &t->all, MIN(t->threads.n, limit), .threads = true, .columns = columns(s) },
		{ "function itself, and the kernel for it", t->functions.v, &t->all, MIN(t->functions.n, limit),
		  .columns = columns(s) },
	};
	static const char *const keys[] = { "phases", "threads", "functions" };
	struct json j = json_begin(out);

	if (!s->json) {
		put_head(s, out);
		stattext_values(t->all.values, s->count.time_ns, out);
		for (size_t i = 0; i < ARRAY_LEN(tables); i++)
			stattext_table(&tables[i], out);
		stattext_hints(t, out);
		return;
	}
	json_head(s, t->all.values[COUNTER_CYCLES].known, &j);
	statjson_values(t->all.values, &j);
	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		statjson_table(&tables[i], keys[i], &j);
	json_end_line(&j);
}

static int show_profile(struct stat_command *s, const struct profile *p, struct buf *out, struct err *err)
{
	struct hw_tables t;
	int e = hw_build(&t, p, err);

	if (e)
		return e;
	s->count.time_ns = t.duration_ns;
	put_sampled(s, &t, out);
	hw_done(&t);
	return 0;
}

static int show_files(struct stat_command *s, char **paths, int n, struct buf *out, struct err *err)
{
	const struct symbolize_options names = { 0 };
	_cleanup_(profile_freep) struct profile *p = NULL;
	int e = captureio_read(paths, n, &p, err);

	if (!e)
		e = captureio_find_names(&names, p, err);
	if (!e)
		s->who.target = mem_strdup(profile_str(p, p->target));
	return e ? e : show_profile(s, p, out, err);
}

#ifdef GASFLAME_COLLECTORS
static int sample_functions(struct stat_command *s, char **command, struct buf *out, struct err *err)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_free_ char *program = command ? launch_find(command[0], err) : NULL;
	const struct statsample o = { .who = &s->who, .launch = &s->launch, .program = program, .hz = s->hz,
				      .log = s->log.phases.n ? &s->log : NULL, .block_log = s->log_path,
				      .duration_ns = command ? 0 : s->duration_ns };
	int e = 0;

	if (command && !program)
		return -ENOENT;
	if (command)
		e = launch_start(&s->launch, command, s->log.phases.n, err);
	if (!e && command) {
		vec_push(&s->who.pids.list, s->launch.pid);
		s->who.target = join(command);
	}
	if (!e)
		e = statsample(&o, &p, err);
	return e ? e : show_profile(s, p, out, err);
}
#else
static int sample_functions(struct stat_command *s, char **command, struct buf *out, struct err *err)
{
	return err_set(err, ENOSYS, "this build cannot record (meson configure -Dcollectors=enabled)");
}
#endif

/* --- the command --- */

static int make_patterns(struct stat_command *s, struct err *err)
{
	int e = 0;

	for (size_t i = 0; i < s->phases.list.n && !e; i++)
		e = runlog_add_phase(&s->log, s->phases.list.v[i], err);
	if (!e && s->preset)
		e = runlog_add_preset(&s->log, s->preset, err);
	return e;
}

static int count(struct stat_command *s, char **command, struct buf *out, struct err *err)
{
	int e = command ? statcount_command(&s->count, &s->launch, command, &s->log, err) :
			  statcount_open(&s->count, &s->who, err);

	if (e)
		return e;
	if (command) {
		s->who.target = join(command);
	} else {
		recorder_drop_rights(s->output ? s->output : "./", false);
		statcount_targets(&s->count, &s->who, s->duration_ns);
	}
	statcount_read(&s->count);
	tell_missing(s);
	if (s->count.gone)
		log_warn("the target ended after %.1f s", s->count.time_ns / 1e9);
	put_counted(s, out);
	return 0;
}

static bool is_file(const char *name)
{
	struct stat st;

	return !stat(name, &st) && S_ISREG(st.st_mode);
}

static int stat_run(struct stat_command *s, char **command, char **names, int n, struct err *err)
{
	_cleanup_(buf_done) struct buf out = { 0 };
	bool files = !command && n && is_file(names[0]);
	int e = make_patterns(s, err);

	if (!e && files && (s->functions || s->per_thread || s->log_path || s->pids.list.n))
		e = err_set(err, EINVAL, "%s is a capture: all that is in it is shown", names[0]);
	if (e)
		return e;
	recorder_raise_limits();
	if (!command && !files)
		e = targets_find(&s->who, &s->pids, names, n, err);
	if (!e)
		e = files	   ? show_files(s, names, n, &out, err) :
		    s->functions   ? sample_functions(s, command, &out, err) :
				     count(s, command, &out, err);
	if (!e && s->log.phases.n)
		warn_phases(s);
	return e ? e : captureio_write(s->output, &out, names, files ? n : 0, err);
}

/* Rejects contradictory options. */
static int check(const struct stat_command *s, char **command, int operands, struct err *err)
{
	if (command && !*command)
		return err_set(err, EINVAL, "say which program to run: gasflame stat -- ./program");
	if (command && (operands || s->pids.list.n))
		return err_set(err, EINVAL, "either a target or a command after --, not both");
	if (command && s->per_thread && !s->functions)
		return err_set(err, EINVAL,
			       "--per-thread is for a running target: a program's threads start after it "
			       "(--functions samples them, too)");
	if (!command && (s->phases.list.n || s->preset))
		return err_set(err, EINVAL,
			       "phases are read from the output of a command: gasflame stat --phase ... -- ./program "
			       "(of a running node: gasflame stat --functions --log FILE TARGET)");
	if (s->log_path && (command || !s->functions))
		return err_set(err, EINVAL, "--log is for a running node, and its blocks are sampled: gasflame stat "
					    "--functions --log FILE TARGET");
	return 0;
}

static int stat_main(const struct command *c, int argc, char **argv)
{
	struct stat_command s = { .duration_ns = 10000000000, .limit = DEFAULT_LIMIT, .hz = 999,
				  .launch = { .pid = -1, .gate = -1, .failed = -1, .output = -1, .copier = -1 } };
	struct err err = { 0 };
	const struct option_spec options[] = {
		{ 'p', "pid", OPTION_LIST, &s.pids, "PID", "a process" },
		{ 'd', "duration", OPTION_DURATION, &s.duration_ns, "TIME",
		  "how long to count a target; Ctrl-C ends early" },
		{ 0, "per-thread", OPTION_FLAG, &s.per_thread,
		  .help = "each thread of a target too; those that it starts meanwhile count with the thread "
			  "that started them" },
		{ 0, "functions", OPTION_FLAG, &s.functions,
		  .help = "by function and by thread, sampled (as record -e hw does, which also keeps it)" },
		{ 'F', "frequency", OPTION_UINT, &s.hz, "HZ", "samples a second, with --functions", 1, 20000 },
		{ 'n', "limit", OPTION_UINT, &s.limit, "ROWS", "rows of a table, 0 shows all", 0, 1000000000 },
		{ 0, "phase", OPTION_LIST, &s.phases, "NAME=REGEX",
		  "a part of a command's run that it prints the time of, as for bench: what was counted in it" },
		{ 0, "preset", OPTION_CHOICE, &s.preset, "CLIENT", "phases from the lines that this client prints",
		  .choices = runlog_presets },
		{ 0, "log", OPTION_STRING, &s.log_path, "FILE",
		  "a running node's log, with --functions: what was counted within its blocks" },
		{ 0, "json", OPTION_FLAG, &s.json, .help = "JSON instead of a table" },
		{ 'o', "output", OPTION_STRING, &s.output, "FILE",
		  "where to; by default the standard output, after the program's" },
		{ 0 },
	};
	char **command = NULL;
	int first, code, e;

	for (int i = 1; i < argc && !command; i++)
		if (!strcmp(argv[i], "--")) {
			command = argv + i + 1;
			argc = i;
		}
	first = options_parse(c, options, argc, argv);
	if (first < 0)
		return -first - 1;
	e = check(&s, command, argc - first, &err);
	/* Of a capture it is a reader as report is. */
	if (!e && !command && first < argc && is_file(argv[first]) && reading_begin(c, options, argv + first, argc - first)) {
		stat_done(&s);
		return EXIT_ERROR;
	}
	if (!e)
		e = stat_run(&s, command, argv + first, argc - first, &err);
	code = e ? command_failed(&err) : s.count.gone ? EXIT_GONE : launch_exit_code(&s.launch);
	stat_done(&s);
	return code;
}

const struct command command_stat = {
	.name = "stat",
	.summary = "count cycles, instructions, misses, faults and switches",
	.usage = "[options] TARGET... | FILE... | -- COMMAND [ARGUMENT...]",
	.describe = "Counts what a running program, or one that it starts, does: cycles, instructions, "
		    "accesses and misses of the caches, of branches and of the TLB, CPU time, page faults, "
		    "context switches and migrations. Where there are more events than counters they take "
		    "turns, and what was counted is scaled; the table says so. A machine without such "
		    "counters gives the kernel's own.\n\n"
		    "--functions samples each counter by itself, with the stack: shares and ratios of functions, of "
		    "threads and of phases are estimates then, and one of fewer than ten samples is not shown. A FILE "
		    "is a capture of record -e hw, of which the same is shown; its marks (--log, bench --record hw) are "
		    "its phases. Phases of a command that is counted are exact to 5 ms.\n\n"
		    "With a command it ends with the command's status.",
	.example = "gasflame stat -d 10 --per-thread reth\ngasflame stat --functions -d 10 reth\n"
		   "gasflame stat --preset ethrex -- ./ethrex-replay block 24443168 --no-zkvm",
	.run = stat_main,
	.keeps_rights = true,
};
