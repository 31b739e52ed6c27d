/*
 * heapplaces.h - an address in the process for each frame, for formats of heaps that have nothing else.
 *
 * A frame has the address at which its code was mapped. One without such an address, or whose address another frame has already,
 * gets one where no process has memory: no frame shares its address with another one.
 *
 *	struct heapplaces h;
 *	heapplaces_init(&h, p);
 *	uint64_t address = heapplaces_of(&h, frame);
 *	heapplaces_done(&h);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct profile;

struct heapplaces {
	const struct profile *p;
	VEC(uint32_t) mapped;    /* mappings of the profile in which frames are, each once */
	/* The rest is private. */
	struct map frames;       /* to their addresses */
	struct map taken;        /* addresses */
	struct map of_module;    /* to its first mapping */
	struct map known;        /* mappings that are in the list */
	VEC(uint32_t) next;      /* mapping of the same module */
};

void heapplaces_init(struct heapplaces *h, const struct profile *p);
void heapplaces_done(struct heapplaces *h);
/* Never 0. Of callers, as of frames of the profile: of the call, not of the return. */
uint64_t heapplaces_of(struct heapplaces *h, uint32_t frame);
