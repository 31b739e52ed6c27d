/*
 * residency.h - how much of the live heap is in memory, and what its allocator rounds up.
 *
 * Points of the series "heap.resident" (bytes of live objects on resident pages) and "heap.arenas" (RSS of
 * the anonymous mappings that hold any), as estimates from sampled objects like all of the heap's figures;
 * counters "heap.resident bytes" and "heap.rounding bytes". Looks only so often that it takes below 1 % of
 * the time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct liveheap;
struct profile;

struct residency {
	bool begun;
	uint32_t resident_series, arenas_series;
	uint64_t next_ns;
};

/* must: whatever it costs. */
void residency_note(struct residency *r, struct profile *p, const struct liveheap *h, uint64_t time_ns, bool must);

/* Counts live objects by size class: counters "heap.class.SIZE.live" and ".rounding", and "heap.rounding
 * bytes" of all. allocators: their names, as in implant.h. */
void residency_classes(struct profile *p, const struct liveheap *h, const char *allocators);
/* The size class of n bytes; 0: the allocator is not known. */
uint64_t residency_size_class(const char *allocators, uint64_t n);
