#include "serve/datamaker.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"

struct datamaker {
	struct site *site;
	datamaker_done_fn *done;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct datamaker_job *waiting; /* first pictures first */
	struct datamaker_job *running; /* NULL = none */
	bool stopping;
};

static void refuse(struct datamaker *w, struct datamaker_job *job)
{
	job->answer = site_sentence(503, "gasflame serve is ending");
	w->done(job);
}

/* Does nobody wait for the old one any more? */
static bool replaces(const struct datamaker_job *job, const struct datamaker_job *old)
{
	return job->question && old && old->question && site_question_replaces(job->question, old->question);
}

/* Takes out what the job replaces, as a list. */
static struct datamaker_job *take_replaced(struct datamaker *w, const struct datamaker_job *job)
{
	struct datamaker_job *gone = NULL;

	for (struct datamaker_job **at = &w->waiting; *at;) {
		struct datamaker_job *old = *at;

		if (!replaces(job, old)) {
			at = &old->next;
			continue;
		}
		*at = old->next;
		old->next = gone;
		gone = old;
	}
	if (replaces(job, w->running))
		site_cancel(w->site);
	return gone;
}

void datamaker_add(struct datamaker *w, struct datamaker_job *job)
{
	struct datamaker_job **at = &w->waiting, *gone, *next;

	pthread_mutex_lock(&w->lock);
	if (w->stopping) {
		pthread_mutex_unlock(&w->lock);
		refuse(w, job);
		return;
	}
	gone = take_replaced(w, job);
	while (*at && (!job->first || (*at)->first))
		at = &(*at)->next;
	job->next = *at;
	*at = job;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	for (; gone; gone = next) {
		next = gone->next;
		gone->answer = site_sentence(409, "the page asked for something else meanwhile");
		w->done(gone);
	}
}

/* Waits for the next job; NULL: there will be none. */
static struct datamaker_job *take(struct datamaker *w, bool *ret_stopping)
{
	struct datamaker_job *job;

	pthread_mutex_lock(&w->lock);
	while (!w->waiting && !w->stopping)
		pthread_cond_wait(&w->changed, &w->lock);
	job = w->waiting;
	if (job)
		w->waiting = job->next;
	w->running = job;
	*ret_stopping = w->stopping;
	pthread_mutex_unlock(&w->lock);
	return job;
}

static void *work(void *context)
{
	struct datamaker *w = context;
	struct datamaker_job *job;
	bool stopping;

	while ((job = take(w, &stopping))) {
		if (stopping) {
			refuse(w, job);
			continue;
		}
		job->answer = job->question ? site_ask(w->site, job->question) :
			      job->first ? site_first(w->site, job->show, job->version) :
					   site_data(w->site, job->show, job->version, job->under);
		pthread_mutex_lock(&w->lock);
		w->running = NULL; /* done() may free it */
		pthread_mutex_unlock(&w->lock);
		w->done(job);
	}
	return NULL;
}

int datamaker_start(struct site *site, datamaker_done_fn *done, struct datamaker **ret, struct err *err)
{
	struct datamaker *w = mem_alloc(sizeof(*w));
	int code;

	w->site = site;
	w->done = done;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	code = pthread_create(&w->thread, NULL, work, w);
	if (code) {
		free(w);
		return err_errno(err, code, "cannot start the thread that reads captures");
	}
	*ret = w;
	return 0;
}

void datamaker_stop(struct datamaker *w)
{
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	if (w->running && w->running->question)
		site_cancel(w->site);
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
}

void datamaker_free(struct datamaker *w)
{
	if (!w)
		return;
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->changed);
	free(w);
}
