/*
 * datamaker.h - a thread that makes data: reading a capture takes seconds, and so may a store; meanwhile the server answers other requests.
 *
 * One job at a time; first pictures come before all others, which come in their order. A question to the store takes the place of
 * the last one of the same page, which nobody waits for any more: that is done with status 409, and ended where it is under way.
 *
 *	datamaker_start(&w, site, done, &err);
 *	datamaker_add(w, job);      // done(job) is called by its thread
 *	datamaker_stop(w);          // after the job at hand; the others, and those that come later, are done with status 503
 *	datamaker_free(w);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/site.h"

struct err;
struct datamaker;

struct datamaker_job {
	struct site_show show;
	uint64_t version;
	uint32_t under;
	bool first;           /* a first picture; else the data */
	struct site_question *question; /* to the store, and nothing of the above; owned; NULL = none */
	void *who;            /* the caller's */
	struct answer answer; /* when it is done */
	struct datamaker_job *next; /* the data maker's */
};
typedef void datamaker_done_fn(struct datamaker_job *job);

int datamaker_start(struct site *site, datamaker_done_fn *done, struct datamaker **ret, struct err *err);
/* Takes the job over until it is done. */
void datamaker_add(struct datamaker *w, struct datamaker_job *job);
void datamaker_stop(struct datamaker *w); /* once */
void datamaker_free(struct datamaker *w); /* after it was stopped; NULL is fine */
