/*
 * pproftypes.h - the types of values in a foreign profile as events.
 *
 * A number of things and what they are worth are one event, whose samples have value and count, as those of our own captures:
 *
 *	samples/count, cpu/nanoseconds              cpu      ns
 *	alloc_objects/count, alloc_space/bytes      alloc    bytes
 *	inuse_objects/count, inuse_space/bytes      heap     bytes
 *	contentions/count, delay/nanoseconds        delay    ns
 *	read_count/count, read/bytes                read     bytes    (any name: as we write it)
 *
 * Any other type is an event of its own name; goroutine/count is "goroutines", as "goroutine" is a time here. Times are
 * converted to ns, sizes to bytes; all else is a count, and the event's description says of what.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct profile;

struct pproftype {
	const char *name, *unit;
	/* The rest is found by pproftypes_make(). */
	uint64_t scale;     /* of a value to one of the event */
	const char *base;   /* unit of the event */
	uint32_t event;     /* of the profile */
	uint32_t counts;    /* the type that it counts; PROFILE_NONE: it is a value itself */
	uint32_t counted;   /* the type that counts it, PROFILE_NONE = none */
	uint64_t total;     /* so far, in the event's unit */
};

struct pproftypes {
	VEC(struct pproftype) list;
};

/* Makes the events of the types in the list, that of the type number first before the others. */
void pproftypes_make(struct pproftypes *t, struct profile *p, size_t first);
/* The event of a type of that name, also of one that only counts; PROFILE_NONE: there is none. */
uint32_t pproftypes_event(const struct pproftypes *t, const char *name);
