#include "cmd/recording/recording.h"

#include <errno.h>
#include <signal.h>
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
#include "cmd/captures/captures.h"
#include "cmd/cmd.h"
#include "cmd/opener.h"
#include "cmd/recording/launch.h"
#include "cmd/recording/output.h"
#include "cmd/recording/recorder.h"
#include "cmd/recording/targets.h"
#include "collect/process/owners.h"
#include "collect/session.h"
#include "elf/worker/worker.h"
#include "export/section/cost/costtext.h"
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
static struct worker *volatile naming; /* the worker that symbolizes, while it does */

static void handle(int signal, void (*handler)(int))
{
	struct sigaction sa = { .sa_handler = handler };

	sigaction(signal, &sa, NULL);
}

/* Ctrl-C reaches the program by itself, as it belongs to the same process group; other signals do not. The
 * second Ctrl-C gives up on names: the samples are on disk by then. */
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

static void handle_signals(bool on, void (*on_user)(int))
{
	bool pass_on = on || forward_to > 0;

	handle(SIGINT, on ? on_stop : SIG_DFL);
	handle(SIGTERM, pass_on ? on_stop : SIG_DFL);
	handle(SIGHUP, pass_on ? on_stop : SIG_DFL);
	handle(SIGUSR1, on ? on_user : SIG_IGN);
	handle(SIGUSR2, on ? on_user : SIG_IGN);
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

/* Where there is no room at the moment, old rows are summed later. */
static int sum_old(struct recording *r, struct profile *p)
{
	int e = capture_sum(r->capture, p, &r->tick_err);

	return e == -ENOSPC || e == -EFBIG ? 0 : e;
}

static int tick(void *context, struct profile *p)
{
	struct recording *r = context;
	int e = capture_flush(r->capture, p, &r->tick_err);

	if (e >= 0)
		e = sum_old(r, p);

	symbolizer_look(r->symbolizer, p);
	r->marks_written = p->marks.n;
	if (r->max_bytes && !r->session.full)
		r->session.full = bytes_on_disk(r) >= r->max_bytes;
	if (e >= 0 && p->samples.n + p->wakes.n + p->taskwakes.n + p->points.n > KEEP_ROWS)
		capture_drop_samples(r->capture, p);
	if (r->launch.pid > 0 && launch_poll(&r->launch))
		session_check_soon();
	return e;
}

static void on_ready(void *context, const struct session *s)
{
	struct recording *r = context;

	recorder_drop_rights(r->path, session_records(s, "heap") || session_records(s, "task"));
}

int recording_find(struct recording *r, const struct option_list *pids, char **names, int count, struct err *err)
{
	recorder_hurry(true);
	return targets_find(&r->who, pids, names, count, err);
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

/* Names of events are unsuitable. */
char *recording_what(const struct session_options *o)
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
	_cleanup_free_ char *what = r->name ? mem_strdup(r->name) : recording_what(&r->session);

	int e = output_create(r->output, r->who.label, what, &r->path, &r->capture, err);

	return e ? e : capture_limit(r->capture, r->limit_bytes, r->full_ns, err);
}

void recording_say_end(const struct recording *r)
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
	size_t counters = r->profile->counters.n;
	int e;

	naming = r->worker;
	handle(SIGINT, on_stop);
	if (stops > 1)
		worker_cancel(r->worker);
	e = symbolize_profile(symbolizer, r->profile, command_show_names, NULL, err);
	naming = NULL;
	handle(SIGINT, SIG_DFL);
	command_tell_names(r->profile, counters);
	if (worker_cancelled(r->worker))
		log_warn("not all functions were named: gasflame report %s goes on with it", r->path);
	return e;
}

int recording_start(struct recording *r, struct session *s, void (*on_user)(int), struct err *err)
{
	int e;

	stops = 0;
	handle_signals(true, on_user ? on_user : on_pause);
	e = session_start(s, err);
	if (e >= 0)
		e = recordtrace_begin(&r->trace, err);
	if (e >= 0 && r->launch.pid > 0) {
		e = launch_go(&r->launch, err);
		if (e >= 0 && !r->beside)
			e = session_started(s, err);
		forward_to = r->launch.pid;
	}
	return e;
}

void recording_ended(struct recording *r)
{
	handle_signals(false, NULL);
}

/* From the first sample to the last flush; the capture is whole afterwards unless the disk is full. */
static int record(struct recording *r, struct session *s, struct err *err)
{
	struct symbolizer *symbolizer = symbolizer_new(&r->symbols, r->worker);
	struct rusage children;
	int e;

	r->symbolizer = symbolizer;
	e = recording_start(r, s, NULL, err);
	if (e >= 0) {
		log_info("Recording %s (%s%s%s%s) to %s", r->who.target, r->session.what,
			 *r->session.what && r->session.events_file ? ", " : "",
			 r->session.events_file ? r->session.events_file : "",
			 session_has_bpf(s) ? "" : ", without BPF", r->path);
		r->end = session_loop(s);
	}
	symbolizer_look(symbolizer, r->profile);
	session_finish(s, symbolizer_keep_file, symbolizer);
	symbolizer_keep_kernel(symbolizer, session_take_symbols(s));
	if (e >= 0 && r->finish)
		r->finish(r->context, r->profile);
	recorder_hurry(false);
	recorder_drop_more_rights(r->path);
	log_progress_end();
	recording_ended(r);
	if (e >= 0)
		recording_say_end(r);
	recordtrace_finish(&r->trace, e >= 0 ? r->profile : NULL, session_start_ns(s), r->marks_written);
	/* The samples are on disk before anything else can go wrong. */
	if (e >= 0)
		e = r->end == SESSION_END_TICK ? -r->tick_err.code : capture_flush(r->capture, r->profile, err);
	if (e >= 0)
		e = name_frames(r, symbolizer, err);
	log_progress_end();
	r->symbolizer = NULL;
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
	_cleanup_(buf_done) struct buf line = { 0 };
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
	quality_done(&q);
	selection_done(&selection);
	return code;
}

/* Checks whether more is alive at the end than allowed, and reports the allocating functions. */
static bool judge_leak(const struct recording *r)
{
	char alive[32], allowed[32], objects[32];
	_cleanup_(buf_done) struct buf table = { 0 };
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
	leak_done(&l);
	return leaks;
}

/* What it cost, by collector, and what was left out to keep the limit. */
static void say_cost(const struct recording *r)
{
	_cleanup_(buf_done) struct buf lines = { 0 };

	costtext_put(r->profile, log_colour(STDERR_FILENO), &lines);
	if (!lines.n)
		return;
	lines.data[lines.n - 1] = 0;
	log_lines(lines.data);
}

/* The file; to a person, what to type next, which may not name it. */
static void say_where(const struct recording *r)
{
	_cleanup_free_ char *next = output_next(r->path);
	bool person = r->say_next && isatty(STDERR_FILENO);

	if (!person || str_starts(r->path, CAPTURES_FOLDER "/"))
		log_info("%s", r->path);
	if (person)
		log_info("Next: %s", next);
}

int recording_open(struct recording *r, struct session **ret, struct err *err)
{
	int e;

	recorder_raise_limits();
	recorder_hurry(true);
	r->profile = profile_new();
	r->profile->target = profile_string(r->profile, r->who.target);
	r->profile->redacted = r->redact;
	for (size_t i = 0; i < r->who.found.n; i++)
		owners_add(r->profile, &r->who.found.v[i]);
	r->worker = worker_new();
	worker_start(r->worker); /* while everything else is set up */
	r->session.pids = r->who.pids.list.v;
	r->session.pid_count = r->who.pids.list.n;
	r->session.ready = on_ready;
	r->session.ready_context = r;
	log_progress("reading the target's code");
	e = session_open(&r->session, r->profile, r->worker, ret, err);
	log_progress_end();
	return e;
}

int recording_run(struct recording *r, struct err *err)
{
	struct session *s = NULL;
	int e, code;

	r->session.tick = tick;
	r->session.tick_context = r;
	e = recording_open(r, &s, err);
	if (e >= 0)
		e = open_output(r, err);
	if (e < 0) {
		session_close(s);
		return command_failed(err);
	}
	e = record(r, s, err);
	session_close(s);
	if (e >= 0)
		capture_note_summed(r->capture, r->profile); /* the last lines say it */
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
	say_cost(r);
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
	/* A program that was never released is not waited for. */
	if (r->launch.pid <= 0 || r->launch.gate >= 0 || code == EXIT_ERROR)
		return code;
	if (!r->beside && !launch_poll(&r->launch))
		log_info("The program goes on, and is not recorded any more; gasflame ends when it does.");
	launch_wait(&r->launch);
	forward_to = 0;
	return launch_exit_code(&r->launch) ? launch_exit_code(&r->launch) : code;
}

void recording_done(struct recording *r)
{
	worker_free(r->worker);
	profile_free(r->profile);
	targets_done(&r->who);
	free(r->path);
	free((char *)r->session.program);
	launch_done(&r->launch);
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
