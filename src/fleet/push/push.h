/*
 * push.h - delivers windows to a store, each of them exactly once.
 *
 * The rows of a window go first, with a number that is new for each attempt; the last row, in the table `windows`, commits that
 * attempt. Readers take only rows of committed attempts, and of one where two are. So what is left of an attempt that failed never
 * counts; before the next one, and before the first, the store is asked whether the window is there. A window that is there with
 * other sums is an error: the recording went on after it was pushed, or two recordings have one name and time.
 *
 *	struct push_options o = { .target = "reth-1" };
 *	struct pusher *p = pusher_new(clickhouse, &o);
 *	r = pusher_send(p, &windows, &result, &err);
 *	pusher_free(p);
 *
 * Stacks and frames are sent once a day in the life of a pusher, which forgets them when the next day begins; a store has them once, however often they come.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct clickhouse;
struct err;
struct pusher;
struct windows;

struct push_options {
	const char *target;
	const char *release;             /* NULL = not known */
	const char *const *labels;       /* "key=value", NULL-terminated; NULL = none */
	unsigned tries;                  /* 0 = PUSH_TRIES */
	void (*pause)(unsigned ms);      /* between them; NULL: sleeps */
};

enum { PUSH_TRIES = 8 };

struct push_result {
	uint64_t windows, there; /* sent now, and found in the store */
	uint64_t rows;           /* of all tables, sent now */
	uint64_t bytes;          /* packed, with those of attempts that failed */
};

/* The name of a target, a release and labels: not empty where needed, not longer than 200 bytes. 0 or -EINVAL. */
int push_check(const struct push_options *o, struct err *err);

/* Borrows all of it. */
struct pusher *pusher_new(struct clickhouse *c, const struct push_options *o);
void pusher_free(struct pusher *p); /* NULL is fine */
/* -EEXIST: a window is there with other sums. All else as clickhouse.h has it, after as many tries as the options say. *ret adds up,
 * also on an error. */
int pusher_send(struct pusher *p, const struct windows *w, struct push_result *ret, struct err *err);
/* The same for the windows of n captures of the target, up to PUSHBATCH_WINDOWS of them in one insert a table (pushbatch.h). A window that is there with other sums ends it; those before it may be there, and the rest is sent when it is called
 * again without that one. */
int pusher_send_many(struct pusher *p, const struct windows *const *captures, size_t n, struct push_result *ret, struct err *err);
