#include "cmd/top/livesource.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cmd/recording/recorder.h"
#include "cmd/top/artifacts.h"
#include "collect/process/owners.h"
#include "elf/worker/worker.h"
#include "profile/profile.h"
#include "symbol/background.h"
#include "target/proc.h"
#include "tui/window.h"

enum { COSTS = 6 }; /* refreshes over which our own cost is measured */

/* A process's faults when they were last read. */
struct live_faults {
	uint32_t pid;
	uint64_t minor, major, time_ns;
};

struct livesource {
	struct livesource_options options;
	struct worker *worker;
	struct profile *profile;
	struct session *session;
	struct window window;
	struct view view;
	struct background *names;
	VEC(struct live_faults) faults;
	struct {
		uint64_t time_ns, cpu_ns;
	} costs[COSTS];
	unsigned cost_count;
	bool named;              /* frames got names since the last refresh */
	uint64_t named_since_ns; /* names are being looked for, 0 = not now */
};

static void drop_file(void *context, uint32_t module, int fd)
{
	close(fd);
}

static void end_session(struct livesource *l)
{
	if (l->session)
		session_finish(l->session, drop_file, NULL);
	session_close(l->session);
	l->session = NULL;
	if (l->view.of)
		view_done(&l->view);
	background_free(l->names);
	l->names = NULL;
	window_done(&l->window);
	profile_free(l->profile);
	l->profile = NULL;
	worker_free(l->worker);
	l->worker = NULL;
}

/* Pictures are written into this folder. */
static void on_ready(void *context, const struct session *s)
{
	recorder_drop_rights("./", session_records(s, "heap") || session_records(s, "task"));
}

static int begin_session(struct livesource *l, struct err *err)
{
	int r;

	l->profile = profile_new();
	l->profile->target = profile_string(l->profile, l->options.who.target);
	for (size_t i = 0; i < l->options.who.found.n; i++)
		owners_add(l->profile, &l->options.who.found.v[i]);
	l->worker = worker_new();
	window_init(&l->window, l->profile, l->options.window_ns);
	l->window.exact = l->options.session.marks != NULL;
	r = session_open(&l->options.session, l->profile, l->worker, &l->session, err);
	if (r >= 0)
		r = session_start(l->session, err);
	if (r >= 0)
		l->names = background_new(&l->options.symbols);
	return r;
}

int livesource_open(const struct livesource_options *o, struct livesource **ret, struct err *err)
{
	struct livesource *l = mem_alloc(sizeof(*l));
	int r;

	l->options = *o;
	l->options.session.pids = o->who.pids.list.v;
	l->options.session.pid_count = o->who.pids.list.n;
	l->options.session.ready = on_ready;
	log_progress("reading the target's code");
	r = begin_session(l, err);
	log_progress_end();
	if (r < 0) {
		livesource_close(l);
		return r;
	}
	*ret = l;
	return 0;
}

void livesource_close(struct livesource *l)
{
	if (!l)
		return;
	end_session(l);
	vec_done(&l->faults);
	free(l);
}

static int step(void *context, int timeout_ms)
{
	struct livesource *l = context;
	bool ended = !l->session || session_step(l->session, timeout_ms) != SESSION_GOES_ON;

	/* Symbolizing starts as soon as there are frames: it takes time. */
	if (l->names && background_poll(l->names, l->profile))
		l->named = true;
	/* The tables that the view borrows may have moved. */
	if (l->view.of)
		view_sync(&l->view);
	return ended;
}

/* Tables only grow, for hours: from some size on it is better to forget. */
static bool begin_anew(struct livesource *l)
{
	struct err err = { 0 };

	if (window_bytes(&l->window) <= l->options.max_bytes)
		return false;
	end_session(l);
	if (begin_session(l, &err) < 0) {
		log_warn("%s", err.text); /* what is left says that the target has ended */
		session_close(l->session);
		l->session = NULL;
	} else {
		log_info("Started over: the tables had grown to %llu MB.",
			 (unsigned long long)(l->options.max_bytes >> 20));
	}
	return true;
}

static void note_cost(struct livesource *l)
{
	unsigned at = l->cost_count++ % COSTS;

	l->costs[at].time_ns = clock_mono_ns();
	l->costs[at].cpu_ns = clock_process_cpu_ns() + (l->names ? background_child_cpu_ns(l->names) : 0);
}

static void note_naming(struct livesource *l)
{
	if (!l->names || !background_busy(l->names))
		l->named_since_ns = 0;
	else if (!l->named_since_ns)
		l->named_since_ns = clock_mono_ns();
}

static const struct profile *refresh(void *context, uint64_t last_ns, bool hold, unsigned *ret_changes)
{
	struct livesource *l = context;

	if (!hold && begin_anew(l))
		*ret_changes |= SOURCE_PROFILE;
	if (l->session) {
		window_take(&l->window);
		session_peek(l->session);
		window_look(&l->window);
	}
	if (l->named)
		*ret_changes |= SOURCE_NAMES;
	l->named = false;
	note_naming(l);
	note_cost(l);
	if (hold && l->view.of) {
		view_sync(&l->view);
		return &l->view.profile;
	}
	if (l->view.of)
		view_done(&l->view);
	window_view(&l->window, last_ns, &l->view);
	return &l->view.profile;
}

/* Faults a second since the last time. */
static void rate_of(struct livesource *l, struct model_memory *m, const struct proc_stat *st)
{
	struct live_faults now = { m->pid, st->minor_faults, st->major_faults, clock_mono_ns() };

	m->minor_rate = m->major_rate = -1;
	for (size_t i = 0; i < l->faults.n; i++) {
		struct live_faults *was = &l->faults.v[i];
		double seconds = (now.time_ns - was->time_ns) / 1e9;

		if (was->pid != m->pid)
			continue;
		if (seconds > 0 && now.minor >= was->minor && now.major >= was->major) {
			m->minor_rate = (now.minor - was->minor) / seconds;
			m->major_rate = (now.major - was->major) / seconds;
		}
		*was = now;
		return;
	}
	vec_push(&l->faults, now);
}

static void memory(void *context, struct model *m)
{
	struct livesource *l = context;

	vec_clear(&m->memory);
	for (size_t i = 0; i < l->profile->processes.n; i++) {
		const struct profile_process *process = &l->profile->processes.v[i];
		struct model_memory row = { .pid = process->pid };
		struct proc_memory parts;
		struct proc_stat st;

		if (process->end_ns || proc_stat(process->pid, &st) < 0 ||
		    proc_memory(process->pid, &parts) < 0)
			continue;
		snprintf(row.name, sizeof(row.name), "%s", st.name);
		row.rss_bytes = parts.rss_bytes;
		row.anon_bytes = parts.anon_bytes;
		row.file_bytes = parts.file_bytes;
		row.shared_bytes = parts.shared_bytes;
		row.swap_bytes = parts.swap_bytes;
		rate_of(l, &row, &st);
		vec_push(&m->memory, row);
	}
}

static void state(void *context, struct buf *b)
{
	struct livesource *l = context;
	unsigned last = (l->cost_count - 1) % COSTS,
		 first = l->cost_count < COSTS ? 0 : l->cost_count % COSTS;

	if (l->named_since_ns && clock_mono_ns() - l->named_since_ns > 500000000)
		buf_puts(b, "finding names");
	else if (l->cost_count > 2 && l->costs[last].time_ns > l->costs[first].time_ns &&
		 l->costs[last].cpu_ns > l->costs[first].cpu_ns)
		buf_printf(b, "own cost %.1f %%", 100.0 * (l->costs[last].cpu_ns - l->costs[first].cpu_ns) /
			   (l->costs[last].time_ns - l->costs[first].time_ns));
}

static void code(void *context, const struct profile *p, uint32_t module, uint64_t address,
		 struct code_text *ret)
{
	struct livesource *l = context;

	artifacts_code(p, module, address, l->options.symbols.paths, ret);
}

static int write_picture(void *context, const char *what, const struct look_file *files, size_t n,
			 char **ret_stem, struct err *err)
{
	struct livesource *l = context;

	return artifacts_write(l->options.who.label, what, files, n, ret_stem, err);
}

void livesource_fill(struct livesource *l, struct source *ret)
{
	*ret = (struct source){ .context = l, .live = true, .title = l->options.who.target, .step = step,
				.refresh = refresh, .memory = memory, .state = state, .code = code,
				.write = write_picture };
}
