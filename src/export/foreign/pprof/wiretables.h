/*
 * wiretables.h - the tables that pprof and OTLP profiles share: strings, modules, functions, locations. Entry 0 of each is the
 * empty one, so that an index is OTLP's index and, where it is not 0, pprof's id.
 *
 *	struct wiretables t;
 *	wiretables_init(&t, job);
 *	uint32_t location = wiretables_location(&t, frame);
 *	...
 *	wiretables_done(&t);
 *
 * Strings are plain text (base/text/plain.h), which is what protocol buffers demand of them and terminals can bear. Addresses
 * are those of the files: a mapping spans all memory, as tools of pprof have it of profiles that are adjusted already.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "export/samplerows.h"

struct buf;
struct export_job;
struct samplerow;

struct wiretables_module {
	uint32_t path, build_id; /* strings; the build-id in hexadecimal, 0 = none */
	bool functions, files, lines, inlined; /* what is known of some frame in it */
};
struct wiretables_function {
	uint32_t name, linkage, file; /* strings */
};
struct wiretables_line {
	uint32_t function, line;
};
struct wiretables_location {
	uint64_t address;
	uint32_t module;
	uint32_t first_line, line_count; /* innermost first */
	bool kernel;
};

struct wiretables {
	struct strtab strings;
	VEC(struct wiretables_module) modules;
	VEC(struct wiretables_function) functions;
	VEC(struct wiretables_line) lines;
	VEC(struct wiretables_location) locations;
	/* The rest is private. */
	const struct profile *p;
	struct stackcalls calls;
	struct map by_frame, by_module, by_path, by_function, by_part;
};

void wiretables_init(struct wiretables *t, const struct export_job *job);
void wiretables_done(struct wiretables *t);
/* Any name as plain text. */
uint32_t wiretables_string(struct wiretables *t, const char *s);
uint32_t wiretables_location(struct wiretables *t, uint32_t frame);
/* Parts of messages that both formats have, as a field of that number: the locations of a stack, the leaf first; the lines of a
 * location. */
void wiretables_put_stack(struct wiretables *t, uint32_t stack, uint32_t field, struct buf *out);
void wiretables_put_lines(const struct wiretables *t, const struct wiretables_location *l, uint32_t field, struct buf *out);

/* The name of a type and its unit as tools of pprof know them: "inuse_space", "bytes"; and of what counts it:
 * "inuse_objects", "read_count". Caller frees. */
char *wiretables_type(const struct profile *p, uint32_t event, bool count);
const char *wiretables_unit(const struct profile *p, uint32_t event);

/* Rows of one stack, thread, block and cause have the same number, from 0 on: their group. */
struct wiregroups {
	VEC(struct samplerow) list; /* the first row of each */
	/* The rest is private. */
	struct map places, labels, both;
};
uint32_t wiregroups_of(struct wiregroups *g, const struct samplerow *row);
void wiregroups_done(struct wiregroups *g);
