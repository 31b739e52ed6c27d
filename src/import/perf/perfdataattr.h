/*
 * perfdataattr.h - the events of a perf.data file: how each was opened, its ids, its name.
 *
 * Samples and other records say by an id of which event they are, where the file has several.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

enum {
	PERFDATAATTR_SMALLEST = 64, /* bytes: the first version of the kernel's struct */
	PERFDATAATTR_MOST = 1 << 14, /* events of a file */
};

/* How each record begins. Packed: after a compressed one it may lie anywhere. */
struct perfdataheader {
	uint32_t type;
	uint16_t misc, size;
} __attribute__((packed));

struct perfdataattr {
	struct perf_event_attr attr; /* what the file has of it; the rest is 0 */
	char *name;                  /* NULL: the file does not say */
	uint32_t event;              /* of the profile */
	uint8_t kind;                /* enum schedwaits_kind */
	const void *format;          /* of a tracepoint's records; NULL: not known */
};

struct perfdataattrs {
	VEC(struct perfdataattr) list;
	struct map ids;              /* id of an event on a CPU to index */
	struct map reads;            /* id to the value that was read last, of groups */
	bool several_layouts;        /* of samples */
};

void perfdataattrs_done(struct perfdataattrs *a);
/* Adds an event of n bytes; false: that is none. */
bool perfdataattrs_add(struct perfdataattrs *a, const uint8_t *bytes, size_t n);
void perfdataattrs_add_id(struct perfdataattrs *a, uint64_t id, size_t index);
/* Names the event of an id; NULL is fine. */
void perfdataattrs_name(struct perfdataattrs *a, uint64_t id, const char *name);

/* Of which event a record is: NULL where its id is none of the file's. */
const struct perfdataattr *perfdataattrs_of(const struct perfdataattrs *a, const struct perfdataheader *h);
/* When it was; 0: it does not say. */
uint64_t perfdataattr_time(const struct perfdataattr *a, const struct perfdataheader *h);
/* The bytes at the end of a record that is no sample, which say when it was. */
size_t perfdataattr_trailer(const struct perfdataattr *a);
/* The name in the file, or that of its type and number. Caller frees. */
char *perfdataattr_shown(const struct perfdataattr *a);
