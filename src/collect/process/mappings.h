/*
 * mappings.h - the code that one process has mapped, and what of it the unwinder knows.
 *
 * Executable mappings come one by one in the kernel's records and are applied as
 * they are. All of /proc/PID/maps is read only when that is not enough: at first,
 * after exec, when records were lost or a stack led to where nothing is known; and
 * the longer that takes, the more seldom (a program may have 60,000 mappings).
 *
 * The unwinder gets the list of mappings whose files are known by now (modules.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "collect/process/areas.h"

struct modules;
struct proc_mapping;
struct profile;
struct shared_mapping;

struct mappings {
	struct areas areas;
	VEC(struct shared_mapping) list; /* as it was handed on */
	uint32_t jit;      /* the process's module for memory without a file, 0 = none yet */
	uint32_t noted;    /* that the profile has */
	bool dirty;        /* all of it wants to be read again */
	bool put_off;      /* and will be, later */
	bool changed;      /* areas are not those that the list was made from */
	bool waiting;      /* for files to be read */
	bool push;         /* the list is to be handed on even if it is the same */
	uint64_t read_ns, made_ns; /* not before, by CLOCK_MONOTONIC */
};

/* Whose they are. */
struct mappings_owner {
	struct profile *profile;
	struct modules *modules;
	pid_t pid, parent; /* parent: one that is recorded and lives, or 0 */
	uint32_t process;  /* of the profile */
	uint64_t start_ticks; /* what has the pid is that process if it started then */
	uint64_t time_ns;  /* now, as the profile counts */
};

void mappings_done(struct mappings *m); /* may be used again, empty */
/* A child begins with what its parent has. young: the kernel side finds what the process has mapped by itself, so the
 * list is handed on only when the process has lived for a moment. Few programs of a shell loop do. */
void mappings_copy(struct mappings *to, const struct mappings *from, bool young);
/* After exec. */
void mappings_clear(struct mappings *m, bool young);
/* Applies the kernel's record of a new mapping. */
void mappings_apply(struct mappings *m, const struct mappings_owner *o, const struct proc_mapping *record);
/* Reads and makes the list anew where it is time to, or at once. True when the list is to be handed on. */
bool mappings_refresh(struct mappings *m, const struct mappings_owner *o, bool at_once);
