/*
 * otlptables.h - the dictionary of profiles of OpenTelemetry: strings, attributes, mappings, functions, locations and stacks, by
 * index. Entry 0 of each is the empty one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "import/pprof/pprofmodel.h"
#include "import/pprof/pprofwire.h"

struct protobuf_field;

struct otlpattribute {
	uint32_t key, text; /* strings of the profile */
	uint64_t number;
};

struct otlpstack {
	uint32_t first, n; /* into stack_locations */
};

struct otlptables {
	struct pprofmodel m;
	struct pprofwire in;
	VEC(struct otlpattribute) attributes;
	VEC(struct otlpstack) stacks;
	struct pprofindexes stack_locations; /* the leaf first */
	VEC(uint64_t) list; /* numbers that were read last */
};

void otlptables_done(struct otlptables *r);

/* Reads a dictionary: a pprofwire_fn, whose context are the tables. */
int otlptables_read(void *tables, const struct protobuf_field *f);

/* The string of an index. at: where it is named. */
int otlptables_string(struct otlptables *r, const void *at, uint64_t index, uint32_t *ret);
/* Appends the numbers of a repeated field to the list; fixed: of eight bytes each where they are packed. */
int otlptables_list(struct otlptables *r, const struct protobuf_field *f, bool fixed);
/* KeyValue, whose key is a text, and KeyValueAndUnit, whose key is a string of the dictionary. */
int otlptables_attribute(struct otlptables *r, const struct protobuf_field *f, struct otlpattribute *a);
/* Refuses what is more than can be read. */
int otlptables_many(struct otlptables *r, const struct protobuf_field *f, size_t n, const char *what);
