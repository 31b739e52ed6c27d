/*
 * select.h - the samples that an analysis reads, already summed per thread and stack.
 *
 *	struct selection s;
 *	int r = selection_make(p, &(struct select_options){ .from_ns = 1e9 }, &s, &err);
 *	...
 *	selection_done(&s);
 *
 * All later analyses read a selection, never the samples.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/wait/cause.h"
#include "base/vec.h"

struct err;
struct profile;
struct profile_summed;

/* Instead of an event, several of one unit: all time of a thread, "cpu", "wait" and "queue" together; and
 * the bytes of "read" and "write". */
#define SELECT_WALL (UINT32_MAX - 1)
#define SELECT_IO   (UINT32_MAX - 2)

/* The kind of the counted items: only samples are a part of what happened, all others are complete. */
enum select_kind {
	SELECT_SAMPLES, SELECT_WAITS, SELECT_CALLS, SELECT_FAULTS, SELECT_RECLAIMS, SELECT_EVENTS,
	SELECT_OBJECTS, /* of the heap: each sample represents many */
	SELECT_POLLS, SELECT_AWAITS, SELECT_TURNS, SELECT_SPAWNS, /* of async tasks; awaits are weighted; a turn is one in the queue */
};

struct select_options {
	uint32_t event;                /* see select_event() */
	struct causes *causes;         /* of waits; NULL: causes are merged, idle waits kept */
	bool idle;                     /* take idle waits in */
	const char *const *threads;    /* names, globs or tids, any of them; NULL-terminated, NULL = all */
	const char *const *processes;  /* the same with pids */
	uint64_t from_ns, to_ns;       /* from <= time < to; to 0 = the end */
	const char *function;          /* extended regex: stacks with a function that matches; NULL = all */
	bool moments;                  /* keep the times of the selected samples */
};

struct weight {
	uint64_t samples; /* or what a sample represents: waits, faults, summed calls, objects */
	uint64_t value; /* in the event's unit */
	uint64_t taken; /* samples that say so; of selections only */
};

/* Without taken, which trees and tables do not keep. */
static inline void weight_add(struct weight *to, const struct weight *w)
{
	to->samples += w->samples;
	to->value += w->value;
}

struct select_entry {
	uint32_t thread, stack; /* of waits: without the scheduler at its end */
	struct weight weight;
	enum cause cause;       /* with causes; else CAUSE_UNKNOWN */
};

/* A selected sample: a moment, or the part of a wait within the range. */
struct select_moment {
	uint64_t begin_ns, end_ns;
	struct weight weight;
	uint32_t entry;
};

struct selection {
	struct select_options options; /* borrowed strings */
	VEC(struct select_entry) entries; /* in the order of their first samples */
	VEC(struct select_moment) moments; /* if requested, in the order of the samples */
	struct weight all;
	struct weight recorded; /* of this event, before any filter */
	struct weight idle;     /* left out because it was idle */
	struct weight outside;  /* left out because it is not below the root (restack.h) */
	bool waits;             /* time off the CPU is in it: "wait", "queue" or wall */
	bool mixed;             /* the same for polls of tasks that have their stacks (pollstacks.h) */
	enum select_kind kind;  /* of wall: SELECT_WAITS */
	uint32_t *shaped;       /* with restack.h: what became of each stack, PROFILE_NONE = left out */
	const char *root;       /* the same: the regex, NULL = none */
	const char *name, *unit, *describe; /* of the selection; live as long as the profile */
};

/*
 * Finds the event called name (NULL: "cpu", else the first one that has samples), or "wall" where waits were
 * recorded, or "io" for read and written bytes together. "fault" and "faults" are the first of "major-time",
 * "major-faults", "minor-time" and "minor-faults" that happened; "reads", "writes" and "syncs" are known,
 * too. -ENOENT with a list of the recorded events.
 */
int select_event(const struct profile *p, const char *name, uint32_t *ret, struct err *err);

/* -EINVAL: a bad regex or range. -ENODATA: there are samples, but none of them is selected; the
 * sentence says which filter to change. A profile without samples gives an empty selection and 0, and so
 * does one in which all that is selected is idle. */
int selection_make(const struct profile *p, const struct select_options *o, struct selection *ret,
		   struct err *err);
void selection_done(struct selection *s);

/* A sample that passes the filters of o. */
struct select_hit {
	size_t index;      /* into the profile's samples */
	enum role role;
	uint32_t stack;    /* of waits: without the scheduler at its end */
	enum cause cause;
	bool idle;         /* and not requested */
	struct weight weight; /* the value is the part within the range */
};
typedef void select_fn(void *context, const struct select_hit *hit);
/* Calls fn for each of them, in their order. Errors as selection_make(), which says the same and adds up. */
int select_each(const struct profile *p, const struct select_options *o, select_fn *fn, void *context,
		struct err *err);

/* Returns a byte for each thread: whether o's threads and processes select it. Caller frees. -ENODATA:
 * none is selected. */
int select_threads(const struct profile *p, const struct select_options *o, uint8_t **ret, struct err *err);

/*
 * Computes the begin and end of sample i, and the part of its value between from
 * and to (to 0 = no end). A sample of a clock, or one that stands for many waits,
 * is at one moment; a single wait is as long as its value, and is cut at the
 * borders.
 */
void select_span(const struct profile *p, size_t i, enum role role, uint64_t *ret_begin, uint64_t *ret_end);
/* The part of a slot's sum that is between two moments: it is spread evenly. */
uint64_t select_part(uint64_t value, const struct profile_summed *sum, uint64_t from_ns, uint64_t to_ns);
uint64_t select_value(const struct profile *p, size_t i, enum role role, uint64_t from_ns, uint64_t to_ns);

/* Were waits recorded, whether or not there were any? */
bool select_has_waits(const struct profile *p);

/* How long the recording is: as recorded, or until its last sample if the recorder died. */
uint64_t select_duration_ns(const struct profile *p);
