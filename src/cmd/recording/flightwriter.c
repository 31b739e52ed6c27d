#include "cmd/recording/flightwriter.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analyze/quality.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/folder.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "capture/capture.h"
#include "cmd/cmd.h"
#include "cmd/flight/cut.h"
#include "cmd/recording/output.h"
#include "elf/worker/worker.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"
#include "target/kallsyms.h"

enum {
	WAITING = 2,
	KEEP_ROWS = 2000000, /* of a capture in memory while it is written; its quality is that of the last rows then */
};
static const uint64_t again_ns = 5000000000; /* after a failure */

/* A capture of ours. */
struct made {
	char *path;
	dev_t device;
	ino_t inode;
};

/* What the thread does; the recorder looks at it when the thread has ended. */
struct job {
	struct flightwriter_incident incident;
	const struct flightwriter_options *options;
	pthread_t thread;
	bool running, ended; /* ended: under lock */
	uint64_t cpu_ns;     /* of the thread, when it has ended */
	uint64_t next_ns;    /* after a failure: when to try again */
	bool told;           /* that it failed */
	/* The result. */
	int code;            /* negative errno */
	struct err err;
	struct made made;
	uint64_t start_wall_ns, duration_ns;
	struct buf quality;
	VEC(char *) warnings;
	bool fit;
};

struct flightwriter {
	struct flightwriter_options options;
	VEC(struct job *) jobs; /* the first is being written */
	VEC(struct made) made;  /* oldest first */
	uint64_t written;
	uint64_t cpu_ns;        /* of threads that have ended */
	int exit_code;
};

static pthread_mutex_t job_lock = PTHREAD_MUTEX_INITIALIZER;
static struct worker *volatile naming; /* the worker of the thread, while it symbolizes */

void flightwriter_hurry(void)
{
	if (naming)
		worker_cancel(naming);
}

/* --- in the thread --- */

static int write_rows(struct job *j, struct cut *cut, struct capture *c, struct profile *out)
{
	int r = 0;

	for (size_t i = 0; i < cut_pieces(cut) && r >= 0; i++) {
		cut_piece(cut, i);
		r = capture_flush(c, out, &j->err);
		if (r >= 0 && out->samples.n + out->wakes.n + out->points.n > KEEP_ROWS)
			capture_drop_samples(c, out);
	}
	return r;
}

static int name_frames(struct job *j, const struct cut *cut, struct profile *out)
{
	struct worker *w = worker_new();
	struct symbolizer *s = symbolizer_new(j->options->symbols, w);
	int r;

	for (size_t i = 0; i < j->incident.files.n; i++) {
		uint32_t module = cut_module(cut, j->incident.files.v[i].module);
		int fd = module == PROFILE_NONE ? -1 : dup(j->incident.files.v[i].fd);

		if (fd >= 0)
			symbolizer_keep_file(s, module, fd);
	}
	symbolizer_keep_kernel(s, j->incident.kernel);
	j->incident.kernel = NULL;
	symbolizer_look(s, out);
	naming = w;
	r = symbolize_profile(s, out, NULL, NULL, &j->err);
	naming = NULL;
	symbolizer_free(s);
	worker_free(w);
	return r;
}

static void measure_quality(struct job *j, const struct profile *out)
{
	struct select_options options = { 0 };
	struct selection selection;
	struct quality q = { 0 };

	select_event(out, NULL, &options.event, NULL);
	j->fit = false;
	if (selection_make(out, &options, &selection, NULL) < 0)
		return;
	quality_measure(&q, out, &selection);
	quality_line(&q, &selection, &j->quality);
	for (size_t i = 0; i < q.warnings.n; i++)
		vec_push(&j->warnings, mem_strdup(q.warnings.v[i]));
	j->fit = q.fit;
	quality_done(&q);
	selection_done(&selection);
}

static int fill(struct job *j, struct capture *c, struct profile *out)
{
	const struct keep_snap *snap = &j->incident.snap;
	struct cut cut;
	int r;

	cut_begin(&cut, snap, out);
	j->start_wall_ns = out->start_wall_ns;
	j->duration_ns = out->duration_ns;
	profile_count_set(out, KEY_KEEP_ASKED_NS, j->options->keep_ns);
	profile_count_set(out, KEY_KEEP_RECORDED_NS, snap->to.time_ns);
	r = write_rows(j, &cut, c, out);
	cut_mark(out, j->incident.reason, j->incident.time_ns - MIN(j->incident.time_ns, snap->from_ns));
	if (r >= 0)
		r = name_frames(j, &cut, out);
	cut_end(&cut);
	out->finished = true;
	return r < 0 ? r : capture_flush(c, out, &j->err);
}

static void write_capture(struct job *j)
{
	struct profile *out = profile_new();
	struct capture *c = NULL;
	int r;

	j->err = (struct err){ 0 };
	buf_done(&j->quality);
	vec_done_each(&j->warnings, e, free(*e));
	r = output_create_one(j->options->output, j->options->label, j->options->what, &j->made.path, &c, &j->err);
	if (r >= 0)
		r = fill(j, c, out);
	if (r >= 0) {
		measure_quality(j, out);
		capture_identity(c, &j->made.device, &j->made.inode);
		r = capture_close_whole(c, &j->err);
	} else {
		capture_discard(c);
	}
	if (r < 0) {
		free(j->made.path);
		j->made.path = NULL;
	}
	profile_free(out);
	j->code = r;
}

static void *run(void *context)
{
	struct job *j = context;

	/* The recorder may have a higher priority; this thread and its child need none. */
	setpriority(PRIO_PROCESS, 0, 0);
	write_capture(j);
	j->cpu_ns = clock_thread_cpu_ns();
	pthread_mutex_lock(&job_lock);
	j->ended = true;
	pthread_mutex_unlock(&job_lock);
	return NULL;
}

/* --- in the recorder --- */

static void incident_done(struct flightwriter_incident *i)
{
	free(i->reason);
	keep_snap_done(&i->snap);
	for (size_t k = 0; k < i->files.n; k++)
		close(i->files.v[k].fd);
	vec_done(&i->files);
	kallsyms_free(i->kernel);
	*i = (struct flightwriter_incident){ 0 };
}

static void job_free(struct job *j)
{
	incident_done(&j->incident);
	buf_done(&j->quality);
	vec_done_each(&j->warnings, e, free(*e));
	free(j->made.path);
	free(j);
}

struct flightwriter *flightwriter_new(const struct flightwriter_options *o)
{
	struct flightwriter *w = mem_alloc(sizeof(*w));

	w->options = *o;
	/* See background.c: the child that reads files is a fork of the thread. Rows that are dropped go back to the system. */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	return w;
}

void flightwriter_free(struct flightwriter *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->jobs.n; i++)
		job_free(w->jobs.v[i]);
	vec_done(&w->jobs);
	vec_done_each(&w->made, e, free(e->path));
	free(w);
}

uint64_t flightwriter_written(const struct flightwriter *w)
{
	return w->written;
}

uint64_t flightwriter_waiting(const struct flightwriter *w)
{
	return w->jobs.n;
}

uint64_t flightwriter_cpu_ns(const struct flightwriter *w)
{
	const struct job *j = w->jobs.n && w->jobs.v[0]->running ? w->jobs.v[0] : NULL;
	struct timespec t;
	clockid_t id;

	if (!j)
		return w->cpu_ns;
	if (!pthread_getcpuclockid(j->thread, &id) && !clock_gettime(id, &t))
		return w->cpu_ns + t.tv_sec * 1000000000ULL + t.tv_nsec;
	return w->cpu_ns + j->cpu_ns; /* it has ended */
}

bool flightwriter_add(struct flightwriter *w, struct flightwriter_incident *i)
{
	struct job *j;

	if (w->jobs.n > WAITING && !i->last) {
		log_warn("%s: not written, as %zu captures wait to be written", i->reason, w->jobs.n);
		incident_done(i);
		return false;
	}
	j = mem_alloc(sizeof(*j));
	j->incident = *i;
	j->options = &w->options;
	*i = (struct flightwriter_incident){ 0 };
	vec_push(&w->jobs, j);
	return true;
}

static void remove_oldest(struct flightwriter *w)
{
	while (w->options.captures && w->made.n > w->options.captures) {
		struct made *m = &w->made.v[0];
		const char *name;
		_cleanup_fd_ int folder = folder_open(m->path, &name, NULL);

		if (folder >= 0)
			folder_remove(folder, name, m->device, m->inode);
		log_info("Removed %s, the oldest of more than %llu (--captures).", m->path, (unsigned long long)w->options.captures);
		free(m->path);
		memmove(w->made.v, w->made.v + 1, --w->made.n * sizeof(*w->made.v));
	}
}

static void put_time(struct json *json, const char *key, uint64_t wall_ns)
{
	time_t seconds = wall_ns / 1000000000;
	char text[64], whole[32];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(whole, sizeof(whole), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%03uZ", whole, (unsigned)(wall_ns / 1000000 % 1000));
	json_put_string(json, key, text);
}

static void put_json(const struct job *j)
{
	_cleanup_(buf_done) struct buf out = { 0 };
	struct json json = json_begin(&out);
	const struct flightwriter_incident *i = &j->incident;
	uint64_t start = j->start_wall_ns - i->snap.from_ns;

	json_open_object(&json, NULL);
	json_put_string(&json, "capture", j->made.path);
	json_put_string(&json, "reason", i->reason);
	put_time(&json, "at", start + i->time_ns);
	put_time(&json, "from", j->start_wall_ns);
	put_time(&json, "to", j->start_wall_ns + j->duration_ns);
	json_end(&json);
	printf("%s\n", out.data);
	fflush(stdout);
}

static void say_written(struct flightwriter *w, struct job *j)
{
	char span[32];

	log_info("%s: wrote %s, the last %s.", j->incident.reason, j->made.path, str_duration(span, j->duration_ns));
	if (j->quality.n)
		log_info("%s", j->quality.data);
	for (size_t i = 0; i < j->warnings.n; i++)
		log_warn("%s", j->warnings.v[i]);
	if (w->options.json)
		put_json(j);
	w->exit_code = j->fit ? EXIT_OK : EXIT_QUALITY;
	w->written++;
	vec_push(&w->made, j->made);
	j->made.path = NULL;
	remove_oldest(w);
}

/* last: there is no other try. */
static void say_failed(struct job *j, bool last)
{
	if (last)
		log_error("%s: %s; what was kept is lost", j->incident.reason, j->err.text);
	else if (!j->told)
		log_error("%s: %s; it is kept in memory, tried again every %u s, and recording goes on", j->incident.reason, j->err.text,
			  (unsigned)(again_ns / 1000000000));
	j->told = true;
}

static void begin_job(struct job *j)
{
	sigset_t all, before;

	j->running = true;
	j->ended = false;
	sigfillset(&all); /* signals are for the recorder */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&j->thread, NULL, run, j))
		mem_no_thread();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void take_result(struct flightwriter *w, struct job *j, bool last)
{
	pthread_join(j->thread, NULL);
	j->running = false;
	w->cpu_ns += j->cpu_ns;
	if (j->code < 0) {
		say_failed(j, last);
		j->next_ns = clock_mono_ns() + again_ns;
		if (!last)
			return;
		w->exit_code = EXIT_ERROR;
	} else {
		say_written(w, j);
	}
	memmove(w->jobs.v, w->jobs.v + 1, --w->jobs.n * sizeof(*w->jobs.v));
	job_free(j);
}

void flightwriter_poll(struct flightwriter *w)
{
	struct job *j = w->jobs.n ? w->jobs.v[0] : NULL;
	bool ended;

	if (!j)
		return;
	if (!j->running) {
		if (clock_mono_ns() >= j->next_ns)
			begin_job(j);
		return;
	}
	pthread_mutex_lock(&job_lock);
	ended = j->ended;
	pthread_mutex_unlock(&job_lock);
	if (ended)
		take_result(w, j, false);
}

int flightwriter_finish(struct flightwriter *w)
{
	bool failed = false;

	while (w->jobs.n) {
		struct job *j = w->jobs.v[0];
		/* One that is under way may fail because of what is over by now. */
		bool last = !j->running;

		if (!j->running)
			begin_job(j);
		take_result(w, j, last);
		failed |= w->exit_code == EXIT_ERROR;
	}
	return failed ? EXIT_ERROR : w->exit_code;
}
