/*
 * post.h - JSON-RPC over one connection that stays open: a question, its answer, and how long that took.
 *
 * One thread at a time, but post_stop() may come from any. -ENOSYS from post_open(): built without libcurl.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct post;

enum { POST_LIMIT_BYTES = 64 << 20 }; /* of an answer; what is longer is -EFBIG */

struct post_question {
	const char *body;
	size_t n;
	const char *bearer;    /* a token, NULL = none */
	unsigned timeout_ms;
	uint64_t limit;        /* of the answer, 0 = POST_LIMIT_BYTES */
};

struct post_answer {
	const char *text;      /* until the next question */
	size_t n;
	uint64_t ns;           /* from the first byte sent to the last one that came; of the first question, to connect too */
};

/* option: what the user names it with, for sentences: "--engine". */
int post_open(const char *url, const char *option, struct post **ret, struct err *err);
/* 0; -EACCES: the server wants another token (401, 403); -EIO and others: it was not reached, or not understood.
 * -ECANCELED: post_stop(). An answer with any other status than 200 that has a body is an answer: some nodes send
 * errors of JSON-RPC that way. */
int post_ask(struct post *p, const struct post_question *q, struct post_answer *ret, struct err *err);
/* What is asked now, or later, fails soon. */
void post_stop(struct post *p);
/* The same as soon as the flag is set, by a signal for example; what is under way ends within a second. */
void post_stop_on(struct post *p, const volatile sig_atomic_t *flag);
void post_close(struct post *p); /* NULL is fine */

/* Is it this machine? 127.0.0.0/8, ::1 and localhost. */
bool post_is_local(const char *url);
