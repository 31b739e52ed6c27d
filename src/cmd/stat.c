/*
 * stat.c - the counters of a program: how many instructions a cycle, what missed its cache, what else it was
 * stopped by.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/files.h"
#include "cmd/launch.h"
#include "cmd/start.h"
#include "target/counters.h"

struct counted {
	pid_t pid, tid;
	char name[32];
	struct counters counters;
	struct counter_value values[COUNTERS];
};

struct stat_command {
	bool json, per_thread;
	const char *output;
	uint64_t duration_ns;
	struct option_list pids;
	struct start who;
	struct launch launch;
	VEC(struct counted) threads;
	struct counter_value total[COUNTERS];
	uint64_t time_ns;
	bool gone; /* before the time was over */
};

static volatile sig_atomic_t stopped;

static void on_stop(int signal)
{
	stopped = 1;
}

static void stat_done(struct stat_command *s)
{
	for (size_t i = 0; i < s->threads.n; i++)
		counters_close(&s->threads.v[i].counters);
	vec_done(&s->threads);
	vec_done(&s->pids.list);
	start_done(&s->who);
	launch_done(&s->launch);
}

/* --- counting --- */

static int no_counters(int e, struct err *err)
{
	if (e == -EACCES || e == -EPERM)
		return err_set(err, EPERM,
			       "the kernel does not let us count this (run it as root, or give the program "
			       "CAP_PERFMON; sysctl kernel.perf_event_paranoid=2 allows it for one's own "
			       "processes)");
	return err_errno(err, -e, "cannot count events of this process");
}

/* A thread that ends while we look at it is none. */
static int add_thread(struct stat_command *s, pid_t pid, pid_t tid, bool on_exec, struct err *err)
{
	struct counted c = { .pid = pid, .tid = tid };
	struct proc_stat stat;
	int e = counters_open(&c.counters, tid, on_exec);

	if (!proc_thread_stat(pid, tid, &stat))
		snprintf(c.name, sizeof(c.name), "%s", stat.name);
	command_plain(c.name);
	if (e) {
		counters_close(&c.counters);
		return e == -ESRCH ? 0 : no_counters(e, err);
	}
	vec_push(&s->threads, c);
	return 0;
}

static int open_targets(struct stat_command *s, struct err *err)
{
	int e = 0;

	for (size_t i = 0; i < s->who.pids.list.n && !e; i++) {
		struct proc_ids threads = { 0 };

		if (proc_threads(s->who.pids.list.v[i], &threads) < 0)
			continue;
		for (size_t k = 0; k < threads.list.n && !e; k++)
			e = add_thread(s, s->who.pids.list.v[i], threads.list.v[k], false, err);
		vec_done(&threads.list);
	}
	if (!e && !s->threads.n)
		e = err_set(err, ESRCH, "the target has ended");
	return e;
}

static bool all_gone(const struct stat_command *s)
{
	for (size_t i = 0; i < s->who.pids.list.n; i++)
		if (!kill(s->who.pids.list.v[i], 0) || errno == EPERM)
			return false;
	return true;
}

static void count_targets(struct stat_command *s)
{
	uint64_t start = clock_mono_ns(), end = start + s->duration_ns, now;
	struct sigaction sa = { .sa_handler = on_stop };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	while ((now = clock_mono_ns()) < end && !stopped && !s->gone) {
		poll(NULL, 0, (int)MIN((end - now) / 1000000 + 1, (uint64_t)100));
		s->gone = all_gone(s);
	}
	s->time_ns = clock_mono_ns() - start;
}

static int count_command(struct stat_command *s, char **argv, struct err *err)
{
	struct buf name = { 0 };
	uint64_t start;
	int e = launch_start(&s->launch, argv, false, err);

	if (e)
		return e;
	for (char **a = argv; *a; a++)
		buf_printf(&name, "%s%s", a == argv ? "" : " ", *a);
	s->who.target = name.data;
	e = add_thread(s, s->launch.pid, s->launch.pid, true, err);
	/* Ctrl-C is for the program; we tell what it did until then. */
	signal(SIGINT, SIG_IGN);
	start = clock_mono_ns();
	if (!e)
		e = launch_go(&s->launch, err);
	if (!e)
		launch_wait(&s->launch);
	s->time_ns = clock_mono_ns() - start;
	return e;
}

static void read_all(struct stat_command *s)
{
	for (size_t i = 0; i < s->threads.n; i++) {
		counters_read(&s->threads.v[i].counters, s->threads.v[i].values);
		for (size_t k = 0; k < COUNTERS; k++)
			counter_add(&s->total[k], &s->threads.v[i].values[k]);
	}
}

/* --- what is missing, once --- */

static bool has_hardware(const struct stat_command *s)
{
	for (size_t k = COUNTER_CYCLES; k < COUNTERS; k++)
		if (s->total[k].known)
			return true;
	return false;
}

static void tell_missing(const struct stat_command *s)
{
	const struct counters *c = &s->threads.v[0].counters;
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
			if (!s->total[k].known)
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

/* --- text --- */

static void put_count(struct buf *out, const char *name, const char *value, const char *note)
{
	buf_printf(out, "  %-24s%18s%s%s\n", name, value, *note ? "   " : "", note);
}

static void put_rows(const struct stat_command *s, const struct counter_value *v, struct buf *out)
{
	double seconds = s->time_ns / 1e9;
	bool scaled = false;

	for (size_t k = 0; k < COUNTERS; k++) {
		char value[32], note[96] = "";

		if (!v[k].known)
			continue;
		if (k == COUNTER_TASK_CLOCK) {
			str_duration(value, (uint64_t)v[k].value);
			snprintf(note, sizeof(note), "%.2f CPUs",
				 seconds > 0 ? v[k].value / 1e9 / seconds : 0);
		} else {
			str_count(value, (uint64_t)(v[k].value + 0.5));
			if (!counter_is_hardware(k) && seconds > 0)
				snprintf(note, sizeof(note), "%.1f a second", v[k].value / seconds);
			else if (v[k].share < 0.995)
				snprintf(note, sizeof(note), "counted %.0f %% of the time, scaled",
					 v[k].share * 100);
			scaled |= v[k].share < 0.995;
		}
		put_count(out, counter_names[k], value, note);
	}
	for (size_t r = 0; r < RATIOS; r++) {
		double x = counter_ratio(v, r);
		const char *hint = isnan(x) ? NULL : counter_hint(r, x);
		char value[32];

		if (isnan(x))
			continue;
		snprintf(value, sizeof(value), r == RATIO_IPC ? "%.2f" : "%.2f %%",
			 r == RATIO_IPC ? x : x * 100);
		put_count(out, counter_ratio_names[r], value, hint ? hint : "");
	}
	if (scaled)
		buf_puts(out, "  There are more events than counters: they took turns, and what was counted "
			      "is scaled to the whole time.\n");
}

static int by_cpu(const void *a, const void *b)
{
	double x = ((const struct counted *)a)->values[COUNTER_TASK_CLOCK].value;
	double y = ((const struct counted *)b)->values[COUNTER_TASK_CLOCK].value;

	return (x < y) - (x > y);
}

/* "-" where it is not known. */
static char *count_or_dash(char out[32], const struct counter_value *v)
{
	if (v->known)
		return str_count(out, (uint64_t)(v->value + 0.5));
	snprintf(out, 32, "-");
	return out;
}

static void put_thread(const struct counted *t, struct buf *out)
{
	double ipc = counter_ratio(t->values, RATIO_IPC);
	char cpu[32], faults[32], major[32], switches[32], moves[32], ratio[16];

	snprintf(ratio, sizeof(ratio), "%.2f", ipc);
	buf_printf(out, "  %8d  %-16s%12s%12s%12s%12s%12s%8s\n", (int)t->tid, t->name,
		   str_duration(cpu, (uint64_t)t->values[COUNTER_TASK_CLOCK].value),
		   count_or_dash(faults, &t->values[COUNTER_MINOR_FAULTS]),
		   count_or_dash(major, &t->values[COUNTER_MAJOR_FAULTS]),
		   count_or_dash(switches, &t->values[COUNTER_SWITCHES]),
		   count_or_dash(moves, &t->values[COUNTER_MIGRATIONS]), isnan(ipc) ? "-" : ratio);
}

static void put_text(struct stat_command *s, struct buf *out)
{
	char time[32];

	buf_printf(out, "%s: %s", s->who.target, str_duration(time, s->time_ns));
	if (s->launch.pid <= 0)
		buf_printf(out, ", %zu thread%s and what %s started", s->threads.n,
			   s->threads.n == 1 ? "" : "s", s->threads.n == 1 ? "it" : "they");
	buf_puts(out, "\n");
	command_plain(out->data);
	out->data[out->n - 1] = '\n'; /* was made plain too */
	put_rows(s, s->total, out);
	if (!s->per_thread)
		return;
	buf_printf(out, "\n  %8s  %-16s%12s%12s%12s%12s%12s%8s\n", "thread", "", "CPU time", "minor", "major",
		   "switches", "migrations", "IPC");
	for (size_t i = 0; i < s->threads.n; i++)
		put_thread(&s->threads.v[i], out);
}

/* --- JSON --- */

static void json_values(const struct counter_value *v, struct buf *out)
{
	bool first = true;

	buf_puts(out, "\"counters\":{");
	for (size_t k = 0; k < COUNTERS; k++) {
		if (!v[k].known)
			continue;
		buf_printf(out, "%s\"%s\":{\"value\":%.0f,\"counted\":%.4f}", first ? "" : ",",
			   counter_names[k], v[k].value, v[k].share);
		first = false;
	}
	buf_puts(out, "},\"ratios\":{");
	first = true;
	for (size_t r = 0; r < RATIOS; r++) {
		double x = counter_ratio(v, r);

		if (isnan(x))
			continue;
		buf_printf(out, "%s\"%s\":%.6g", first ? "" : ",", counter_ratio_names[r], x);
		first = false;
	}
	buf_putc(out, '}');
}

static void put_json(const struct stat_command *s, struct buf *out)
{
	buf_puts(out, "{\"gasflame\":\"stat\",\"version\":1,\"target\":");
	buf_json(out, s->who.target);
	buf_printf(out, ",\"seconds\":%.9f,\"hardware\":%s,\"user_only\":%s,", s->time_ns / 1e9,
		   has_hardware(s) ? "true" : "false", s->threads.v[0].counters.user_only ? "true" : "false");
	json_values(s->total, out);
	if (s->per_thread)
		buf_puts(out, ",\"threads\":[");
	for (size_t i = 0; i < s->threads.n && s->per_thread; i++) {
		buf_printf(out, "%s{\"pid\":%d,\"tid\":%d,\"name\":", i ? ",\n" : "\n",
			   (int)s->threads.v[i].pid, (int)s->threads.v[i].tid);
		buf_json(out, s->threads.v[i].name);
		buf_putc(out, ',');
		json_values(s->threads.v[i].values, out);
		buf_putc(out, '}');
	}
	buf_puts(out, s->per_thread ? "]}\n" : "}\n");
}

/* --- the command --- */

static int stat_run(struct stat_command *s, char **command, char **names, int count, struct err *err)
{
	_cleanup_(buf_done) struct buf out = { 0 };
	char *here[] = { "." };
	int e;

	start_raise_limits();
	if (command) {
		e = count_command(s, command, err);
	} else {
		e = start_find(&s->who, &s->pids, names, count, err);
		if (!e)
			e = open_targets(s, err);
		if (!e)
			count_targets(s);
	}
	if (e)
		return e;
	read_all(s);
	tell_missing(s);
	if (s->gone)
		log_warn("the target ended after %.1f s", s->time_ns / 1e9);
	vec_sort(&s->threads, by_cpu);
	if (s->json)
		put_json(s, &out);
	else
		put_text(s, &out);
	return files_write(s->output, &out, here, 0, err);
}

static int stat_main(const struct command *c, int argc, char **argv)
{
	struct stat_command s = { .duration_ns = 10000000000,
				  .launch = { .pid = -1, .gate = -1, .failed = -1, .output = -1, .copier = -1 } };
	struct err err = { 0 };
	const struct option_spec options[] = {
		{ 'p', "pid", OPTION_LIST, &s.pids, "PID", "a process" },
		{ 'd', "duration", OPTION_DURATION, &s.duration_ns, "TIME",
		  "how long to count a target; Ctrl-C ends early" },
		{ 0, "per-thread", OPTION_FLAG, &s.per_thread,
		  .help = "each thread of a target too; those that it starts meanwhile count with the thread "
			  "that started them" },
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
	if (command && (!*command || first < argc || s.pids.list.n || s.per_thread)) {
		log_error(!*command	 ? "say which program to run: gasflame stat -- ./program"
			  : s.per_thread ? "--per-thread is for a running target: a program's threads start "
					   "after it"
					 : "either a target or a command after --, not both");
		vec_done(&s.pids.list);
		return EXIT_USAGE;
	}
	e = stat_run(&s, command, argv + first, argc - first, &err);
	if (e)
		log_error("%s", err.text);
	code = e	? (err.code == EINVAL ? EXIT_USAGE : EXIT_ERROR)
	       : s.gone ? EXIT_GONE
			: launch_exit_code(&s.launch);
	stat_done(&s);
	return code;
}

const struct command command_stat = {
	.name = "stat",
	.summary = "count cycles, instructions, misses, faults and switches",
	.usage = "[options] TARGET... | -- COMMAND [ARGUMENT...]",
	.describe = "Counts what a running program, or one that it starts, does: cycles, instructions, "
		    "accesses and misses of the caches, of branches and of the TLB, CPU time, page faults, "
		    "context switches and migrations. Where there are more events than counters they take "
		    "turns, and what was counted is scaled; the table says so. A machine without such "
		    "counters gives the kernel's own.\n\n"
		    "With a command it ends with the command's status.",
	.example = "gasflame stat -d 10 --per-thread reth\ngasflame stat -- ./ethrex-replay block 24443168 "
		   "--no-zkvm",
	.run = stat_main,
};
