/*
 * cause.h - why a thread waited, from the stack with which it went to sleep.
 *
 * The kernel's functions tell the kind of wait (kernelwait.h); the table of patterns tells its meaning, by
 * the program's functions. Each stack is classified once. Whether a wait is idle depends on the work of its
 * thread, too (underway.h): a wait inside a block is never idle, and one for input is idle only outside of it.
 *
 *	struct causes c;
 *	causes_init(&c, p, &patterns);
 *	enum cause cause = causes_of(&c, sample);
 *	causes_done(&c);
 *
 * The profile and the patterns must outlive it; when the profile has grown, causes_grow() before the next
 * use.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/wait/pattern.h"
#include "analyze/wait/underway.h"
#include "base/map.h"

struct profile;
struct profile_sample;

/* The role of an event of the wait and cpu collectors in the account of a thread's time. */
enum role { ROLE_OTHER, ROLE_CPU, ROLE_WAIT, ROLE_QUEUE };

struct causes {
	const struct profile *p;
	struct patterns *patterns;
	/* The rest is private. */
	enum role *roles;     /* by event */
	uint32_t quota_event; /* the ROLE_QUEUE event of waits caused by a CPU quota; PROFILE_NONE = none */
	uint16_t *found, *busy; /* by stack: 0 = not classified yet; busy: as if work were under way */
	size_t stacks;        /* how many found and busy have */
	struct underway work;
	uint8_t *parents;     /* by process: it has one thread, and a child that is recorded */
	size_t processes;     /* how many parents has */
	size_t threads;       /* of the profile when parents was made */
	struct map functions; /* function and side to sets */
	VEC(struct pattern_match) sets;
};

struct pattern_match {
	struct pattern_set parts[PATTERN_PARTS];
};

void causes_init(struct causes *c, const struct profile *p, struct patterns *patterns);
/* The profile has grown: more stacks, more events. Stacks that were named since are not classified again. */
void causes_grow(struct causes *c);
void causes_done(struct causes *c);

enum role causes_role(const struct causes *c, uint32_t event);
/* Of a sample of any role but ROLE_OTHER, which is CAUSE_UNKNOWN. */
enum cause causes_of(struct causes *c, const struct profile_sample *s);
/* By the stack alone. */
enum cause causes_of_stack(struct causes *c, uint32_t stack);
/* Returns the matching pattern, NULL = none. */
const struct pattern *causes_pattern(struct causes *c, uint32_t stack);

/* A wait of a thread, and the meaning of its stack at that time. */
struct causes_wait {
	enum cause cause;
	const struct pattern *pattern; /* NULL = none */
	bool changed; /* the stack alone has another cause */
};
/* end_ns not after begin_ns: a sum of many waits, at no time in particular. */
struct causes_wait causes_of_wait(struct causes *c, uint32_t thread, uint32_t stack, uint64_t begin_ns,
				  uint64_t end_ns);
/* The same of a sample of ROLE_WAIT. */
struct causes_wait causes_of_sample(struct causes *c, const struct profile_sample *s);

/* The stack without the scheduler and the tracing at its end. */
uint32_t cause_trim(const struct profile *p, uint32_t stack);

/* The name of the innermost function of a frame, "" where it has none; never NULL. */
const char *cause_frame_name(const struct profile *p, uint32_t frame);
/* Returns whether the stack is a marker in place of a stack: "[preempted]". */
bool cause_is_marker(const struct profile *p, uint32_t stack);
/* The role of an event by its name and unit. */
enum role cause_role(const struct profile *p, uint32_t event);
