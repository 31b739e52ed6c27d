#include "collect/mark.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "target/logs.h"
#include "target/marklog.h"
#include "target/rpc.h"

enum {
	WAITING = 4096,  /* blocks that wait for an answer; beyond that they go without */
	CATCH_UP = 64,   /* blocks between two looks at the node that are asked for; beyond that they are counted */
	LOOK_MS = 100,
	POLL_MS = 200,   /* how often the node is asked for its newest block */
	AGAIN_MS = 1000, /* after it failed */
};
static const uint64_t patience_ns = 5000000000, at_the_end_ns = 1000000000;

/* A block on its way into the profile. */
struct entry {
	struct marklog_block block;
	bool asking;      /* the node has not said what it is yet */
	uint64_t since_ns;
};

struct mark {
	struct mark_options options;
	struct logs *logs;
	struct marklog *parser;
	struct rpc *rpc;
	pthread_t log_thread, rpc_thread;
	bool log_runs, rpc_runs;
	atomic_bool log_stop, rpc_stop;
	_Atomic uint64_t row;     /* questions that failed, one after the other */
	_Atomic uint64_t skipped; /* blocks that nobody asked about */
	bool logs_told, rpc_told;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t asked; /* the rpc thread has something to do, or shall end */
	VEC(struct entry) entries;
	uint64_t removed;     /* entries that are in the profile: their number is removed + index */
	struct err log_err, rpc_err;
	uint64_t answered, unanswered, differs, failures;
	uint64_t before;      /* blocks that began before the recording */
};

/* --- the log --- */

static void got_block(void *context, const struct marklog_block *b)
{
	struct mark *m = context;
	struct entry e = { *b, .asking = m->rpc && m->rpc_runs, .since_ns = clock_mono_ns() };

	pthread_mutex_lock(&m->lock);
	if (m->entries.n >= WAITING)
		e.asking = false;
	vec_push(&m->entries, e);
	pthread_cond_signal(&m->asked);
	pthread_mutex_unlock(&m->lock);
}

static void got_line(void *context, char *line, size_t n, uint64_t time_ns)
{
	struct mark *m = context;

	marklog_line(m->parser, line, n, time_ns);
}

static void *follow_log(void *context)
{
	struct mark *m = context;
	uint64_t lines = 0;
	int r = 0;

	while (!m->log_stop && !r) {
		r = logs_wait(m->logs, LOOK_MS, got_line, m);
		if (logs_counted(m->logs)->lines == lines)
			marklog_flush(m->parser); /* nothing more came about the last one */
		lines = logs_counted(m->logs)->lines;
	}
	/* What was written until now belongs to the recording. */
	if (!r)
		logs_wait(m->logs, 0, got_line, m);
	marklog_flush(m->parser);
	if (r < 0) {
		pthread_mutex_lock(&m->lock);
		err_errno(&m->log_err, -r, "the log %s cannot be read any more; its blocks end here", m->options.log);
		pthread_mutex_unlock(&m->lock);
	}
	return NULL;
}

/* --- the node --- */

static void wait_a_while(struct mark *m, unsigned ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (ms % 1000) * 1000000L;
	until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&m->asked, &m->lock, &until);
}

static void failed(struct mark *m, const struct err *why)
{
	m->failures++;
	m->row++;
	m->rpc_err = *why;
}

/* What the node says is exact where the log rounds; of another block it says nothing. */
static void answer(struct mark *m, uint64_t number, const struct rpcblock *said)
{
	struct entry *e;

	m->row = 0;
	if (number < m->removed || number - m->removed >= m->entries.n)
		return; /* it went without */
	e = &m->entries.v[number - m->removed];
	e->asking = false;
	if (said->number != e->block.number || (*e->block.hash && strcasecmp(said->hash, e->block.hash))) {
		m->differs++;
		return;
	}
	m->answered++;
	e->block.gas = said->gas;
	e->block.transactions = said->transactions;
	e->block.known |= MARKLOG_GAS | MARKLOG_TRANSACTIONS;
}

/* Asks for the first block that waits. False: there is none. Called, and returns, with the lock. */
static bool ask_next(struct mark *m)
{
	struct rpcblock said;
	struct err why = { 0 };
	uint64_t number;
	char by[80];
	size_t i = 0;
	int r;

	while (i < m->entries.n && !m->entries.v[i].asking)
		i++;
	if (i == m->entries.n)
		return false;
	number = m->removed + i;
	if (*m->entries.v[i].block.hash)
		snprintf(by, sizeof(by), "%s", m->entries.v[i].block.hash);
	else
		snprintf(by, sizeof(by), "0x%llx", (unsigned long long)m->entries.v[i].block.number);
	pthread_mutex_unlock(&m->lock);
	r = rpc_block(m->rpc, by, &said, &why);
	pthread_mutex_lock(&m->lock);
	if (!r) {
		answer(m, number, &said);
	} else {
		failed(m, &why);
		/* One that it does not know is no reason to keep the others waiting. */
		if ((r == -ENOENT || m->row > 1) && number >= m->removed && number - m->removed < m->entries.n) {
			m->entries.v[number - m->removed].asking = false;
			m->unanswered++;
		}
		if (r != -ENOENT && !m->rpc_stop)
			wait_a_while(m, AGAIN_MS);
	}
	return true;
}

static void add_moment(struct mark *m, const struct rpcblock *b, uint64_t now)
{
	struct entry e = { .since_ns = now };

	e.block = (struct marklog_block){ .known = MARKLOG_NUMBER | MARKLOG_GAS | MARKLOG_TRANSACTIONS,
					  .number = b->number, .gas = b->gas, .transactions = b->transactions,
					  .start_ns = now, .end_ns = now };
	memcpy(e.block.hash, b->hash, sizeof(b->hash));
	pthread_mutex_lock(&m->lock);
	m->answered++;
	m->row = 0;
	vec_push(&m->entries, e);
	pthread_mutex_unlock(&m->lock);
}

/* Without a log: what is new since the last look. */
static void look_at_head(struct mark *m, uint64_t *last, bool *known)
{
	struct rpcblock head, b;
	struct err why = { 0 };
	int r = rpc_block(m->rpc, "latest", &head, &why);
	uint64_t now = clock_mono_ns();

	if (r) {
		pthread_mutex_lock(&m->lock);
		failed(m, &why);
		pthread_mutex_unlock(&m->lock);
		return;
	}
	m->row = 0;
	if (*known && head.number > *last + CATCH_UP) {
		m->skipped += head.number - *last - CATCH_UP;
		*last = head.number - CATCH_UP;
	}
	for (uint64_t n = *last + 1; *known && n < head.number && !m->rpc_stop; n++) {
		char by[32];

		snprintf(by, sizeof(by), "0x%llx", (unsigned long long)n);
		if (!rpc_block(m->rpc, by, &b, &why) && b.number == n)
			add_moment(m, &b, now);
		else
			m->skipped++;
	}
	/* The one that is there when it begins is not of this recording; a smaller number is a reorganized chain. */
	if (*known && head.number != *last)
		add_moment(m, &head, now);
	*last = head.number;
	*known = true;
}

static void *ask_node(void *context)
{
	struct mark *m = context;
	uint64_t last = 0;
	bool known = false;

	pthread_mutex_lock(&m->lock);
	while (!m->rpc_stop) {
		if (!m->options.log) {
			pthread_mutex_unlock(&m->lock);
			look_at_head(m, &last, &known);
			pthread_mutex_lock(&m->lock);
			if (!m->rpc_stop)
				wait_a_while(m, m->row ? AGAIN_MS : POLL_MS);
		} else if (!ask_next(m) && !m->rpc_stop) {
			wait_a_while(m, AGAIN_MS);
		}
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

/* --- into the profile --- */

static void add_mark(struct mark *m, struct profile *p, const struct marklog_block *b, uint64_t start)
{
	struct profile_mark x = { .thread = PROFILE_NONE, .known = b->known, .number = b->number };
	char name[48];

	if (b->start_ns < start) {
		m->before++;
		return;
	}
	_Static_assert((int)MARKLOG_NUMBER == MARK_NUMBER && (int)MARKLOG_GAS == MARK_GAS &&
		       (int)MARKLOG_TRANSACTIONS == MARK_TRANSACTIONS, "the same bits");
	snprintf(name, sizeof(name), "block %llu%s", (unsigned long long)b->number, b->again ? " (again)" : "");
	x.name = profile_string(p, name);
	x.kind = profile_string(p, "block");
	x.start_ns = b->start_ns - start;
	x.end_ns = b->end_ns - start;
	x.gas = b->known & MARKLOG_GAS ? b->gas : 0;
	x.transactions = b->known & MARKLOG_TRANSACTIONS ? b->transactions : 0;
	profile_add_mark(p, &x);
}

/* Those at the front that wait for nothing more, or have waited long enough. */
static void move(struct mark *m, struct profile *p, uint64_t start, uint64_t patience)
{
	uint64_t now = clock_mono_ns();
	size_t n = 0;

	for (; n < m->entries.n; n++) {
		struct entry *e = &m->entries.v[n];

		if (e->asking && now - e->since_ns < patience)
			break;
		m->unanswered += e->asking;
		add_mark(m, p, &e->block, start);
	}
	m->entries.n -= n;
	m->removed += n;
	if (n && m->entries.n)
		memmove(m->entries.v, m->entries.v + n, m->entries.n * sizeof(*m->entries.v));
}

static void say_troubles(struct mark *m)
{
	if (m->log_err.code && !m->logs_told)
		log_warn("%s", m->log_err.text);
	if (m->row >= 2 && !m->rpc_told)
		log_warn("the node at %s does not say what its blocks are: %s; blocks go without it", m->options.rpc,
			 m->rpc_err.text);
	m->logs_told |= m->log_err.code != 0;
	m->rpc_told |= m->row >= 2;
}

void mark_step(struct mark *m, struct profile *p, uint64_t start_mono_ns)
{
	pthread_mutex_lock(&m->lock);
	move(m, p, start_mono_ns, patience_ns);
	say_troubles(m);
	pthread_mutex_unlock(&m->lock);
}

static bool any_waits(struct mark *m)
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

static void note_counters(struct mark *m, struct profile *p)
{
	if (m->parser) {
		const struct marklog_counts *c = marklog_counted(m->parser);
		const struct logs_counts *l = logs_counted(m->logs);

		profile_count_set(p, "marks.lines", l->lines);
		profile_count_set(p, "marks.blocks", c->blocks);
		count(p, "marks.log rotated", l->rotated);
		count(p, "marks.log shortened", l->shortened);
		count(p, "marks.lines too long", l->too_long);
		count(p, "marks.lines unfinished", l->unfinished);
		count(p, "marks.lines malformed", c->bad_lines);
		count(p, "marks.repeated", c->repeated);
		count(p, "marks.reorganized", c->reorged);
		count(p, "marks.out of order", c->out_of_order);
		count(p, "marks.bad durations", c->bad_times);
	}
	count(p, "marks.began before the recording", m->before);
	count(p, "marks.answered", m->answered);
	count(p, "marks.unanswered", m->unanswered);
	count(p, "marks.another block answered", m->differs);
	count(p, "marks.skipped", m->skipped);
	count(p, "marks.rpc failures", m->failures);
}

static void say_end(struct mark *m)
{
	const struct marklog_counts *c = m->parser ? marklog_counted(m->parser) : NULL;

	if (c && !c->blocks)
		log_warn("no line of %s was about a block (%llu lines were read): --log-client says whose log it is, "
			 "--log-pattern what its lines are like", m->options.log,
			 (unsigned long long)logs_counted(m->logs)->lines);
	if (c && c->bad_lines)
		log_warn("%llu lines of the log should be about blocks, but were cut or malformed",
			 (unsigned long long)c->bad_lines);
	if (m->skipped)
		log_warn("%llu blocks came faster than the node could be asked about them",
			 (unsigned long long)m->skipped);
}

static void end_threads(struct mark *m)
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

void mark_finish(struct mark *m, struct profile *p, uint64_t start_mono_ns)
{
	end_threads(m);
	move(m, p, start_mono_ns, 0);
	say_troubles(m);
	say_end(m);
	note_counters(m, p);
}

/* --- its life --- */

int mark_open(const struct mark_options *o, struct mark **ret, struct err *err)
{
	struct mark *m = mem_alloc(sizeof(*m));
	bool missing = false;
	int r = 0;

	m->options = *o;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->asked, NULL);
	if (o->log) {
		r = marklog_new(o->client, o->pattern, got_block, m, &m->parser, err);
		if (r >= 0)
			r = logs_open(o->log, o->log_fd, &m->logs, &missing, err);
	}
	if (r >= 0 && o->rpc)
		r = rpc_open(o->rpc, &m->rpc, err);
	if (r < 0) {
		mark_close(m);
		return r;
	}
	if (missing)
		log_info("%s is not there yet: it is followed as soon as it is", o->log);
	*ret = m;
	return 0;
}

int mark_start(struct mark *m, struct err *err)
{
	sigset_t all, before;
	int r = 0;

	/* Signals are the session's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (m->rpc) {
		m->rpc_runs = true;
		r = pthread_create(&m->rpc_thread, NULL, ask_node, m);
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

void mark_close(struct mark *m)
{
	if (!m)
		return;
	end_threads(m);
	marklog_free(m->parser);
	logs_close(m->logs);
	rpc_close(m->rpc);
	vec_done(&m->entries);
	pthread_mutex_destroy(&m->lock);
	pthread_cond_destroy(&m->asked);
	free(m);
}
