#include "cmd/stat/statsample.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "bench/runlog.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cmd/recording/launch.h"
#include "cmd/recording/recorder.h"
#include "cmd/recording/targets.h"
#include "cmd/stop.h"
#include "collect/blocks/blockmarks.h"
#include "collect/session.h"
#include "elf/worker/worker.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"

enum { LOOK_MS = 5 }; /* a line of the output is late by no more */

static void on_child(int signal)
{
	/* Only to wake the loop up. */
}

static void handle_signals(bool on)
{
	struct sigaction child = { .sa_handler = on_child };

	if (on)
		stop_catch(false, session_interrupt);
	else
		stop_release();
	sigaction(SIGCHLD, &child, NULL);
}

static void read_output(const struct statsample *o)
{
	char text[16384];
	ssize_t n;

	if (!o->log || o->launch->output < 0)
		return;
	while ((n = read(o->launch->output, text, sizeof(text))) > 0) {
		o->log->now_ns = clock_wall_ns();
		runlog_feed(o->log, text, n);
	}
}

static void add_phases(const struct runlog *l, struct profile *p)
{
	uint64_t start = p->start_wall_ns;

	for (size_t i = 0; i < l->spans.n; i++) {
		const struct runlog_span *s = &l->spans.v[i];

		if (s->end_ns <= start)
			continue;
		profile_add_mark(p, &(struct profile_mark){ .start_ns = MAX(s->start_ns, start) - start,
							    .end_ns = s->end_ns - start,
							    .name = profile_string(p, l->phases.v[s->phase].name),
							    .kind = profile_string(p, "phase"),
							    .thread = PROFILE_NONE });
	}
}

static void on_ready(void *context, const struct session *s)
{
	recorder_drop_rights("./", false);
}

static int record(const struct statsample *o, struct session *s, struct err *err)
{
	bool run = o->launch->pid > 0;
	uint64_t end;
	int e = session_start(s, err);

	if (!e && run)
		e = launch_go(o->launch, err);
	if (!e && run)
		e = session_started(s, err);
	if (run && o->launch->output >= 0)
		fcntl(o->launch->output, F_SETFL, O_NONBLOCK);
	end = o->duration_ns ? clock_mono_ns() + o->duration_ns : UINT64_MAX;
	while (!e && clock_mono_ns() < end && session_step(s, LOOK_MS) == SESSION_GOES_ON) {
		read_output(o);
		if (run && launch_poll(o->launch))
			session_check_soon();
	}
	if (!e && run)
		launch_wait(o->launch); /* and for the last of its output */
	read_output(o);
	if (o->log)
		runlog_end(o->log);
	return e;
}

int statsample(const struct statsample *o, struct profile **ret, struct err *err)
{
	const struct symbolize_options names = { 0 };
	const struct blockmarks_options marks = { .log = o->block_log, .log_fd = -1 };
	struct session_options options = { .what = "hw", .hz = o->hz, .duration_ns = o->duration_ns,
					   .backend = SESSION_BPF, .event_rate = 20000, .program = o->program,
					   .pids = o->who->pids.list.v, .pid_count = o->who->pids.list.n,
					   .marks = o->block_log ? &marks : NULL, .ready = on_ready };
	struct profile *p = profile_new();
	struct worker *worker = worker_new();
	struct symbolizer *symbolizer = symbolizer_new(&names, worker);
	struct session *s = NULL;
	int e;

	log_progress("reading the target's code");
	e = session_open(&options, p, worker, &s, err);
	log_progress_end();
	if (!e) {
		handle_signals(true);
		e = record(o, s, err);
		session_finish(s, symbolizer_keep_file, symbolizer);
		symbolizer_keep_kernel(symbolizer, session_take_symbols(s));
		handle_signals(false);
		log_progress_end();
	}
	if (!e && o->log)
		add_phases(o->log, p);
	if (!e)
		e = symbolize_profile(symbolizer, p, NULL, NULL, err);
	session_close(s);
	symbolizer_free(symbolizer);
	worker_free(worker);
	p->finished = true;
	if (e)
		profile_free(p);
	else
		*ret = p;
	return e;
}
