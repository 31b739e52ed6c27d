/*
 * doctor.h - a line of a diagnosis: the item, its state, what to do.
 *
 * doctor.c checks the machine, process.c one process; both only fill this.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/vec.h"

struct host;
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

/* Adds the checks of one process: rights, symbols, unwind tables, allocator. False if it cannot be recorded.
 */
bool doctor_check_process(pid_t pid, const struct host *host, struct worker *worker, struct checks *ret);
