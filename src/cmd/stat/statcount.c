#include "cmd/stat/statcount.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "bench/runlog.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text/plain.h"
#include "cmd/cmd.h"
#include "cmd/recording/launch.h"
#include "cmd/recording/recorder.h"
#include "cmd/recording/targets.h"
#include "cmd/stop.h"

enum { READ_MS = 5 }; /* between two readings, where phases are wanted */

void statcount_done(struct statcount *c)
{
	vec_done_each(&c->threads, e, counters_close(&e->counters));
	counterline_done(&c->line);
}

static int no_counters(int e, struct err *err)
{
	if (e == -EACCES || e == -EPERM)
		return err_set(err, EPERM,
			       "the kernel does not let us count this (run it as root, or give the program "
			       "CAP_PERFMON; sysctl kernel.perf_event_paranoid=2 allows it for one's own "
			       "processes)");
	return err_errno(err, -e, "cannot count events of this process");
}

/* A thread that ends meanwhile is skipped. */
static int add_thread(struct statcount *c, pid_t pid, pid_t tid, bool on_exec, struct err *err)
{
	struct counted t = { .pid = pid, .tid = tid };
	struct proc_stat stat;
	int e = counters_open(&t.counters, tid, on_exec);

	if (!proc_thread_stat(pid, tid, &stat))
		snprintf(t.name, sizeof(t.name), "%s", stat.name);
	plain_in_place(t.name);
	if (e) {
		counters_close(&t.counters);
		return e == -ESRCH ? 0 : no_counters(e, err);
	}
	vec_push(&c->threads, t);
	return 0;
}

int statcount_open(struct statcount *c, const struct targets *who, struct err *err)
{
	int e = 0;

	for (size_t i = 0; i < who->pids.list.n && !e; i++) {
		struct proc_ids threads = { 0 };

		if (proc_threads(who->pids.list.v[i], &threads) < 0)
			continue;
		for (size_t k = 0; k < threads.list.n && !e; k++)
			e = add_thread(c, who->pids.list.v[i], threads.list.v[k], false, err);
		vec_done(&threads.list);
	}
	if (!e && !c->threads.n)
		e = err_set(err, ESRCH, "the target has ended");
	return e;
}

static bool all_gone(const struct targets *who)
{
	for (size_t i = 0; i < who->pids.list.n; i++)
		if (!kill(who->pids.list.v[i], 0) || errno == EPERM)
			return false;
	return true;
}

void statcount_targets(struct statcount *c, const struct targets *who, uint64_t duration_ns)
{
	uint64_t start = clock_mono_ns(), end = start + duration_ns, now;

	stop_catch(false, NULL);
	while ((now = clock_mono_ns()) < end && !stop_wanted && !c->gone) {
		poll(NULL, 0, (int)MIN((end - now) / 1000000 + 1, (uint64_t)100));
		c->gone = all_gone(who);
	}
	c->time_ns = clock_mono_ns() - start;
}

static void take_reading(struct statcount *c)
{
	struct counterline_reading r = { .time_ns = clock_mono_ns() };

	for (size_t i = 0; i < COUNTERS; i++)
		r.known[i] = counters_raw(&c->threads.v[0].counters, i, &r.raw[i]);
	counterline_add(&c->line, &r);
}

static void read_output(struct launch *l, struct runlog *log)
{
	char text[16384];
	ssize_t n;

	while (l->output >= 0 && (n = read(l->output, text, sizeof(text))) > 0) {
		log->now_ns = clock_mono_ns();
		runlog_feed(log, text, n);
	}
}

/* A line of its output ends a phase: the counters are read when it comes, and now and then before. */
static void follow_phases(struct statcount *c, struct launch *l, struct runlog *log)
{
	struct pollfd p = { .fd = l->output, .events = POLLIN };

	fcntl(l->output, F_SETFL, O_NONBLOCK);
	take_reading(c);
	while (!launch_poll(l)) {
		if (poll(&p, 1, READ_MS) > 0 && p.revents & (POLLHUP | POLLERR) && !(p.revents & POLLIN))
			p.fd = -1; /* it has closed its output, and goes on */
		take_reading(c);
		read_output(l, log);
	}
	take_reading(c);
	launch_wait(l); /* and for the last of its output */
	read_output(l, log);
	runlog_end(log);
}

int statcount_command(struct statcount *c, struct launch *l, char **argv, struct runlog *log, struct err *err)
{
	uint64_t start;
	int e = launch_start(l, argv, log->phases.n, err);

	if (e)
		return e;
	e = add_thread(c, l->pid, l->pid, true, err);
	/* Ctrl-C is for the program; we report its counts until then. */
	signal(SIGINT, SIG_IGN);
	start = clock_mono_ns();
	if (!e)
		e = launch_go(l, err);
	recorder_drop_rights("./", false);
	if (!e && log->phases.n)
		follow_phases(c, l, log);
	else if (!e)
		launch_wait(l);
	c->time_ns = clock_mono_ns() - start;
	return e;
}

void statcount_read(struct statcount *c)
{
	for (size_t i = 0; i < c->threads.n; i++) {
		counters_read(&c->threads.v[i].counters, c->threads.v[i].values);
		for (size_t k = 0; k < COUNTERS; k++)
			counter_add(&c->total[k], &c->threads.v[i].values[k]);
	}
}
