/*
 * verdict.h - the conclusion of the account, in one to three sentences.
 *
 * "71 % of thread `persistence` (21.3 s of 30.0 s) is fdatasync under `mdbx_txn_commit`.", then the
 * meaning of the pattern that was recognized there, and what usually helps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "analyze/wait/waits.h"
#include "base/vec.h"

struct account;
struct profile;
struct select_options;

/* Shows the reason of a sentence. */
struct verdict_link {
	const char *what; /* event to weigh, NULL = there is nothing to show */
	uint32_t thread;  /* PROFILE_NONE = all, for any cause */
	enum cause cause;
	char *function;   /* under which it is, NULL = any; owned */
	char *task;       /* the type of async task that the sentence is about (tasks.h), NULL = none; owned */
	uint64_t from_ns, to_ns; /* the time that shows it best; both 0: all of it */
	bool advice;      /* the sentence explains the one before, and has the same link */
	size_t finding;   /* so many bytes of the sentence are the finding, the rest names options of the command line; 0 = all */
};

struct verdict {
	VEC(char *) sentences;
	VEC(struct verdict_link) links; /* of each sentence */
	uint32_t thread;               /* that the first one is about, PROFILE_NONE = none */
	enum cause cause;              /* of it */
	const struct pattern *pattern; /* NULL = none */
};

/* Adds a sentence, and a link to its reason, whose strings are copied. */
void verdict_say(struct verdict *v, struct verdict_link link, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* o as for waits_make(). */
void verdict_make(struct verdict *v, const struct profile *p, const struct account *a, const struct waits *w,
		  const struct select_options *o);
/* Of a recording without waits, which has no account: what is known of async tasks. */
void verdict_make_without_waits(struct verdict *v, const struct profile *p, const struct select_options *o);
void verdict_done(struct verdict *v);
