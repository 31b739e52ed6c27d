/*
 * perfdataspace.h - the processes and threads of a perf.data file, and what is mapped where, as the records of one moment
 * after the other say.
 *
 * Records must come in the order of their time. The kernel is a space of its own, in which also symbols lie that were made at
 * run time (KSYMBOL).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct perfdatamodules;
struct profile;

struct perfdatamap {
	uint64_t start, end, offset; /* addresses; of the file */
	uint32_t module;             /* of perfdatamodules */
	uint32_t name;               /* string: all of it is this function; 0 = no */
	uint64_t bias;
	bool resolved;               /* bias is known */
};

struct perfdataspace {
	VEC(struct perfdatamap) maps; /* sorted, without overlap */
	uint32_t process;             /* of the profile */
	size_t last;                  /* the mapping that was found last */
};

struct perfdataspaces {
	/* Set by the caller. */
	struct profile *p;
	struct perfdatamodules *modules;
	/* Private. */
	VEC(struct perfdataspace) list;
	struct perfdataspace kernel;
	size_t inherited;      /* mappings that forks copied */
	struct map pids, tids; /* to index of the list, to thread */
};

void perfdataspaces_done(struct perfdataspaces *s);

/* A space of a process, made if there is none; pointers live until the next call. */
struct perfdataspace *perfdataspaces_of(struct perfdataspaces *s, uint32_t pid);
/* A thread of the profile, made if there is none. pid 0 where that is not known: as it was seen before. */
uint32_t perfdataspaces_thread(struct perfdataspaces *s, uint32_t pid, uint32_t tid, uint64_t time_ns);
/* PROFILE_NONE: not seen before. */
uint32_t perfdataspaces_known_thread(const struct perfdataspaces *s, uint32_t tid);

void perfdataspaces_comm(struct perfdataspaces *s, uint32_t pid, uint32_t tid, const char *name, bool exec, uint64_t time_ns);
void perfdataspaces_fork(struct perfdataspaces *s, uint32_t pid, uint32_t tid, uint32_t parent_pid, uint32_t parent_tid, uint64_t time_ns);
void perfdataspaces_exit(struct perfdataspaces *s, uint32_t pid, uint32_t tid, uint64_t time_ns);
/* A mapping of code, which replaces what was there. */
void perfdataspaces_map(struct perfdataspaces *s, struct perfdataspace *space, const struct perfdatamap *map);
/* Nothing is there any more. */
void perfdataspaces_unmap(struct perfdataspace *space, uint64_t start, uint64_t end);
/* The mapping at an address, its bias known; NULL: there is none. */
struct perfdatamap *perfdataspaces_find(struct perfdataspaces *s, struct perfdataspace *space, uint64_t address);
