/*
 * samplerows.h - what is selected, sample by sample, for formats that other programs read: all events of a recording, or the one that
 * --what names, with thread, time, cause and block of each.
 *
 *	struct samplerows rows;
 *	struct stackcalls calls;
 *	r = samplerows_make(&rows, job, 0, &err);
 *	stackcalls_init(&calls, job);
 *	for (size_t i = 0; i < rows.list.n; i++) {
 *		stackcalls_of(&calls, rows.list.v[i].stack);
 *		for (size_t k = 0; k < calls.list.n; k++)		// from the leaf on
 *			puts(calls.list.v[k].name);
 *	}
 *	stackcalls_done(&calls);
 *	samplerows_done(&rows);
 *
 * Names are as the target wrote them: each format escapes what it gives a meaning.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/tree/ident.h"
#include "analyze/wait/cause.h"
#include "base/vec.h"

struct err;
struct export_job;
struct profile;

struct samplerow {
	uint64_t begin_ns, end_ns; /* since the start of the recording; the same: a moment, or a sum of many */
	uint64_t value;            /* in the unit of its event */
	uint64_t count;            /* how many it stands for: samples, waits, calls, objects */
	uint32_t event, thread;
	uint32_t stack;            /* of waits: without the scheduler at its end */
	uint32_t sample;           /* of the profile: the row as it was recorded */
	uint32_t block;            /* mark of the innermost block in which it began, PROFILE_NONE = none */
	enum role role;
	enum cause cause;          /* of waits and time in the queue */
};

struct samplerows {
	VEC(struct samplerow) list;
	VEC(uint32_t) events; /* of the profile, those that have rows, in their order */
};

enum {
	SAMPLEROWS_IDLE = 1,    /* idle waits, too, whether or not --idle was given */
	SAMPLEROWS_BY_TIME = 2, /* in the order of their begin; else event by event, as they were recorded */
	SAMPLEROWS_EVERY = 4,   /* all events, even if --what names one */
};

/* samplerows_done() in any case. -ENODATA: nothing is selected. */
int samplerows_make(struct samplerows *rows, const struct export_job *job, unsigned flags, struct err *err);
void samplerows_done(struct samplerows *rows);
/* "lock", "disk read": the cause of a wait, "" where a row has none. */
const char *samplerow_cause(const struct samplerow *row);

/* A call of a stack. */
struct stackcall {
	const char *name;   /* never "": "reth+0x1200" where no symbol is known */
	const char *linkage; /* as in the symbol table, "" = as name, or not known */
	const char *file;   /* source, "" = not known */
	const char *module; /* path, "" = none */
	uint64_t address;   /* in the module, 0 = not known */
	uint32_t line;      /* 0 = not known */
	uint32_t frame;     /* of the profile: inlined calls of one address have the same */
	enum ident_kind kind;
	bool inlined;       /* into the next one of the list */
};

struct stackcalls {
	VEC(struct stackcall) list; /* of the last stack, the leaf first */
	/* The rest is private. */
	struct idents idents;
};

void stackcalls_init(struct stackcalls *c, const struct export_job *job);
void stackcalls_done(struct stackcalls *c);
/* Fills the list; strings live as long as the profile and c. */
void stackcalls_of(struct stackcalls *c, uint32_t stack);
/* The same for one frame. */
void stackcalls_of_frame(struct stackcalls *c, uint32_t frame);
