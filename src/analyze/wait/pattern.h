/*
 * pattern.h - the table of what waits mean, as text that a user can extend.
 *
 * The format is explained at the top of configs/patterns.conf, which is the
 * built-in table itself. A user's patterns come before it: the first that fits
 * decides.
 *
 *	struct patterns t;
 *	patterns_init(&t);
 *	r = patterns_add(&t, "mine.conf", text, &err);	// as often as needed
 *	patterns_add_builtin(&t);			// last
 *	...
 *	patterns_done(&t);
 */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "analyze/wait/kernelwait.h"
#include "base/vec.h"

struct err;

/* Where the time of a thread goes. */
enum cause {
	CAUSE_UNKNOWN,
	CAUSE_CPU,
	CAUSE_QUEUE,
	CAUSE_LOCK,
	CAUSE_PARK,
	CAUSE_DISK_READ,
	CAUSE_DISK_WRITE,
	CAUSE_FAULT,
	CAUSE_NETWORK,
	CAUSE_SLEEP,
	CAUSE_PIPE,
	CAUSE_RECLAIM,
	CAUSE_QUOTA, /* the cgroup has used up its CPU time */
	CAUSE_IDLE,
	CAUSE_COUNT,
};

/* "disk-write": in files and JSON; "disk write": for people. */
const char *cause_key(enum cause c);
const char *cause_name(enum cause c);

/* The regexes of a pattern. Work is none of the parts that a wait is matched by: see patterns_is_work(). */
enum pattern_part {
	PATTERN_USER, PATTERN_AND, PATTERN_UNLESS, PATTERN_KERNEL, PATTERN_PARTS,
	PATTERN_WORK = PATTERN_PARTS, PATTERN_REGEXES,
};

struct pattern {
	char *name, *means, *fix; /* means, fix: "" = nothing to say */
	char *regex[PATTERN_REGEXES]; /* NULL = not asked for */
	regex_t compiled[PATTERN_REGEXES];
	uint32_t waits;           /* a bit for each kernel_wait, 0 = any */
	bool no_own;              /* only where no function of the program's own code is on the stack */
	bool child;               /* the wait is idle where its process has no other thread, and a child that is recorded, too */
	bool outside;             /* the wait is idle where the thread's work is known and none is under way (underway.h) */
	enum cause cause;
};

enum { PATTERNS_MAX = 256 };

/* Which patterns' parts something matches: a bit for each pattern. */
struct pattern_set {
	uint64_t bits[PATTERNS_MAX / 64];
};

struct patterns {
	VEC(struct pattern) list;
	regex_t any[3]; /* of user functions, of the kernel's, and of work: does a name match anything at all? */
	bool any_known[3];
};

void patterns_init(struct patterns *t);
/* file is what errors call the text: "file:12: ...". -EINVAL, and t is as it was. */
int patterns_add(struct patterns *t, const char *file, const char *text, struct err *err);
void patterns_add_builtin(struct patterns *t);
void patterns_done(struct patterns *t);

/* Adds to sets[part] the patterns whose part matches a function's name. */
void patterns_match_name(struct patterns *t, const char *name, bool kernel,
			 struct pattern_set sets[PATTERN_PARTS]);

/* What a wait is matched by, beside its functions. */
struct pattern_wait {
	enum kernel_wait kind;
	bool own;  /* a function on the stack is the program's own code */
	bool work; /* work is under way: the wait is not idle */
};

/* The first pattern that fits a wait and what its functions match, NULL = none. */
const struct pattern *patterns_find(const struct patterns *t, const struct pattern_wait *w,
				    const struct pattern_set sets[PATTERN_PARTS]);

/* Returns whether a function of that name is a piece of work: a pattern's work = fits. */
bool patterns_is_work(struct patterns *t, const char *name);
