/*
 * mem.c - `mem`: where the resident memory of a process is; once, again and again, or over a time.
 *
 * Only reads /proc and cgroups: no BPF, and no rights beyond those over one's own processes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "analyze/memory/rss.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/recording/output.h"
#include "cmd/recording/recorder.h"
#include "cmd/recording/targets.h"
#include "cmd/stop.h"
#include "collect/mem/memwatch.h"
#include "collect/process/owners.h"
#include "export/section/memtext.h"
#include "capture/capture.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/proc.h"

enum {
	DEFAULT_FILES = 10,
	KEEP_POINTS = 1000000, /* in memory; the older half goes, to the capture if there is one */
};
#define ONCE_NS 500000000ULL        /* rates of a single look are over this */
#define EVERY_NS 1000000000ULL
#define SLICE_NS 100000000ULL       /* how soon a signal is noticed */
#define FLUSH_NS 1000000000ULL

struct mem {
	uint64_t duration_ns, watch_ns, every_ns, limit;
	const char *output, *metrics;
	bool json, csv;
	struct option_list names;
	struct targets who;
	struct profile *profile;
	struct memwatch *watch;
	struct capture *capture;
	uint64_t start_ns, flushed_ns, printed_ns; /* printed: looks before this time are on stdout */
	bool metrics_failed, gone, header;
};

/* --- who --- */

static int find_targets(struct mem *m, char **names, int n, struct err *err)
{
	if (!m->names.list.n && !n)
		return err_set(err, EINVAL, "say whose memory: a container, a unit, a process by name or pid (gasflame mem --help)");
	return targets_find(&m->who, &m->names, names, n, err);
}

static void describe(struct mem *m)
{
	struct profile *p = m->profile;
	struct utsname u;

	p->target = profile_string(p, m->who.target);
	p->start_wall_ns = clock_wall_ns();
	if (!uname(&u)) {
		p->host = profile_string(p, u.nodename);
		p->kernel = profile_string(p, u.release);
	}
	for (size_t i = 0; i < m->who.found.n; i++)
		owners_add(p, &m->who.found.v[i]);
	for (size_t i = 0; i < m->who.pids.list.n; i++) {
		_cleanup_free_ char *exe = proc_exe(m->who.pids.list.v[i]),
				    *command = proc_command(m->who.pids.list.v[i]);
		struct profile_process x = { .pid = m->who.pids.list.v[i] };
		struct proc_stat s;

		if (proc_stat(x.pid, &s))
			continue;
		x.parent_pid = s.parent;
		x.name = profile_string(p, s.name);
		x.exe = profile_string(p, exe ? exe : "");
		x.command = profile_string(p, command ? command : "");
		owners_find(p, x.pid, &x);
		profile_add_process(p, &x);
	}
}

/* --- output --- */

static int print(struct buf *out, struct err *err)
{
	int r = out->n ? fd_write_all(STDOUT_FILENO, out->data, out->n) : 0;

	buf_done(out);
	return r ? err_errno(err, -r, "cannot write to the standard output") : 0;
}

/* Prints one object a line, where there are several. */
static void one_line(struct buf *out)
{
	size_t n = 0;

	for (size_t i = 0; i < out->n; i++)
		if (out->data[i] != '\n')
			out->data[n++] = out->data[i];
	out->n = n;
}

static int show_rows(struct mem *m, struct err *err)
{
	struct buf out = { 0 };

	if (!m->header)
		memtext_csv_header(&out);
	m->header = true;
	memtext_csv_rows(m->profile, m->printed_ns, &out);
	m->printed_ns = clock_mono_ns() - m->start_ns;
	return print(&out, err);
}

static int show(struct mem *m, bool again, struct err *err)
{
	bool terminal = isatty(STDOUT_FILENO);
	const struct memtext_options o = { .limit = m->limit, .columns = terminal ? command_width() : 0,
					   .colour = log_colour(STDOUT_FILENO) };
	struct buf out = { 0 };
	struct rss r;

	if (m->csv)
		return show_rows(m, err);
	rss_build(&r, m->profile, 0, 0);
	if (m->json) {
		struct json j = json_begin(&out);

		memtext_object(&r, m->profile, m->limit, m->duration_ns && !m->watch_ns, NULL, &j);
		if (m->watch_ns)
			one_line(&out);
		buf_putc(&out, '\n');
	} else {
		if (again && terminal)
			buf_puts(&out, "\033[H\033[2J");
		memtext_table(&r, m->profile, &o, &out);
	}
	rss_done(&r);
	return print(&out, err);
}

/* Writes new data to the file, now and then, and at the end. */
static int flush(struct mem *m, bool now, struct err *err)
{
	struct profile *p = m->profile;
	uint64_t ns = clock_mono_ns();
	int r = 0;

	p->duration_ns = ns - m->start_ns;
	if (m->capture && (now || ns - m->flushed_ns >= FLUSH_NS)) {
		r = capture_flush(m->capture, p, err);
		m->flushed_ns = ns;
	}
	if (r < 0 || p->points.n < KEEP_POINTS)
		return r;
	if (m->capture) {
		capture_drop_samples(m->capture, p);
		return 0;
	}
	p->points.n /= 2;
	memmove(p->points.v, p->points.v + p->points.n, p->points.n * sizeof(*p->points.v));
	return 0;
}

/* --- looking --- */

/* Until then, or a signal. */
static void sleep_until(uint64_t mono_ns)
{
	for (uint64_t now = clock_mono_ns(); now < mono_ns && !stop_wanted; now = clock_mono_ns()) {
		uint64_t ns = MIN(mono_ns - now, SLICE_NS);

		nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
	}
}

static int look(struct mem *m, enum memwatch_how how, struct err *err)
{
	uint64_t now = clock_mono_ns();
	int r;

	m->gone = !memwatch_look(m->watch, now, how);
	if (m->gone || !m->metrics || m->metrics_failed)
		return 0;
	r = memwatch_metrics(m->watch, m->metrics, now, err);
	if (r && now - m->start_ns > EVERY_NS) { /* it was there before: the rest goes on without */
		log_warn("%s", err->text);
		m->metrics_failed = true;
		r = 0;
	}
	return r;
}

/* Looks once, and a moment before, for rates. */
static int look_once(struct mem *m, struct err *err)
{
	int r;

	memwatch_look(m->watch, clock_mono_ns(), MEMWATCH_CHEAP);
	sleep_until(clock_mono_ns() + ONCE_NS);
	m->printed_ns = clock_mono_ns() - m->start_ns;
	r = look(m, MEMWATCH_WALK, err);
	return r ? r : show(m, false, err);
}

/* Until the time is over, a signal, or the end of the targets. */
static int look_on(struct mem *m, struct err *err)
{
	uint64_t every = m->watch_ns ? m->watch_ns : m->every_ns, next = m->start_ns;
	uint64_t end = m->duration_ns ? m->start_ns + m->duration_ns : UINT64_MAX;
	bool first = true;
	int r = 0;

	if (m->watch_ns) { /* rates from the first table on */
		memwatch_look(m->watch, clock_mono_ns(), MEMWATCH_CHEAP);
		next += MIN(ONCE_NS, every);
		m->printed_ns = 1; /* not this one */
	}
	for (;;) {
		sleep_until(MIN(next, end));
		if (stop_wanted || (!first && clock_mono_ns() >= end))
			break;
		r = look(m, m->watch_ns ? MEMWATCH_WALK : MEMWATCH_BUDGET, err);
		if (r || m->gone)
			break;
		if (m->watch_ns || m->csv)
			r = show(m, true, err);
		r = r ? r : flush(m, false, err);
		if (r < 0)
			break;
		if (!m->watch_ns)
			log_progress("looking at the memory of %s: %.0f s (Ctrl-C ends and keeps everything)",
				     m->who.target, (clock_mono_ns() - m->start_ns) / 1e9);
		first = false;
		next = MAX(next + every, clock_mono_ns());
	}
	log_progress_end();
	if (r || m->watch_ns)
		return r;
	if (!m->gone)
		r = look(m, MEMWATCH_WALK, err);
	return r ? r : show(m, false, err);
}

static int run(struct mem *m, struct err *err)
{
	_cleanup_free_ char *path = NULL;
	int r = 0;

	stop_catch(false, NULL);
	if (m->output)
		r = output_create(m->output, NULL, NULL, &path, &m->capture, err);
	if (r)
		return r;
	m->start_ns = clock_mono_ns();
	recorder_drop_rights(m->output, false);
	m->watch = memwatch_new(m->profile, m->who.pids.list.v, m->who.pids.list.n, m->start_ns, true);
	r = m->duration_ns || m->watch_ns || m->output ? look_on(m, err) : look_once(m, err);
	if (!r && m->capture) {
		m->profile->finished = true;
		r = flush(m, true, err);
	}
	if (capture_close(m->capture, r ? NULL : err) < 0 && !r)
		r = -EIO;
	m->capture = NULL;
	return r;
}

static void mem_done(struct mem *m)
{
	memwatch_free(m->watch);
	profile_free(m->profile);
	targets_done(&m->who);
	vec_done(&m->names.list);
}

static int finish(struct mem *m, int r, const struct err *err)
{
	if (r)
		return command_failed(err);
	if (!m->profile->points.n) {
		log_error(kill(m->who.pids.list.v[0], 0) ? "%s is gone: `gasflame ps` lists what runs here"
						     : "%s has no memory of its own: it is a zombie or a kernel thread", m->who.target);
		return EXIT_ERROR;
	}
	if (m->output)
		log_info("%s", m->output);
	if (profile_counter(m->profile, KEY_MEM_NOT_WALKED))
		log_warn("the mappings of %s may not be read: run as root, or as its user, for RSS part by "
			 "part",
			 m->who.target);
	if (!m->gone)
		return EXIT_OK;
	log_warn("the target ended after %.1f s", m->profile->duration_ns / 1e9);
	return EXIT_GONE;
}

static int mem(const struct command *c, int argc, char **argv)
{
	_cleanup_(mem_done) struct mem m = { .limit = DEFAULT_FILES, .every_ns = EVERY_NS };
	struct err err = { 0 };
	const struct option_spec options[] = {
		{ 'd', "duration", OPTION_DURATION, &m.duration_ns, "TIME",
		  "look for this long, then show the table with what was least and most; without it once" },
		{ 0, "every", OPTION_DURATION, &m.every_ns, "TIME", "with -d: how often" },
		{ 'w', "watch", OPTION_DURATION, &m.watch_ns, "TIME", "show the table again and again: 5s" },
		{ 'p', "pid", OPTION_LIST, &m.names, "PID", "a process" },
		{ 'o', "output", OPTION_STRING, &m.output, "FILE",
		  "also write a capture, for gasflame report; without -d or --watch until Ctrl-C" },
		{ 0, "metrics", OPTION_STRING, &m.metrics, "URL",
		  "where the node offers its metrics (Prometheus' format): jemalloc's statistics are read "
		  "from there" },
		{ 'n', "limit", OPTION_UINT, &m.limit, "FILES", "mapped files in the table, 0 shows all" },
		{ 0, "json", OPTION_FLAG, &m.json, .help = "JSON; with --watch one object a line" },
		{ 0, "csv", OPTION_FLAG, &m.csv, .help = "a line for each look, with commas" },
		{ 0 },
	};
	int first = options_parse(c, options, argc, argv), r;

	if (first < 0)
		return -first - 1;
	if (m.json && m.csv) {
		log_error("of --json and --csv only one makes sense at a time");
		return EXIT_USAGE;
	}
	if (m.every_ns != EVERY_NS && (m.watch_ns || (!m.duration_ns && !m.output))) {
		log_error("--every is for -d; --watch says itself how often");
		return EXIT_USAGE;
	}
	if (m.every_ns < SLICE_NS || (m.watch_ns && m.watch_ns < SLICE_NS)) {
		log_error("looks must be at least 0.1 s apart");
		return EXIT_USAGE;
	}
	r = find_targets(&m, argv + first, argc - first, &err);
	m.profile = profile_new();
	if (!r) {
		describe(&m);
		r = run(&m, &err);
	}
	return finish(&m, r, &err);
}

const struct command command_mem = {
	.name = "mem",
	.summary = "show where a program's resident memory is",
	.usage = "[options] TARGET...",
	.describe = "RSS part by part, to the page: heap, mapped files by file, shared memory, stacks, data; beside "
		    "it PSS, swap, page tables, the cgroup's usage, limit and events, page faults, reclaim and "
		    "pressure. Only reads /proc: needs no root for one's own processes. A TARGET is " COMMAND_TARGETS "; "
		    "processes that it has started count, too.\n\n"
		    "What of the heap is alive is known with -e heap,mem of `gasflame record`, or with --metrics.",
	.example = "gasflame mem reth\ngasflame mem --watch 5s --metrics http://127.0.0.1:9001/ reth\n"
		   "gasflame mem -d 10m -o growth.gasflame reth",
	.run = mem,
	.keeps_rights = true,
};
