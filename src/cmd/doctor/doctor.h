/*
 * doctor.h - a line of a diagnosis: the item, its state, what to do.
 *
 * doctor.c checks the machine, process.c one process, client.c how its program was built; all only fill this.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/vec.h"
#include "elf/buildfacts.h"

struct host;
struct json;
struct worker;

enum check_state { CHECK_OK, CHECK_LIMITED, CHECK_MISSING };

struct check {
	const char *name;
	enum check_state state;
	char *found;   /* the state */
	char *how;     /* how to fix it; NULL = nothing to do */
	char *without; /* what works all the same; NULL = all of it */
};

struct checks {
	VEC(struct check) list;
};

/* how and without are copied; NULL = none. The format is of found. */
void checks_add(struct checks *c, const char *name, enum check_state state, const char *how,
		const char *without, const char *found, ...) __attribute__((format(printf, 6, 7)));
void checks_print(const struct checks *c);
void checks_done(struct checks *c);

/* Whether jemalloc in a process samples the heap. */
enum heap_state { HEAP_UNKNOWN, HEAP_NOT_COMPILED, HEAP_OFF, HEAP_INACTIVE, HEAP_ACTIVE };

/* How a process's program was built. process.c fills the first part, client.c the second. */
struct doctor_build {
	char program[64];         /* the name of its file */
	bool symbols, lines;
	struct buildfacts facts;
	char allocator[32];       /* as in symbols_info */
	struct buildfacts jemalloc; /* of the file that has it */

	const char *client;       /* "reth", NULL = not known */
	enum heap_state heap;
	const char *variable;     /* of the environment that its jemalloc reads, NULL = it has none */
	const char *ignored;      /* one that is set instead, and has no effect; NULL = none */
	char conf[512];           /* jemalloc's configuration: compiled in, then of the environment */
};

/* Adds the checks of one process: rights, symbols, unwind tables, allocator. False if it cannot be recorded.
 */
bool doctor_check_process(pid_t pid, const struct host *host, struct worker *worker, struct checks *ret,
			  struct doctor_build *ret_build);
/* Adds the client, its build, and what its jemalloc can do. */
void doctor_check_client(pid_t pid, struct doctor_build *b, struct checks *ret);
void doctor_build_json(const struct doctor_build *b, struct json *j);
