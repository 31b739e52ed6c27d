#include "collect/process/reader.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/process/tablecache.h"
#include "sandbox/privilege.h"

struct job {
	uint32_t id;
	int fd;
	bool image;                   /* see tablecache_image() */
	struct tablecache_file file;  /* as it was before it was read */
	struct worker_layout *layout; /* once it is known */
};

struct reader {
	struct worker *worker; /* of the thread, but for worker_cancel() */
	struct tablecache *cache; /* of the thread */
	bool cached;
	pthread_t thread;
	bool started;
	int event;
	_Atomic bool deaf; /* the event does not work */
	uint32_t open; /* results that the owner waits for */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* Under the lock. Jobs before next are done. */
	bool quit;
	VEC(struct job) layouts, tables;
	size_t next_layout, next_table;
	VEC(struct reader_result *) results;
};

struct reader *reader_new(bool cached)
{
	struct reader *r = mem_alloc(sizeof(*r));

	r->worker = worker_new();
	r->cached = cached;
	r->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->wake, NULL);
	return r;
}

static void put_result(struct reader *r, struct reader_result *result, const struct job *then)
{
	uint64_t one = 1;

	pthread_mutex_lock(&r->lock);
	vec_push(&r->results, result);
	if (then)
		vec_push(&r->tables, *then);
	/* Readable exactly as long as there are results. Whoever waits for it looks again without it, only later; and
	 * while it is waited for it stays open. */
	if (r->results.n == 1 && write(r->event, &one, sizeof(one)) < 0)
		r->deaf = true;
	pthread_mutex_unlock(&r->lock);
}

static struct reader_result *new_result(const struct job *j, enum reader_what what)
{
	struct reader_result *result = mem_alloc(sizeof(*result));

	result->id = j->id;
	result->what = what;
	return result;
}

static void do_layout(struct reader *r, struct job *j)
{
	struct reader_result *layout = new_result(j, READER_LAYOUT), *table;
	struct unwind_table known;
	struct err err = { 0 };

	j->file = j->image ? tablecache_image(j->fd) : tablecache_file(j->fd);
	if (tablecache_find(r->cache, &j->file, &layout->layout, &known)) {
		table = new_result(j, READER_TABLE);
		table->table = known;
		put_result(r, layout, NULL);
		put_result(r, table, NULL);
		return;
	}
	layout->status = worker_layout(r->worker, j->fd, &layout->layout, &err);
	snprintf(layout->text, sizeof(layout->text), "%.255s", err.text);
	if (!layout->status) {
		j->layout = mem_alloc(sizeof(*j->layout));
		*j->layout = layout->layout;
	}
	put_result(r, layout, layout->status < 0 ? NULL : j);
}

static void do_table(struct reader *r, struct job *j)
{
	struct reader_result *result = new_result(j, READER_TABLE);
	struct err err = { 0 };

	result->status = worker_unwind(r->worker, j->fd, &result->table, &err);
	snprintf(result->text, sizeof(result->text), "%.255s", err.text);
	if (!result->status)
		tablecache_keep(r->cache, j->fd, &j->file, j->layout, &result->table);
	free(j->layout);
	put_result(r, result, NULL);
}

/* Lists only grow at their end; where all of one is done it begins anew. */
#define TAKE_JOB(list, next, out) \
	((next) < (list).n ? (*(out) = (list).v[(next)++], (next) == (list).n ? ((list).n = (next) = 0) : 0, true) : false)

static void *run(void *context)
{
	struct reader *r = context;

	/* The recorder may have a higher priority; this thread and its child need none. */
	if (getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0);
	privilege_thread();
	if (r->cached)
		r->cache = tablecache_open();
	pthread_mutex_lock(&r->lock);
	while (!r->quit) {
		bool layout = false, table = false;
		struct job j;

		layout = TAKE_JOB(r->layouts, r->next_layout, &j);
		if (!layout)
			table = TAKE_JOB(r->tables, r->next_table, &j);
		if (!layout && !table) {
			pthread_cond_wait(&r->wake, &r->lock);
			continue;
		}
		pthread_mutex_unlock(&r->lock);
		if (layout)
			do_layout(r, &j);
		else
			do_table(r, &j);
		pthread_mutex_lock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static void start(struct reader *r)
{
	sigset_t all, before;

	/* Signals are for the session. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&r->thread, NULL, run, r))
		mem_no_thread();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	r->started = true;
}

void reader_free(struct reader *r)
{
	if (!r)
		return;
	worker_cancel(r->worker);
	pthread_mutex_lock(&r->lock);
	r->quit = true;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	if (r->started)
		pthread_join(r->thread, NULL);
	vec_done_each(&r->results, e, unwind_done(&(*e)->table); free(*e));
	vec_done(&r->layouts);
	vec_done_each(&r->tables, j, if ((size_t)(j - r->tables.v) >= r->next_table) free(j->layout));
	tablecache_close(r->cache);
	worker_free(r->worker);
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->wake);
	fd_close(&r->event);
	free(r);
}

void reader_add(struct reader *r, uint32_t id, int fd, bool image)
{
	if (!r->started)
		start(r);
	r->open += 2;
	pthread_mutex_lock(&r->lock);
	vec_push(&r->layouts, (struct job){ .id = id, .fd = fd, .image = image });
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
}

bool reader_take(struct reader *r, struct reader_result *ret)
{
	struct reader_result *first = NULL;
	uint64_t count;

	if (!r->open)
		return false;
	pthread_mutex_lock(&r->lock);
	if (r->results.n) {
		first = r->results.v[0];
		for (size_t i = 1; i < r->results.n; i++)
			r->results.v[i - 1] = r->results.v[i];
		if (!--r->results.n && read(r->event, &count, sizeof(count)) < 0)
			r->deaf = true; /* it would stay readable */
	}
	pthread_mutex_unlock(&r->lock);
	if (!first)
		return false;
	r->open -= first->what == READER_LAYOUT && first->status < 0 ? 2 : 1;
	*ret = *first;
	free(first);
	return true;
}

void reader_each_table(struct reader *r, void (*fn)(void *context, const struct unwind_table *table), void *context)
{
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->results.n; i++)
		if (r->results.v[i]->what == READER_TABLE && !r->results.v[i]->status)
			fn(context, &r->results.v[i]->table);
	pthread_mutex_unlock(&r->lock);
}

bool reader_busy(const struct reader *r)
{
	return r->open;
}

int reader_event(const struct reader *r)
{
	return r->deaf ? -1 : r->event;
}
