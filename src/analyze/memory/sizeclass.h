/*
 * sizeclass.h - the memory of jemalloc by size class, from its own counters (collect/heap/jestats.h).
 *
 * Objects of a small class share slabs: one live object keeps the whole slab. The unused part of the slabs is
 * waste, the internal part of fragmentation.
 *
 *	struct sizeclasses c;
 *	sizeclasses_read(&c, p);
 *	for (size_t i = 0; i < c.list.n; i++)
 *		printf("%llu: %llu wasted\n", c.list.v[i].size, sizeclass_waste(&c.list.v[i]));
 *	sizeclasses_done(&c);
 */
#pragma once

#include <stdint.h>

#include "base/vec.h"

struct profile;

struct sizeclass {
	uint64_t size, objects;
	uint64_t slabs;      /* 0: a large class, whose objects have pages of their own */
	uint64_t held_bytes; /* of the slabs, or pages */
};

struct sizeclasses {
	VEC(struct sizeclass) list; /* most waste first, then most held; empty: no statistics */
	struct sizeclass all;       /* sums; size is that of the objects in bytes */
	uint64_t cached_bytes;      /* of the objects: free ones that threads keep */
	/* Processes whose jemalloc is built without statistics; that did not allocate in time to be asked. */
	uint64_t without_stats, without_answer;
};

void sizeclasses_read(struct sizeclasses *c, const struct profile *p);
void sizeclasses_done(struct sizeclasses *c);

uint64_t sizeclass_used(const struct sizeclass *c);  /* bytes of its objects */
uint64_t sizeclass_waste(const struct sizeclass *c); /* bytes held for none */
