#include "cmd/agent/windowrecorder.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "capture/capture.h"
#include "cmd/agent/labels.h"
#include "cmd/agent/windowfile.h"
#include "cmd/flight/cut.h"
#include "cmd/flight/keep.h"
#include "cmd/recording/cgroupscope.h"
#include "cmd/recording/recording.h"
#include "collect/session.h"
#include "fleet/agent/board.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"
#include "target/hurry.h"

enum { STEP_MS = 250, PENDING = 3 };
static const uint64_t second_ns = 1000000000, pace_ns = 5000000000, stop_patience_ns = 10000000000, last_patience_ns = 300000000000;

struct windowrecorder {
	const struct windowrecorder_options *o;
	struct recording r;
	struct session *session;
	struct keep keep;
	struct symbolizer *symbolizer;
	struct map kept;        /* modules whose files the symbolizer has */
	VEC(struct windowfile) pending; /* windows that are not written yet, oldest first */
	uint64_t window_ns, next_ns; /* since the start of the recording */
	uint64_t block_ns;      /* when a block came last; 0 = none did */
	uint64_t retry_ns;      /* CLOCK_MONOTONIC */
	uint64_t sequence;
	char *release;
	struct labels labels;
	bool told;              /* that the spool cannot be written to */
};

static volatile sig_atomic_t again_wanted;

static void on_stop(int signal)
{
	session_interrupt();
}

static void on_again(int signal)
{
	again_wanted = 1;
	session_interrupt();
}

/* --- rows and names --- */

static void take_rows(struct windowrecorder *w)
{
	const struct profile *p = w->r.profile;

	for (size_t i = 0; i < p->marks.n; i++)
		if (!strcmp(profile_str(p, p->marks.v[i].kind), "block")) {
			w->block_ns = clock_mono_ns();
			w->o->row->blocks++;
		}
	keep_take(&w->keep);
}

/* The symbolizer keeps a file from the window on in which it was first mapped. */
static void keep_file(void *context, uint32_t module, int fd)
{
	struct windowrecorder *w = context;
	uint64_t *known = map_put(&w->kept, module + 1, 0);

	if (*known) {
		close(fd);
		return;
	}
	*known = 1;
	symbolizer_keep_file(w->symbolizer, module, fd);
}

/* Names what has none yet. The kernel's list takes 10 MB and 80 ms to read, for a few frames of most windows: the agent has it once, in
 * pages that all recorders share. */
static void name_frames(struct windowrecorder *w)
{
	struct err err = { 0 };

	symbolizer_look(w->symbolizer, w->r.profile);
	symbolizer_lend_kernel(w->symbolizer, w->o->kernel);
	if (symbolize_profile(w->symbolizer, w->r.profile, NULL, NULL, &err) < 0)
		log_debug("%s", err.text);
	symbolizer_keep_kernel(w->symbolizer, NULL);
}

/* --- windows --- */

static void count_sums(struct board_target *row, const struct profile *out)
{
	row->samples += profile_counter(out, KEY_SAMPLES_TAKEN);
	row->lost_samples += profile_counter(out, KEY_SAMPLES_LOST);
}

static void lose_oldest(struct windowrecorder *w, const char *why)
{
	log_error("a window of %.0f s is lost: %s", w->window_ns / 1e9, why);
	windowfile_done(&w->pending.v[0]);
	memmove(w->pending.v, w->pending.v + 1, --w->pending.n * sizeof(*w->pending.v));
	w->o->row->lost_windows++;
}

/* Oldest first; what cannot be written now is tried again later. */
static void write_pending(struct windowrecorder *w)
{
	struct err err = { 0 };

	while (w->pending.n) {
		struct windowfile *f = &w->pending.v[0];
		uint64_t end_ns = f->start_wall_ns + f->duration_ns;

		if (windowfile_write(f, w->o->spool, &err) < 0) {
			if (!w->told)
				log_error("%s; windows stay in memory, %d at most, and it is tried again", err.text, PENDING);
			w->told = true;
			w->retry_ns = clock_mono_ns() + pace_ns;
			while (w->pending.n > PENDING)
				lose_oldest(w, err.text);
			return;
		}
		if (w->told)
			log_info("windows can be written again");
		w->told = false;
		w->o->row->windows++;
		w->o->row->last_window_wall_ns = end_ns;
		windowfile_done(f);
		memmove(w->pending.v, w->pending.v + 1, --w->pending.n * sizeof(*w->pending.v));
	}
}

/* The window up to the last look becomes a file. */
static void cut_window(struct windowrecorder *w)
{
	const struct windowfile_about about = { .target = w->o->name, .release = w->release, .labels = w->labels.list.v,
						.sequence = w->sequence++ };
	struct windowfile f = { 0 };
	struct keep_snap snap;

	keep_snap(&w->keep, &snap);
	keep_next(&w->keep);
	windowfile_make(&f, &snap, &about);
	keep_snap_done(&snap);
	count_sums(w->o->row, f.profile);
	vec_push(&w->pending, f);
}

/* Nobody has them when we are gone: a disk that is full is waited for, shortly where the agent is to end. */
static void write_last(struct windowrecorder *w)
{
	uint64_t until = clock_mono_ns() + (w->r.end == SESSION_END_INTERRUPT && !again_wanted ? stop_patience_ns : last_patience_ns);

	for (write_pending(w); w->pending.n && clock_mono_ns() < until; write_pending(w))
		poll(NULL, 0, 1000);
	while (w->pending.n)
		lose_oldest(w, "it could not be written before the end");
}

static uint64_t worker_cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * second_ns + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000ULL;
}

/* What it costs is looked at more often than there are windows. */
static void tell_cost(struct windowrecorder *w)
{
	struct profile *tally = profile_new();

	session_tally(w->session, tally);
	w->o->row->bpf_ns = profile_counter(tally, KEY_BPF_RUN_NS);
	profile_free(tally);
}

static void tell(struct windowrecorder *w, const struct profile *tally)
{
	struct board_target *row = w->o->row;
	const struct profile *p = w->r.profile;
	uint32_t alive = 0;

	for (size_t i = 0; i < p->processes.n; i++)
		alive += p->processes.v[i].pid && !p->processes.v[i].end_ns;
	row->processes = alive;
	row->cpu_ns = clock_process_cpu_ns() + worker_cpu_ns();
	row->bpf_ns = profile_counter(tally, KEY_BPF_RUN_NS);
	row->table_bytes = keep_table_bytes(&w->keep);
}

/* Brings the window up to this moment. */
static void look_closely(struct windowrecorder *w)
{
	struct profile *tally = profile_new();

	take_rows(w);
	name_frames(w);
	session_peek(w->session);
	session_tally(w->session, tally);
	profile_count_set(tally, KEY_SELF_CPU_NS, clock_process_cpu_ns() + worker_cpu_ns());
	keep_look(&w->keep, tally);
	tell(w, tally);
	profile_free(tally);
}

/* A block that reaches over the border of two windows is in neither: where there are blocks, a window ends soon after one. */
static bool is_time(const struct windowrecorder *w, uint64_t now_ns)
{
	uint64_t mono = clock_mono_ns();

	if (now_ns < w->next_ns)
		return false;
	if (!w->block_ns || mono > w->block_ns + w->window_ns || now_ns > w->next_ns + w->window_ns / 4)
		return true;
	return mono < w->block_ns + STEP_MS * 2000000ULL;
}

static int tick(void *context, struct profile *p)
{
	struct windowrecorder *w = context;

	take_rows(w);
	keep_limit(&w->keep);
	tell_cost(w);
	return 0;
}

static void look(void *context, uint64_t now_ns)
{
	struct windowrecorder *w = context;

	if (w->pending.n && clock_mono_ns() >= w->retry_ns)
		write_pending(w);
	if (!is_time(w, now_ns))
		return;
	session_files(w->session, keep_file, w);
	look_closely(w);
	cut_window(w);
	write_pending(w);
	malloc_trim(0);
	w->next_ns = now_ns + w->window_ns;
	/* Tables only grow: another recorder begins with empty ones. */
	if (keep_table_bytes(&w->keep) > w->o->memory_bytes / 2) {
		again_wanted = 1;
		session_interrupt();
	}
}

/* There is nobody to look at it. */
static void progress(void *context, const char *how)
{
}

/* --- from beginning to end --- */

static void catch(int signal, void (*handler)(int))
{
	struct sigaction sa = { .sa_handler = handler };

	sigaction(signal, &sa, NULL);
}

/* The tag of the image is the release of what runs in it: "ghcr.io/paradigmxyz/reth:v2.5.1". */
static char *find_release(const struct windowrecorder *w)
{
	const struct targets *who = &w->r.who;
	const char *image = who->found.n && who->found.v[0].containers.list.n ? who->found.v[0].containers.list.v[0].image : NULL;
	const char *tag = image ? strrchr(image, ':') : NULL;

	if (w->o->release)
		return mem_strdup(w->o->release);
	return tag && tag[1] && !strchr(tag, '/') ? mem_strdup(tag + 1) : NULL;
}

static void set_options(struct windowrecorder *w, char **names, struct cgroupscope *groups)
{
	const struct windowrecorder_options *o = w->o;
	struct session_options *s = &w->r.session;

	s->what = o->what;
	s->what_default = true; /* without BPF less of it will do */
	s->hz = o->hz;
	s->event_rate = 2000;
	s->max_overhead = o->budget_percent;
	s->windows = true;
	s->pace_ns = pace_ns;
	s->tick = tick;
	s->look = look;
	s->progress = progress;
	s->tick_context = s->look_context = s->progress_context = w;
	w->r.marks.log = o->log;
	w->r.marks.client = o->client;
	w->r.marks.rpc = o->rpc;
	w->r.marks.sparing = true;
	if (o->log || o->rpc)
		s->marks = &w->r.marks;
	s->guess_functions = s->marks != NULL;
	cgroupscope_find(&w->r.who.pids, names, 1, groups);
	s->groups = groups->list.v;
	s->group_count = groups->list.n;
	w->r.symbols.often = true;
	w->r.path = mem_printf("%s/new/x", o->spool);
}

static int record(struct windowrecorder *w, struct err *err)
{
	struct recording *r = &w->r;
	int e = recording_start(r, w->session, NULL, err);

	if (e < 0)
		return e;
	catch(SIGTERM, on_stop);
	catch(SIGUSR2, on_again);
	catch(SIGINT, SIG_IGN);
	catch(SIGHUP, SIG_IGN);
	catch(SIGUSR1, SIG_IGN);
	w->next_ns = w->window_ns;
	w->o->row->bpf = session_has_bpf(w->session);
	w->o->row->hz = w->o->hz;
	board_set(w->o->row->what, sizeof(w->o->row->what), w->o->what);
	w->o->row->state = BOARD_RECORDING;
	do
		r->end = session_step(w->session, STEP_MS);
	while (r->end == SESSION_GOES_ON);
	session_files(w->session, keep_file, w);
	take_rows(w);
	session_finish(w->session, keep_file, w);
	take_rows(w);
	name_frames(w);
	keep_look(&w->keep, NULL);
	cut_window(w);
	write_last(w);
	tell(w, r->profile);
	return 0;
}

static int end_of(const struct windowrecorder *w)
{
	if (w->r.end == SESSION_END_GONE)
		return WINDOWRECORDER_GONE;
	return again_wanted ? WINDOWRECORDER_AGAIN : WINDOWRECORDER_STOPPED;
}

int windowrecorder_run(const struct windowrecorder_options *o)
{
	struct windowrecorder w = { .o = o, .r = RECORDING_INIT, .window_ns = o->window_ns, .sequence = o->row->windows };
	char *names[] = { (char *)o->target, NULL };
	const struct option_list none = { 0 };
	struct cgroupscope groups = { 0 };
	struct err err = { 0 };
	int e, code = WINDOWRECORDER_FAILED;

	hurry_forbid();
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	e = recording_find(&w.r, &none, names, 1, &err);
	if (e >= 0) {
		set_options(&w, names, &groups);
		w.release = find_release(&w);
		labels_make(&w.labels, o->labels, w.r.who.found.n ? &w.r.who.found.v[0].containers : NULL);
		e = recording_open(&w.r, &w.session, &err);
	}
	if (e >= 0) {
		w.symbolizer = symbolizer_new(&w.r.symbols, w.r.worker);
		keep_init(&w.keep, w.r.profile, 4 * o->window_ns, o->memory_bytes);
		e = record(&w, &err);
		code = e < 0 ? WINDOWRECORDER_FAILED : end_of(&w);
		symbolizer_free(w.symbolizer);
		keep_done(&w.keep);
	}
	if (e < 0)
		board_set(o->row->note, sizeof(o->row->note), err.text);
	session_close(w.session);
	vec_done_each(&w.pending, f, windowfile_done(f));
	map_done(&w.kept);
	recording_done(&w.r);
	cgroupscope_done(&groups);
	free(w.release);
	labels_done(&w.labels);
	return code;
}
