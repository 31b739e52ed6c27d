/*
 * model.h - the analyses of the current view, each made when a page first needs it.
 *
 * Life: init -> look (at a profile, for a scope) -> ask -> look again ... -> done. Results live until the
 * next look.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/blocks/blocks.h"
#include "analyze/wait/account.h"
#include "analyze/io.h"
#include "analyze/select.h"
#include "analyze/task/tasks.h"
#include "analyze/tree/top.h"
#include "analyze/wait/waits.h"
#include "base/err.h"

struct profile;

/* Which part of it; all strings may be NULL or "". */
struct scope {
	char *what;     /* an event, or "wall"; NULL: cpu, or the first recorded one */
	char *thread;   /* a name, a glob or a tid */
	char *function; /* regex: only stacks that have it */
	uint64_t from_ns, to_ns;
	bool idle;
};
void scope_done(struct scope *s);
/* Replaces one of its strings by a copy. */
void scope_set(char **field, const char *value);

/* A process's memory, as the caller read it. */
struct model_memory {
	uint32_t pid;
	char name[32];
	uint64_t rss_bytes, anon_bytes, file_bytes, shared_bytes, swap_bytes;
	double minor_rate, major_rate; /* faults a second; below 0: not known yet */
};

struct model {
	const struct profile *p;
	struct causes *causes;
	const struct scope *scope;
	bool live; /* the profile is a window of a recording, whose counters are of more time */
	VEC(struct model_memory) memory;
	/* The rest is private: ask with the functions below. */
	const char *threads[2];
	struct select_options options;
	struct selection selection;
	struct top top;
	struct account account;
	struct waits waits;
	size_t waits_detailed; /* of its places */
	struct io_figures io;
	struct blocks blocks;
	struct tasks tasks;
	bool has_selection, has_top, has_account, has_waits, has_io, has_blocks, has_tasks;
	bool no_selection, no_account, no_io, no_blocks, no_tasks;
	struct err err;
};

void model_init(struct model *m);
void model_done(struct model *m);
/* p, causes and scope are borrowed. 0, or -ENOENT when there is no such event: the sentence is in err. */
int model_look(struct model *m, const struct profile *p, struct causes *causes, const struct scope *scope);
/* NULL: nothing is selected; m->err says why. */
const struct selection *model_selection(struct model *m);
const struct top *model_top(struct model *m);
/* NULL: waits were not recorded. */
const struct account *model_account(struct model *m);
const struct waits *model_waits(struct model *m);
/* The same where the first so many places have their wakers, which take longer to find. */
const struct waits *model_waits_detailed(struct model *m, size_t detailed);
/* NULL: there is none. */
const struct io_figures *model_io(struct model *m);
/* Of the whole profile, whatever the scope. NULL: there is none. */
const struct blocks *model_blocks(struct model *m);

/* NULL: tasks were not recorded. */
const struct tasks *model_tasks(struct model *m);

/* Returns the name of the weighed event. */
const char *model_what(const struct model *m);
/* Returns the event after (or before) it, by name; "wall" comes last where there are waits. */
const char *model_next_what(const struct model *m, int step);
