/*
 * traceevents.h - events of a Chrome trace: bytes in, one event at a time out.
 *
 * Both forms are read: an array of events, also one that was never closed because its writer still runs, and an object
 * whose "traceEvents" is that array. The parser keeps one event and nothing else, however large the file is. It never
 * seeks. A file that is no JSON stops it where that shows; what came before is kept.
 *
 *	struct traceevents *t = traceevents_new(got_event, context);
 *	while ((n = read(fd, bytes, sizeof(bytes))) > 0 && !r)
 *		r = traceevents_feed(t, bytes, n, &err);
 *	whole = traceevents_whole(t);
 *	traceevents_free(t);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/block.h"

struct err;
struct traceevents;

enum { TRACEEVENTS_NAME = 128, TRACEEVENTS_DEPTH = 256 };

struct trace_event {
	char phase;                    /* "ph": B, E, X, b, e, n, M, …; 0 = there was none */
	bool timed, lasts;             /* are ts and dur there, as numbers that can be? */
	uint64_t time_ns, duration_ns; /* "ts" and "dur", which are microseconds with a fraction */
	uint64_t pid, tid, id;         /* numbers as they are, strings by a hash; 0 = none */
	struct block block;            /* of "args" */
	char name[TRACEEVENTS_NAME];   /* cut to fit */
	char called[64];               /* "name" of "args": a thread's, in metadata */
};

typedef void traceevents_fn(void *context, const struct trace_event *e);

/* A member of an outermost object beside the list, as it is written. */
typedef void traceevents_part_fn(void *context, const char *key, const char *text, size_t n);

struct traceevents *traceevents_new(traceevents_fn *fn, void *context);
/* Keeps the text of each event while fn is called, and gives "stackFrames" and "samples" beside the list to part, if they have max
 * bytes at most. Before the first byte is fed. */
void traceevents_keep(struct traceevents *t, size_t max, traceevents_part_fn *part);
/* The text of the event that fn was called with; NULL: it is longer than max. */
const char *traceevents_text(const struct traceevents *t, size_t *ret_n);
/* -EINVAL: it is no JSON, or no trace, from err->offset on. No more is taken then. */
int traceevents_feed(struct traceevents *t, const char *data, size_t n, struct err *err);
/* Was the outermost bracket closed? That of a trace which is still written is not. */
bool traceevents_whole(const struct traceevents *t);
/* Things in the list that are no events. */
uint64_t traceevents_odd(const struct traceevents *t);
void traceevents_free(struct traceevents *t); /* NULL is fine */
