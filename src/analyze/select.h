/*
 * select.h - which samples an analysis looks at, already added up per thread and stack.
 *
 *	struct selection s;
 *	int r = selection_make(p, &(struct select_options){ .from_ns = 1e9 }, &s, &err);
 *	...
 *	selection_done(&s);
 *
 * All later analyses read a selection, never the samples.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct err;
struct profile;

struct select_options {
	uint32_t event;                /* see select_event() */
	const char *const *threads;    /* names, globs or tids, any of them; NULL-terminated, NULL = all */
	const char *const *processes;  /* the same with pids */
	uint64_t from_ns, to_ns;       /* from <= time < to; to 0 = the end */
	const char *function;          /* extended regex: stacks with a function that matches; NULL = all */
};

struct weight {
	uint64_t samples;
	uint64_t value; /* in the event's unit */
};

struct select_entry {
	uint32_t thread, stack;
	struct weight weight;
};

struct selection {
	struct select_options options; /* borrowed strings */
	VEC(struct select_entry) entries; /* in the order of their first samples */
	struct weight all;
	struct weight recorded; /* of this event, before any filter */
};

/* The event called name (NULL: the first one). -ENOENT with a list of those that there are. */
int select_event(const struct profile *p, const char *name, uint32_t *ret, struct err *err);

/* -EINVAL: a bad regex or range. -ENODATA: there are samples, but none of them is selected; the
 * sentence says which filter to change. A profile without samples gives an empty selection and 0. */
int selection_make(const struct profile *p, const struct select_options *o, struct selection *ret,
		   struct err *err);
void selection_done(struct selection *s);

/* How long the recording is: as recorded, or until its last sample if the recorder died. */
uint64_t select_duration_ns(const struct profile *p);
