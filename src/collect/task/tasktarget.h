/*
 * tasktarget.h - one process whose tasks are recorded: its hooks, and the uprobe on them.
 *
 * An entered target is left, at the latest at the end. A process that executes another program is left and entered again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "base/vec.h"

struct bpf_link;
struct err;
struct session;
struct taskfile;
struct taskfiles;
struct taskimplant;
struct taskstate;

/* A file that is mapped in it, with its vtables hooked. */
struct tasktarget_module {
	const struct taskfile *file;
	uint64_t bias;
};

struct tasktarget {
	pid_t pid;
	uint32_t process;            /* of taskstate */
	uint64_t since_ns;           /* CLOCK_MONOTONIC: from here on its polls are seen */
	struct taskimplant *implant; /* NULL: it has none, or none any more */
	struct bpf_link *link;
	VEC(struct tasktarget_module) modules;
	VEC(uint32_t) types;         /* of taskstate, by the implant's number of a vtable */
	struct map stacks;           /* ticket -> the profile's stack, until the event is read */
	struct map threads;          /* tid -> the profile's thread, within one look */
	struct map tids;             /* threads that it has had */
	uint64_t mappings;           /* a sum of those that it had at the last look */
	unsigned tries;              /* to enter it that are left: its program may be starting */
	bool warned;                 /* that it, or a library that was loaded later, cannot be hooked */
};

/* Hooks the vtables of its tasks and switches the hooks on. Of t the pid and the process are there. -ENOENT: it has no tokio;
 * on failure nothing is left. */
int tasktarget_enter(struct session *s, struct tasktarget *t, struct taskfiles *files, struct taskstate *state,
		     uint64_t interval_ns, struct err *err);
/* Has it mapped other files since the last call? */
bool tasktarget_changed(struct session *s, struct tasktarget *t);
/* Libraries that were loaded since have tasks, too. Once a second. */
void tasktarget_look(struct session *s, struct tasktarget *t, struct taskfiles *files, struct taskstate *state);
/* Leaves the process as it was, but for memory that nothing refers to any more. */
void tasktarget_leave(struct tasktarget *t);
