/*
 * sharedtask.h - what the BPF programs of the task collector and task.c both read.
 */
#pragma once

#include "collect/shared.h"

enum {
	SHARED_TASK_PLACES = 4096, /* where tasks are spawned */
	SHARED_TASK_WALKS = 16,    /* stacks of a place that are always walked: the first ones */
};

enum { RECORD_TASK_WAKE = RECORD_OF(COLLECTOR_task, 1), RECORD_TASK_SPAWN = RECORD_OF(COLLECTOR_task, 2) };

/* The stack of a wake that was drawn. */
struct shared_task_wake {
	uint32_t kind;
	uint32_t pid, tid;
	uint32_t ticket; /* of its event (taskimplant.h) */
	uint64_t stack;
};

struct shared_task_spawn {
	uint32_t kind;
	uint32_t pid, tid;
	uint32_t place; /* the probe's cookie */
	uint64_t time_ns;
	uint64_t stack; /* 0 = not walked */
};

struct shared_task_counts {
	uint64_t wakes, spawns; /* hits of recorded processes */
	uint64_t walked;        /* stacks of both */
	uint64_t lost;          /* records or stacks that found no room */
};

_Static_assert(sizeof(struct shared_task_wake) == 24, "layout");
_Static_assert(sizeof(struct shared_task_spawn) == 32, "layout");
