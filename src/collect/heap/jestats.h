/*
 * jestats.h - jemalloc's own statistics of a process that has our hooks: what it holds, by size class.
 *
 * Orders of implant.h: a thread of the process reads them at its next allocations, about two dozen of
 * them. What becomes of it in a profile, added up over processes:
 *
 *	series    jemalloc.allocated, .active, .metadata, .resident, .mapped, .retained     one point
 *	counters  jemalloc.class.SIZE.objects, .slabs, .held    held: bytes of slabs, or of the objects' own pages
 *	          jemalloc.cached bytes     of the objects: free ones that threads keep
 *	          jemalloc.without stats, jemalloc.without answer    processes of which nothing is known
 *
 *	jestats_note(p, implant, time_ns, 500000000, &err);
 */
#pragma once

#include <stdint.h>

struct err;
struct implant;
struct profile;

/*
 * Hooks must be in place and inactive; what they counted is forgotten. wait_ns: for all of it. 0: noted;
 * -ENOENT: no jemalloc with symbols is there; -ENOTSUP: it is built without statistics, or is older than 5.0;
 * what implant_gave_up() knows, as of implant_control().
 */
int jestats_note(struct profile *p, struct implant *i, uint64_t time_ns, uint64_t wait_ns, struct err *err);
