/*
 * tasktype.h - the unit of work that each stack belongs to: a task of tokio, a job of a pool, a goroutine.
 *
 * Threads of a pool are all alike. What they run differs, and the stacks tell it without any help of the target: below
 * the function by which a runtime runs a unit (tokio's raw::poll, rayon's execute, the start of a thread) is the unit's
 * future or closure. Wrappers are passed over, and the name is that of taskname.h.
 *
 * The innermost unit counts: a worker of rayon that waits for one job and runs another meanwhile runs the other one. A
 * runtime that is entered within a unit (block_on() in a job) leaves the stack with that unit.
 *
 * A unit whose future was inlined into raw::poll has only callees of it on its stacks. Each instance of raw::poll is of
 * one type of future, so all stacks below one instance have one name: that of most of them.
 *
 *	struct tasktypes t;
 *	tasktypes_init(&t, p);
 *	const struct tasktype *type = &t.list.v[tasktypes_of(&t, sample->stack)];
 *	tasktypes_done(&t);
 *
 * Each function is matched once, and each stack takes what its caller has. Stacks that are added to the profile later are
 * of no type until tasktypes_grow(). The profile must outlive the table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct profile;

/* The pool of functions of threads that are of no pool that is known. */
#define TASKTYPE_THREADS "threads"

enum tasktype_kind {
	TASKTYPE_NONE,      /* no unit of a pool: main(), another program's stack, a stack without names */
	TASKTYPE_RUNTIME,   /* the pool itself: it looks for work, steals, drives timers and sockets, or is parked */
	TASKTYPE_TASK,      /* a future that tokio was given by spawn() or spawn_local() */
	TASKTYPE_BLOCKING,  /* a closure in tokio's pool for blocking work */
	TASKTYPE_BLOCK_ON,  /* the future of block_on() */
	TASKTYPE_RAYON,     /* a job of rayon */
	TASKTYPE_JOB,       /* a job of another pool: threadpool, libuv, V8's platform, boost's asio */
	TASKTYPE_THREAD,    /* the function of a thread */
	TASKTYPE_GOROUTINE, /* the function of a goroutine */
	TASKTYPE_KINDS,
};

struct tasktype {
	enum tasktype_kind kind;
	const char *name; /* "anvil::service::NodeService"; lives as long as the table */
	const char *pool; /* "tokio", "tokio blocking", "rayon", "threads", "Go"; "" = none */
	bool named;       /* false: of the unit only the kind is known, and the name says so: "[task]" */
};

struct tasktypes {
	const struct profile *p;
	VEC(struct tasktype) list; /* each kind and name once; 0 is TASKTYPE_NONE */
	/* The rest is private: tasktype.c. */
	struct tasktypes_private *own;
};

void tasktypes_init(struct tasktypes *t, const struct profile *p);
void tasktypes_done(struct tasktypes *t);
/* The profile has more stacks. Indexes into the list change. */
void tasktypes_grow(struct tasktypes *t);

/* Returns the index of a stack's type in the list. */
uint32_t tasktypes_of(const struct tasktypes *t, uint32_t stack);

/* False: the stack is of the type of its caller's. A bit a stack, for walks over all of them. */
bool tasktypes_may_begin(const struct tasktypes *t, uint32_t stack);

/* "task", "blocking", "block_on", "rayon", "job", "thread", "goroutine", "runtime"; "" for none. */
const char *tasktype_kind_name(enum tasktype_kind kind);
/* "task anvil::service::NodeService", "runtime tokio": for a place where kinds are mixed. Caller frees. */
char *tasktype_label(const struct tasktype *t);
