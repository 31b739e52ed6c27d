#include "collect/blocks/blockmarks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "collect/blocks/blockmarksint.h"
#include "collect/blocks/spanjoin.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/log/journal.h"
#include "target/log/logs.h"
#include "target/log/xlayertrace.h"
#include "ethereum/rpc.h"

enum { LOOK_MS = 100, PRIME_BYTES = 65536 };
static const uint64_t patience_ns = 5000000000, at_the_end_ns = 1000000000;
static const uint64_t settle_ns = 1000000000;       /* until the spans before a moment are all known */
static const uint64_t unnamed_ns = 8000000000;      /* how long a span waits for its block */
static const uint64_t late_settle_ns = 120000000000; /* the same for spans that a program writes by the buffer */
static const uint64_t late_unnamed_ns = 240000000000;

/* --- the log --- */

/* More is known of a block that is on its way; one that is in the profile stays as it is. Called with the lock. */
static void amend(struct blockmarks *m, const struct blocklog_block *b)
{
	for (size_t i = 0; i < m->entries.n; i++) {
		struct blocklog_block *said = &m->entries.v[i].said;

		if (m->entries.v[i].logged && said->order == b->order && !m->entries.v[i].answered) {
			said->block = b->block;
			if (!*said->hash)
				memcpy(said->hash, b->hash, sizeof(said->hash));
		}
	}
}

static void got_block(void *context, const struct blocklog_block *b)
{
	struct blockmarks *m = context;
	/* The node's word about the last block of a group says nothing about the group. */
	struct blockmarks_entry e = { *b, .logged = true, .asking = m->rpc && m->rpc_runs && b->count == 1,
				      .thread = PROFILE_NONE, .since_ns = clock_mono_ns() };

	pthread_mutex_lock(&m->lock);
	if (m->entries.n >= BLOCKMARKS_WAITING)
		e.asking = false;
	if (b->amends)
		amend(m, b);
	else
		vec_push(&m->entries, e);
	pthread_cond_signal(&m->asked);
	pthread_mutex_unlock(&m->lock);
}

static void got_line(void *context, char *line, size_t n, uint64_t time_ns)
{
	struct blockmarks *m = context;

	if (m->options.client || m->options.pattern || !blockxlayer_line(m, line, n))
		blocklog_line(m->parser, line, n, time_ns);
}

/* The beginning of a log may say which version writes it, and so what its lines mean. */
static void prime(struct blockmarks *m)
{
	_cleanup_fd_ int fd = open(m->options.log, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_cleanup_free_ char *text = mem_alloc(PRIME_BYTES);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	n = fd_read_all(fd, text, PRIME_BYTES);
	for (char *line = text, *end; n > 0 && (end = memchr(line, '\n', text + n - line)); line = end + 1)
		blocklog_prime(m->parser, line, end - line);
}

static void *follow_log(void *context)
{
	struct blockmarks *m = context;
	uint64_t lines = 0;
	int r = 0;

	while (!m->log_stop && !r) {
		r = logs_wait(m->logs, LOOK_MS, got_line, m);
		if (logs_counted(m->logs)->lines == lines)
			blocklog_flush(m->parser); /* nothing more came about the last one */
		lines = logs_counted(m->logs)->lines;
	}
	/* Lines that were written until now belong to the recording. */
	if (!r)
		logs_wait(m->logs, 0, got_line, m);
	blocklog_flush(m->parser);
	if (r > 0 && m->journal) {
		pthread_mutex_lock(&m->lock);
		err_set(&m->log_err, EPIPE, "journalctl ended by itself: does `%s` have a journal here?", m->options.log);
		pthread_mutex_unlock(&m->lock);
	} else if (r < 0) {
		pthread_mutex_lock(&m->lock);
		err_errno(&m->log_err, -r, "the log %s cannot be read any more; its blocks end here", m->options.log);
		pthread_mutex_unlock(&m->lock);
	}
	return NULL;
}

/* --- into the profile --- */

/* Of the time after the recording, or not done by then? A line of the log may be read a little late. */
static bool is_after(const struct blockmarks *m, const struct blockmarks_entry *e, uint64_t end)
{
	if (m->expects_spans && e->thread == PROFILE_NONE && e->said.end_ns >= end)
		return true;
	return (e->said.timed || !m->options.log) && e->said.start_ns >= end;
}

static void add_mark(struct blockmarks *m, struct profile *p, const struct blockmarks_entry *e, uint64_t start)
{
	const struct blocklog_block *b = &e->said;
	struct profile_mark x = { .thread = e->thread, .block = b->block };
	char name[BLOCK_GROUP_NAME];

	if (b->start_ns < start) {
		m->before++;
		return;
	}
	if (p->duration_ns && is_after(m, e, start + p->duration_ns)) {
		m->after++;
		return;
	}
	if (b->count > 1)
		block_group_name(name, b->first, b->block.number);
	else
		snprintf(name, sizeof(name), "block %llu%s", (unsigned long long)b->block.number, b->again ? " (again)" : "");
	x.name = profile_string(p, name);
	x.kind = profile_string(p, "block");
	x.start_ns = b->start_ns - start;
	x.end_ns = b->end_ns - start;
	if (!(b->block.known & BLOCK_GAS))
		x.block.gas = 0;
	if (!(b->block.known & BLOCK_TRANSACTIONS))
		x.block.transactions = 0;
	profile_add_mark(p, &x);
}

void blockmarks_expect_spans(struct blockmarks *m)
{
	m->expects_spans = true;
	m->late_spans = false;
}

void blockmarks_expect_late_spans(struct blockmarks *m)
{
	m->late_spans |= !m->expects_spans;
	m->expects_spans = true;
}

bool blockmarks_wants_late_spans(const struct blockmarks *m)
{
	return m->late_spans;
}

void blockmarks_add_span(struct blockmarks *m, const struct span *s, uint32_t kind, uint32_t thread)
{
	struct blockmarks_entry e = {
		.spanned = true, .thread = thread, .asking = m->rpc_runs, .since_ns = clock_mono_ns()
	};

	if (!(s->block.known & BLOCK_NUMBER) || s->block.number > INT64_MAX) {
		blockmatch_add(&m->match, &(struct blockmatch_span){ s->start_ns, s->end_ns, thread, kind, false });
		return;
	}
	/* The program says itself which block it is. */
	m->numbered = true;
	e.said = (struct blocklog_block){ .block = s->block, .timed = true, .start_ns = s->start_ns, .end_ns = s->end_ns };
	pthread_mutex_lock(&m->lock);
	e.asking &= m->entries.n < BLOCKMARKS_WAITING;
	vec_push(&m->entries, e);
	pthread_cond_signal(&m->asked);
	pthread_mutex_unlock(&m->lock);
}

/* The function's span of a block, if there is one. */
static void find_span(struct blockmarks *m, size_t i)
{
	struct blockmarks_entry *e = &m->entries.v[i];
	const struct blockmatch_span *s;
	size_t later = 0;

	while (i + later + 1 < m->entries.n && m->entries.v[i + later + 1].said.seen_ns == e->said.seen_ns &&
	       !m->entries.v[i + later + 1].spanned)
		later++;
	s = e->looked_ns ? blockmatch_between(&m->match, e->looked_ns, e->said.seen_ns, later) :
			   blockmatch_at(&m->match, e->said.seen_ns, later);
	e->spanned = true;
	m->spanned += s != NULL;
	m->spanless += !s;
	if (!s)
		return;
	e->said.start_ns = s->start_ns;
	e->said.end_ns = s->end_ns;
	e->said.timed = true;
	e->thread = s->thread;
}

struct unnamed {
	struct blockmarks *m;
	struct profile *p;
	uint64_t start;
};

/* A call of the function that made no block which anybody saw: a pending one, say. */
static void add_unnamed(void *context, const struct blockmatch_span *s)
{
	struct unnamed *u = context;

	u->m->unnamed++;
	if (s->start_ns >= u->start)
		profile_add_mark(u->p, &(struct profile_mark){ .thread = s->thread, .kind = s->tag, .name = s->tag,
							       .start_ns = s->start_ns - u->start, .end_ns = s->end_ns - u->start });
}

/* Moves the entries at the front that wait for nothing more, or have waited long enough. */
static void move(struct blockmarks *m, struct profile *p, uint64_t start, uint64_t patience)
{
	struct unnamed unnamed = { m, p, start };
	uint64_t now = clock_mono_ns(), settle = m->late_spans ? late_settle_ns : settle_ns;
	size_t n = 0;

	for (; n < m->entries.n; n++) {
		struct blockmarks_entry *e = &m->entries.v[n];

		if ((e->asking && now - e->since_ns < patience) ||
		    (m->expects_spans && !e->spanned && patience && now - e->since_ns < settle))
			break;
		if (m->expects_spans && !e->spanned)
			find_span(m, n);
		m->unanswered += e->asking;
		if (m->numbered && !e->said.timed)
			continue;
		if (m->options.late && patience)
			vec_push(&m->held, *e);
		else
			add_mark(m, p, e, start);
	}
	blockmatch_expire(&m->match, patience ? now - MIN(now, m->late_spans ? late_unnamed_ns : unnamed_ns) : UINT64_MAX,
			  add_unnamed, &unnamed);
	m->entries.n -= n;
	m->removed += n;
	if (n && m->entries.n)
		memmove(m->entries.v, m->entries.v + n, m->entries.n * sizeof(*m->entries.v));
}

static void say_troubles(struct blockmarks *m)
{
	if (m->log_err.code && !m->logs_told)
		log_warn("%s", m->log_err.text);
	if (m->row >= 2 && !m->rpc_told)
		log_warn("the node at %s does not say what its blocks are: %s; blocks go without it", m->options.rpc,
			 m->rpc_err.text);
	m->logs_told |= m->log_err.code != 0;
	m->rpc_told |= m->row >= 2;
}

void blockmarks_step(struct blockmarks *m, struct profile *p, uint64_t start_mono_ns)
{
	pthread_mutex_lock(&m->lock);
	move(m, p, start_mono_ns, patience_ns);
	say_troubles(m);
	pthread_mutex_unlock(&m->lock);
}

static bool any_waits(struct blockmarks *m)
{
	bool any = false;

	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < m->entries.n; i++)
		any |= m->entries.v[i].asking;
	pthread_mutex_unlock(&m->lock);
	return any;
}

static void count(struct profile *p, const char *name, uint64_t n)
{
	if (n)
		profile_count_set(p, name, n);
}

static void note_counters(struct blockmarks *m, struct profile *p)
{
	if (m->parser) {
		const struct blocklog_counts *c = blocklog_counted(m->parser);
		const struct logs_counts *l = logs_counted(m->logs);

		profile_count_set(p, KEY_MARKS_LINES, l->lines);
		profile_count_set(p, KEY_MARKS_BLOCKS, c->blocks);
		count(p, KEY_MARKS_LOG_ROTATED, l->rotated);
		count(p, KEY_MARKS_LOG_SHORTENED, l->shortened);
		count(p, KEY_MARKS_LINES_TOO_LONG, l->too_long);
		count(p, KEY_MARKS_LINES_UNFINISHED, l->unfinished);
		count(p, KEY_MARKS_LINES_MALFORMED, c->bad_lines);
		count(p, KEY_MARKS_REPEATED, c->repeated);
		count(p, KEY_MARKS_REORGANIZED, c->reorged);
		count(p, KEY_MARKS_OUT_OF_ORDER, c->out_of_order);
		count(p, KEY_MARKS_BAD_DURATIONS, c->bad_times);
		count(p, KEY_MARKS_FIGURES_BEYOND_BOUNDS, c->bad_figures);
		count(p, KEY_MARKS_MERGED, c->merged);
		count(p, KEY_MARKS_GROUPS, c->groups);
		count(p, KEY_MARKS_INSERTED, c->inserted);
		count(p, KEY_MARKS_CLIENT_CHANGED, c->clients);
		count(p, KEY_MARKS_SHARED_A_TIME, c->shared);
	}
	if (m->xlayer) {
		const struct xlayertrace_counts *x = xlayertrace_counted(m->xlayer);

		count(p, KEY_MARKS_XLAYER_BLOCKS, x->blocks);
		count(p, KEY_MARKS_XLAYER_MALFORMED, x->bad);
		count(p, KEY_MARKS_XLAYER_ALONE, x->alone);
	}
	count(p, KEY_MARKS_SPANS_NAMED, m->spanned);
	count(p, KEY_MARKS_SPANS_UNNAMED, m->unnamed);
	count(p, KEY_MARKS_WITHOUT_A_SPAN, m->spanless);
	count(p, KEY_MARKS_BEGAN_BEFORE, m->before);
	count(p, KEY_MARKS_NOT_DONE, m->after);
	count(p, KEY_MARKS_ANSWERED, m->answered);
	count(p, KEY_MARKS_UNANSWERED, m->unanswered);
	count(p, KEY_MARKS_ANOTHER_BLOCK_ANSWERED, m->differs);
	count(p, KEY_MARKS_SKIPPED, m->skipped);
	count(p, KEY_MARKS_RPC_FAILURES, m->failures);
}

static void say_end(struct blockmarks *m)
{
	const struct blocklog_counts *c = m->parser ? blocklog_counted(m->parser) : NULL;

	if (c && !c->blocks && !(m->xlayer && xlayertrace_counted(m->xlayer)->blocks))
		log_warn("no line of %s was about a block (%llu lines were read): --log-client says whose log it is, "
			 "--log-pattern what its lines are like", m->options.log,
			 (unsigned long long)logs_counted(m->logs)->lines);
	if (c && c->bad_lines)
		log_warn("%llu lines of the log should be about blocks, but were cut or malformed",
			 (unsigned long long)c->bad_lines);
	if (c && c->shared && !m->spanned)
		log_info("%llu blocks ended within one read of the log and share its time by their gas; --mark-function times each "
			 "of them, where the node has symbols.", (unsigned long long)c->shared);
	if (m->skipped)
		log_warn("%llu blocks came faster than the node could be asked about them",
			 (unsigned long long)m->skipped);
}

static void end_threads(struct blockmarks *m)
{
	uint64_t end = clock_mono_ns() + at_the_end_ns;

	if (m->log_runs) {
		m->log_stop = true;
		pthread_join(m->log_thread, NULL);
		m->log_runs = false;
	}
	if (m->rpc_runs) {
		struct timespec nap = { .tv_nsec = 5000000 };

		while (any_waits(m) && m->row < 2 && clock_mono_ns() < end)
			nanosleep(&nap, NULL);
		m->rpc_stop = true;
		rpc_stop(m->rpc);
		pthread_mutex_lock(&m->lock);
		pthread_cond_broadcast(&m->asked);
		pthread_mutex_unlock(&m->lock);
		pthread_join(m->rpc_thread, NULL);
		m->rpc_runs = false;
	}
}

void blockmarks_finish(struct blockmarks *m, struct profile *p, uint64_t start_mono_ns)
{
	end_threads(m);
	for (size_t i = 0; i < m->held.n; i++)
		add_mark(m, p, &m->held.v[i], start_mono_ns);
	move(m, p, start_mono_ns, 0);
	say_troubles(m);
	say_end(m);
	note_counters(m, p);
}

/* --- its life --- */

int blockmarks_open(const struct blockmarks_options *o, struct blockmarks **ret, struct err *err)
{
	static const char journal[] = "journal:";
	struct blockmarks *m = mem_alloc(sizeof(*m));
	int r = 0, fd = o->log_fd;
	bool missing = false;

	m->options = *o;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->asked, NULL);
	if (o->log) {
		r = blocklog_new(o->client, o->pattern, got_block, m, &m->parser, err);
		if (r >= 0 && str_starts(o->log, journal))
			r = journal_open(o->log + strlen(journal), &m->journal, &fd, err);
		if (r >= 0)
			r = logs_open(o->log, fd, &m->logs, &missing, err);
	}
	if (r >= 0 && o->log && fd < 0 && !missing)
		prime(m);
	if (r >= 0 && o->rpc)
		r = rpc_open(o->rpc, &m->rpc, err);
	if (r < 0) {
		blockmarks_close(m);
		return r;
	}
	if (missing)
		log_info("%s is not there yet: it is followed as soon as it is", o->log);
	*ret = m;
	return 0;
}

int blockmarks_start(struct blockmarks *m, struct err *err)
{
	sigset_t all, before;
	int r = 0;

	/* Signals are the session's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (m->rpc) {
		m->rpc_runs = true;
		r = pthread_create(&m->rpc_thread, NULL, blocknode_run, m);
		m->rpc_runs = !r;
	}
	if (!r && m->logs) {
		logs_skip(m->logs);
		r = pthread_create(&m->log_thread, NULL, follow_log, m);
		m->log_runs = !r;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r ? err_errno(err, r, "cannot start a thread") : 0;
}

void blockmarks_close(struct blockmarks *m)
{
	if (!m)
		return;
	end_threads(m);
	blocklog_free(m->parser);
	xlayertrace_free(m->xlayer);
	logs_close(m->logs);
	journal_close(m->journal);
	rpc_close(m->rpc);
	blockmatch_done(&m->match);
	vec_done(&m->entries);
	vec_done(&m->held);
	pthread_mutex_destroy(&m->lock);
	pthread_cond_destroy(&m->asked);
	free(m);
}
