/*
 * phases.h - stages of a program's work: by functions that are on the stack, or by the recording's marks.
 *
 *	struct phases f;
 *	r = phases_build(&f, p, &selection, (const char *const[]){ "load", "execute", NULL }, &err);
 *	phases_done(&f);
 *
 * Both use the selection, with its times. Idle waits that it leaves out are left out here.
 */
#pragma once

#include <stdint.h>

#include "analyze/select.h"
#include "base/vec.h"

struct err;
struct profile;

enum { PHASES_MOST = 64 };

struct phase {
	const char *name;        /* as given */
	struct weight weight;    /* in which it is the innermost phase: these add up */
	struct weight total;     /* in which it is on the stack */
	uint64_t first_ns, last_ns; /* when it was first and last seen */
	uint32_t thread;         /* where most of it was */
	uint32_t threads;        /* how many it was seen on */
	uint64_t thread_value;   /* private */
};

struct phases {
	VEC(struct phase) rows; /* in the order of their first appearance; phases that were never seen last */
	struct weight outside;    /* of all phases, on threads that had one */
	struct weight elsewhere;  /* on other threads */
	struct weight all;
	uint32_t threads;         /* that had a phase */
};

/* names: extended regexes, NULL-terminated, at most PHASES_MOST, borrowed. -EINVAL: a bad one. -ENODATA: none
 * of them is on a stack. */
int phases_build(struct phases *f, const struct profile *p, const struct selection *s,
		 const char *const *names, struct err *err);
void phases_done(struct phases *f);

struct mark_row {
	uint32_t mark;            /* into the profile's */
	uint64_t start_ns, end_ns; /* a moment lasts until the next one of its kind and thread */
	struct weight weight;     /* the weight within the span: of its thread, or of all if it has none */
};

struct mark_kind {
	const char *name;         /* lives as long as the profile */
	uint64_t count, time_ns, longest_ns;
	struct weight weight;     /* the sum over its marks */
};

struct marks {
	VEC(struct mark_row) rows;   /* by start */
	VEC(struct mark_kind) kinds; /* in the order of their first mark */
	struct weight outside;       /* of all marks */
	struct weight all;
};

/* -ENODATA: there are no marks. */
int marks_build(struct marks *m, const struct profile *p, const struct selection *s, struct err *err);
void marks_done(struct marks *m);
