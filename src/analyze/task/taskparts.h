/*
 * taskparts.h - the functions by which runtimes and pools run units of work, by their names.
 *
 * Private to this folder; tasktype.h is what others call.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum taskpart {
	TASKPART_ORDINARY, /* any other function: of a unit, or of nobody */
	TASKPART_MAIN,     /* starts main(), also by functions that start threads */
	TASKPART_THREAD,   /* starts a thread: its function is below */
	TASKPART_POLL,     /* tokio's: the future of a task, or a closure of the blocking pool, is below */
	TASKPART_POLL_IN,  /* the same, when it is called by another one of them */
	TASKPART_BLOCK_ON, /* its future is below, and for runtimes of one thread all tasks */
	TASKPART_WORKER,   /* the loop of a tokio worker */
	TASKPART_BLOCKING, /* the loop of tokio's blocking pool */
	TASKPART_TASK_RUN, /* async-task's (async-std, smol): the future is below */
	TASKPART_RAYON,    /* the loop of a rayon worker */
	TASKPART_RAYON_JOB,/* the job's closure is below */
	TASKPART_LOOP,     /* the loop of another pool: a job is below, or none */
	TASKPART_JOB,      /* is a job itself, of a pool whose loop has no name of its own */
	TASKPART_BOXED,    /* calls a closure that it does not know by its type: below a thread's function, a job */
	TASKPART_GOROUTINE,/* its function is below */
	TASKPART_GO,       /* Go's scheduler or collector */
};

struct taskpart_of {
	enum taskpart part;
	const char *pool;  /* of TASKPART_LOOP and TASKPART_JOB; else NULL */
	bool instance;     /* one copy of the function for each type of future or closure */
};

struct taskpart_of taskpart_of_name(const char *name);
/* Does a goroutine begin there, but its own function is the callee? */
bool taskpart_is_go_wrapper(const char *name);
/* Is it Go's, and no goroutine of the program? */
bool taskpart_is_go_runtime(const char *name);
