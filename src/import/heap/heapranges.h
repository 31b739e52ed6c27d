/*
 * heapranges.h - which file is at an address: the modules of a raw file of heaptrack.
 *
 * The list changes when the program loads a library: it is told again then, whole.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct heapsink;

struct heaprange {
	uint64_t start, end; /* addresses in the process */
	uint64_t base;       /* address in the process - address in the module */
	uint32_t module;
	bool mapped;         /* the profile has it */
};

struct heapranges {
	struct heapsink *sink;
	/* The rest is private. */
	VEC(struct heaprange) list;
	bool sorted;
	struct map frames; /* by address */
};

void heapranges_done(struct heapranges *h);
void heapranges_clear(struct heapranges *h);
/* Sizes that reach beyond the last address end there. */
void heapranges_add(struct heapranges *h, uint32_t module, uint64_t base, uint64_t address, uint64_t size);
/* The frame at an address, to be symbolized. */
uint32_t heapranges_frame(struct heapranges *h, uint64_t address);
