/*
 * pprofmodel.h - the tables of a foreign profile (strings, mappings, functions, locations), and what they become here.
 *
 * The reader of a format fills the tables; indexes into them are checked there. Then it adds samples, which make frames, stacks
 * and threads when they need them:
 *
 *	pprofmodel_init(&m, in);
 *	vec_push(&m.strings, pprofmodel_string(&m, data, n));
 *	...
 *	pproftypes_make(&m.types, m.p, 0);
 *	pprofmodel_prepare(&m);
 *	pprofmodel_stack(&m, &locations, 0, n, &stack, err);
 *	pprofmodel_add(&m, &(struct pprofmodel_sample){ .stack = stack, .values = values }, err);
 *	*ret = pprofmodel_finish(&m);
 *	pprofmodel_done(&m);
 *
 * A location with lines keeps their names; one without is an address in its module, for the symbolizer. For that the files of
 * modules that have such locations are opened, once: where a part of a file lies in memory is in its headers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "import/frames.h"
#include "import/pprof/pproftypes.h"

struct err;
struct import_input;
struct worker;

/* Bounds of what a small file may claim: beyond them it is refused. */
enum {
	PPROFMODEL_STRINGS = 1 << 24,
	PPROFMODEL_MAPPINGS = 1 << 16,
	PPROFMODEL_TABLE = 1 << 22, /* functions, locations, lines, attributes */
	PPROFMODEL_SAMPLES = 1 << 25,
	PPROFMODEL_NODES = 1 << 26, /* of all stacks */
	PPROFMODEL_DEPTH = 1 << 16, /* of one */
	PPROFMODEL_TYPES = 1 << 10,
};

struct pprofmapping {
	uint64_t start, limit, offset;
	uint32_t file, build_id; /* strings of the profile; the build-id in hexadecimal */
	/* The rest is private. */
	uint64_t bias;
	uint32_t module;
	bool made, unnamed;
};

struct pproffunction {
	uint32_t name, linkage, file; /* strings of the profile */
};

struct pprofline {
	uint32_t function; /* index */
	uint32_t line;
};

struct pproflocation {
	uint64_t address;
	uint32_t mapping;                /* index, PROFILE_NONE = none */
	uint32_t first_line, line_count; /* innermost first */
	bool kernel;                     /* says so itself */
	/* The rest is private. */
	uint32_t frame;
};

struct pprofmodel {
	struct profile *p; /* NULL after pprofmodel_finish() */
	VEC(uint32_t) strings;
	VEC(struct pprofmapping) mappings;
	VEC(struct pproffunction) functions;
	VEC(struct pprofline) lines;
	VEC(struct pproflocation) locations;
	struct pproftypes types;
	/* The rest is private. */
	const struct import_input *in;
	struct frames frames;
	struct worker *worker;
	VEC(uint32_t) list;
	bool file_addresses;
};

struct pprofindexes {
	VEC(uint32_t);
};

/* Of one stack, thread and moment. */
struct pprofmodel_sample {
	const uint64_t *values; /* one for each type */
	uint64_t time_ns;
	uint32_t stack, thread;
};

void pprofmodel_init(struct pprofmodel *m, const struct import_input *in);
void pprofmodel_done(struct pprofmodel *m);

uint32_t pprofmodel_string(struct pprofmodel *m, const void *data, size_t n);
/* After the tables are whole. */
void pprofmodel_prepare(struct pprofmodel *m);
/* n locations of a list, from the first on, the leaf first. */
int pprofmodel_stack(struct pprofmodel *m, const struct pprofindexes *locations, size_t first, size_t n, uint32_t *ret, struct err *err);
/* Adds a sample of each event that has a value or a count. -ERANGE: a sum does not fit. */
int pprofmodel_add(struct pprofmodel *m, const struct pprofmodel_sample *s, struct err *err);
/* The profile, which is the caller's. */
struct profile *pprofmodel_finish(struct pprofmodel *m);

/* Who: from labels or attributes. */
struct pprofwho {
	uint64_t pid, tid;
	uint32_t name; /* string of the profile */
	bool strict;   /* name is that of a thread, not of a command */
};
/* Takes in a label of these: thread, thread_name, tid, pid, comm and the like, as text or as a number. False: it says nothing
 * of that. */
bool pprofwho_take(struct pprofwho *who, struct profile *p, const char *key, const char *text, uint64_t number);
uint32_t pprofmodel_thread(struct pprofmodel *m, const struct pprofwho *who);
