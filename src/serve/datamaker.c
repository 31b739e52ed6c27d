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
	bool stopping;
};

static void refuse(struct datamaker *w, struct datamaker_job *job)
{
	job->answer = site_sentence(503, "gasflame serve is ending");
	w->done(job);
}

void datamaker_add(struct datamaker *w, struct datamaker_job *job)
{
	struct datamaker_job **at = &w->waiting;

	pthread_mutex_lock(&w->lock);
	if (w->stopping) {
		pthread_mutex_unlock(&w->lock);
		refuse(w, job);
		return;
	}
	while (*at && (!job->first || (*at)->first))
		at = &(*at)->next;
	job->next = *at;
	*at = job;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
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
		job->answer = job->first ? site_first(w->site, job->show, job->version) :
					   site_data(w->site, job->show, job->version, job->under);
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
