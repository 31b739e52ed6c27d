#include "cmd/agent/deliver.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cmd/agent/agentmetrics.h"
#include "cmd/agent/windowfile.h"
#include "cmd/cmd.h"
#include "cmd/reading/analyzed.h"
#include "fleet/agent/agentconf.h"
#include "fleet/agent/board.h"
#include "fleet/agent/spool.h"
#include "fleet/agent/statustext.h"
#include "fleet/sink/metrics.h"
#include "fleet/sink/sink.h"
#include "profile/profile.h"
#include "sandbox/confine.h"
#include "serve/statuspage.h"

enum { ROUND_MS = 1000, IN_A_ROW = 64 /* windows of a sink before new ones are taken and the board is told */ };
static const uint64_t round_ns = 10000000000, last_round_ns = 5000000000;

struct queue {
	struct sink *sink;       /* NULL: that of the metrics */
	struct board_sink *row;  /* NULL likewise */
	unsigned failures;       /* in a row */
	uint64_t next_ns;        /* CLOCK_MONOTONIC */
	char *note;              /* the last failure that was logged; NULL = all is well */
	VEC(char *) batch;       /* names of the windows that the sink has collected and not sent yet: the oldest of the queue */
	uint64_t every_ns;       /* windows are collected for so long; 0 = not at all */
	bool sent;               /* something, since they were collected last */
	size_t single;           /* so many go one by one: the sink refused one of them */
};

struct deliver {
	const struct agentconf *conf;
	struct board *board;
	struct spool *spool;
	VEC(struct queue) queues; /* those of the sinks, then that of the metrics */
	struct metrics *metrics;
	pthread_mutex_t lock;     /* of metrics: the page has its own thread */
	struct metrics *health;   /* the agent's own figures, for sinks that send them along */
	struct statuspage *page;
	/* The window that was read last. */
	char *name;
	struct analyzed *analyzed;
	struct windowfile_whose whose;
};

static volatile sig_atomic_t stop;

static void on_stop(int signal)
{
	stop = 1;
}

/* --- windows --- */

static void forget_window(struct deliver *d)
{
	if (!d->analyzed)
		return;
	windowfile_whose_done(&d->whose);
	analyzed_free(d->analyzed);
	free(d->name);
	d->analyzed = NULL;
	d->name = NULL;
	malloc_trim(0); /* windows are read once a minute, and as large as all else here */
}

/* The window of that name, by its descriptor. Whoever reads it next finds it here. */
static int read_window(struct deliver *d, const char *name, int fd, struct err *err)
{
	const struct analyzed_options none = { 0 };
	char path[64];
	int r;

	if (d->name && !strcmp(d->name, name))
		return 0;
	forget_window(d);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = analyzed_load(path, &none, &d->analyzed, err);
	if (!r)
		r = windowfile_whose(d->analyzed->profile, &d->whose, err);
	if (r) {
		forget_window(d);
		return err_set(err, EBADMSG, "%s cannot be read: %s", name, err->text);
	}
	d->name = mem_strdup(name);
	return 0;
}

static struct sink_window window_of(const struct deliver *d, int fd)
{
	const struct profile *p = d->analyzed->profile;
	struct stat st = { 0 };

	fstat(fd, &st);
	return (struct sink_window){ .target = d->whose.target, .release = d->whose.release, .labels = d->whose.labels.v,
				     .start_wall_ns = p->start_wall_ns, .duration_ns = p->duration_ns, .sequence = d->whose.sequence,
				     .job = &d->analyzed->job, .fd = fd, .bytes = st.st_size };
}

/* To the sink, or to its batch; 1: it has enough for one delivery. */
static int send_window(struct deliver *d, struct queue *q, const char *name, int fd, bool collect, struct err *err)
{
	int r = read_window(d, name, fd, err);
	struct sink_window w;

	if (r)
		return r;
	w = window_of(d, fd);
	lseek(fd, 0, SEEK_SET);
	if (q->sink)
		return collect ? sink_add(q->sink, &w, err) : sink_send(q->sink, &w, err);
	pthread_mutex_lock(&d->lock);
	metrics_add_window(d->metrics, &w);
	pthread_mutex_unlock(&d->lock);
	return 0;
}

/* --- queues --- */

static void note_success(struct queue *q, size_t n)
{
	if (q->note)
		log_info("%s has taken a window again", sink_name(q->sink));
	free(q->note);
	q->note = NULL;
	q->failures = 0;
	q->next_ns = 0;
	q->sent = true;
	if (!q->row)
		return;
	q->row->delivered += n;
	q->row->last_wall_ns = clock_wall_ns();
	q->row->next_mono_ns = 0;
	board_set(q->row->note, sizeof(q->row->note), "");
}

/* The same sentence is logged once, until a window goes through. */
static void note_failure(struct queue *q, const struct err *err, bool refused)
{
	uint64_t random = 0;

	if (!q->row)
		return;
	if (!q->note || strcmp(q->note, err->text)) {
		log_warn("%s%s: %s", sink_name(q->sink), refused ? " refused a window" : "", err->text);
		free(q->note);
		q->note = mem_strdup(err->text);
	}
	board_set(q->row->note, sizeof(q->row->note), err->text);
	q->row->failures++;
	if (refused) {
		q->row->refused++;
		return;
	}
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = clock_mono_ns();
	q->next_ns = clock_mono_ns() + spool_pause_ns(++q->failures, random);
	q->row->next_mono_ns = q->next_ns;
}

static bool is_refused(int r)
{
	return r == -EBADMSG || r == -EEXIST;
}

/* Sends what the sink has collected; false: it could not be delivered now. If one of them is refused, each goes by itself, to find out which. */
static bool deliver_batch(struct deliver *d, size_t i)
{
	struct queue *q = &d->queues.v[i];
	struct err err = { 0 };
	size_t n = q->batch.n;
	int r = n ? sink_flush(q->sink, &err) : 0;

	for (size_t k = 0; !r && k < n; k++)
		spool_delivered(d->spool, i, q->batch.v[k]);
	vec_done_each(&q->batch, e, free(*e));
	if (!r && n)
		note_success(q, n);
	else if (is_refused(r))
		q->single = n;
	else if (r)
		note_failure(q, &err, false);
	return !r || is_refused(r);
}

/* The next window: to the sink, or to its batch, which goes when it is full or nothing else waits. A server that failed gets one window first. False: there is none, or
 * it could not be delivered now. */
static bool deliver_next(struct deliver *d, size_t i)
{
	struct queue *q = &d->queues.v[i];
	bool collect = q->sink && sink_has_batches(q->sink) && !q->failures && !q->single;
	_cleanup_free_ char *name = NULL;
	_cleanup_fd_ int fd = -1;
	struct err err = { 0 };
	int r = spool_at(d->spool, i, q->batch.n, &name, &fd, &err);

	if (r == -ENOENT) {
		q->single = 0;
		return q->batch.n && deliver_batch(d, i);
	}
	if (!r)
		r = send_window(d, q, name, fd, collect, &err);
	if (r >= 0 && collect) {
		vec_push(&q->batch, name);
		name = NULL;
		return r ? deliver_batch(d, i) : true;
	}
	q->single -= q->single && (!r || is_refused(r));
	if (!r) {
		spool_delivered(d->spool, i, name);
		note_success(q, 1);
		return true;
	}
	note_failure(q, &err, is_refused(r));
	if (!is_refused(r))
		return false;
	spool_refused(d->spool, i, name);
	return true;
}

static void tell(struct deliver *d)
{
	for (size_t i = 0; i < d->conf->sinks.n; i++) {
		struct spool_queue q = spool_state(d->spool, i);
		struct board_sink *row = d->queues.v[i].row;

		row->waiting = q.waiting;
		row->waiting_bytes = q.bytes;
		row->dropped = q.dropped;
		row->oldest_wall_ns = q.oldest_wall_ns;
	}
	d->board->spool_bytes = spool_bytes(d->spool);
	d->board->spool_windows = spool_windows(d->spool);
	d->board->lost_windows = spool_dropped(d->spool);
	d->board->sender_cpu_ns = clock_process_cpu_ns();
}

static void take(struct deliver *d)
{
	struct err err = { 0 };

	if (spool_take(d->spool, &err) < 0)
		log_warn("the spool: %s", err.text);
}

/* All that waited is sent: the next ones are collected for a while, and of a fleet that was started at once not all for the same. */
static void collect_next(struct deliver *d, size_t i)
{
	struct queue *q = &d->queues.v[i];
	uint64_t random = 0;

	if (!q->every_ns || !q->sent || q->failures || spool_state(d->spool, i).waiting)
		return;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = clock_mono_ns();
	q->next_ns = clock_mono_ns() + q->every_ns - random % (q->every_ns / 4 + 1);
	q->sent = false;
}

/* Windows in their order, one of each sink in turn: sinks that want the same window next read it once. All but the last round end early when the agent ends. */
static void deliver_round(struct deliver *d, uint64_t until_ns, bool last)
{
	bool more = true;

	for (unsigned n = 0; more && n < IN_A_ROW && clock_mono_ns() < until_ns && (last || !stop); n++) {
		more = false;
		for (size_t i = d->queues.n; i-- > 0;)
			if (clock_mono_ns() >= d->queues.v[i].next_ns)
				more |= deliver_next(d, i);
	}
	for (size_t i = 0; i < d->queues.n; i++) {
		deliver_batch(d, i);
		collect_next(d, i);
	}
	forget_window(d);
}

/* --- the page --- */

static void put_metrics(struct deliver *d, struct buf *body)
{
	pthread_mutex_lock(&d->lock);
	agentmetrics_set(d->metrics, d->board);
	metrics_put_text(d->metrics, body);
	pthread_mutex_unlock(&d->lock);
}

static unsigned answer(void *context, const char *path, struct buf *body, const char **ret_type)
{
	struct deliver *d = context;
	uint64_t now = clock_wall_ns();

	*ret_type = "text/plain; charset=utf-8";
	if (!strcmp(path, "/metrics")) {
		*ret_type = METRICS_TYPE;
		put_metrics(d, body);
	} else if (!strcmp(path, "/status.json")) {
		*ret_type = "application/json";
		statustext_json(d->board, now, body);
	} else if (!strcmp(path, "/status")) {
		statustext_lines(d->board, now, false, body);
	} else if (!strcmp(path, "/healthz")) {
		buf_puts(body, "ok\n");
	} else if (!strcmp(path, "/")) {
		*ret_type = "text/html; charset=utf-8";
		statustext_html(d->board, now, body);
	} else {
		buf_puts(body, "there are /, /status, /status.json, /metrics and /healthz\n");
		return 404;
	}
	return 200;
}

/* --- from beginning to end --- */

static int open_spool(struct deliver *d, struct err *err)
{
	const char *names[AGENTCONF_SINKS + 2] = { NULL };
	struct spool_options o = { .folder = d->conf->spool, .max_bytes = d->conf->spool_bytes, .sinks = names };

	for (size_t i = 0; i < d->conf->sinks.n; i++)
		names[i] = d->conf->sinks.v[i].name;
	names[d->conf->sinks.n] = AGENTCONF_METRICS;
	return spool_open(&o, &d->spool, err);
}

static int open_sinks(struct deliver *d, struct err *err)
{
	memset(d->board->sinks, 0, sizeof(d->board->sinks));
	for (size_t i = 0; i < d->conf->sinks.n; i++) {
		const struct agentconf_sink *s = &d->conf->sinks.v[i];
		struct sink_options o = s->options;
		struct queue q = { .row = &d->board->sinks[i], .every_ns = s->every_ns };
		int r;

		o.metrics = d->health;
		r = sink_open(&o, &q.sink, err);

		if (r)
			return err_prefix(err, "[sink %s]", s->name);
		board_set(q.row->name, sizeof(q.row->name), s->name);
		vec_push(&d->queues, q);
	}
	vec_push(&d->queues, (struct queue){ 0 });
	return 0;
}

/* What it may write to: the spool, and folders of file sinks, which are made before. */
static int confine(const struct deliver *d, struct err *err)
{
	_cleanup_(buf_done) struct buf held = { 0 };
	struct confine c = { .listen = true, .connect = true, .moves = true };

	c.writes[c.write_count++] = d->conf->spool;
	for (size_t i = 0; i < d->conf->sinks.n && c.write_count < CONFINE_FOLDERS; i++) {
		const char *url = d->conf->sinks.v[i].options.url;

		if (str_starts(url, AGENTCONF_FILES))
			c.writes[c.write_count++] = url + strlen(AGENTCONF_FILES);
	}
	if (confine_enter(&c, &held, err) < 0)
		return -err->code;
	log_debug("the process that delivers: %s", held.data ? held.data : "");
	return 0;
}

static int start(struct deliver *d, struct err *err)
{
	int r = confine(d, err);

	if (!r)
		r = open_spool(d, err);
	if (!r)
		r = open_sinks(d, err);
	if (!r && d->conf->listen) {
		r = statuspage_start(d->conf->listen, answer, d, &d->page, err);
		if (r) {
			log_warn("no status page: %s", err->text); /* windows are what counts */
			r = 0;
		}
	}
	return r;
}

static void finish(struct deliver *d)
{
	statuspage_stop(d->page);
	forget_window(d);
	vec_done_each(&d->queues, q, sink_close(q->sink); free(q->note); vec_done(&q->batch));
	spool_close(d->spool);
	metrics_free(d->metrics);
	metrics_free(d->health);
}

int deliver_run(const struct agentconf *conf, struct board *board)
{
	struct deliver d = { .conf = conf, .board = board, .metrics = metrics_new(), .health = metrics_new(), .lock = PTHREAD_MUTEX_INITIALIZER };
	struct err err = { 0 };
	int r;

	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = on_stop }, NULL);
	r = start(&d, &err);
	if (r)
		log_error("%s", err.text);
	while (!r && !stop) {
		take(&d);
		agentmetrics_set(d.health, d.board);
		deliver_round(&d, clock_mono_ns() + round_ns, false);
		tell(&d);
		poll(NULL, 0, ROUND_MS);
	}
	if (!r) {
		/* Recorders have written their last windows by now. */
		take(&d);
		for (size_t i = 0; i < d.queues.n; i++)
			d.queues.v[i].next_ns = d.queues.v[i].failures ? UINT64_MAX : 0;
		deliver_round(&d, clock_mono_ns() + last_round_ns, true);
		tell(&d);
	}
	finish(&d);
	return r ? EXIT_ERROR : EXIT_OK;
}
